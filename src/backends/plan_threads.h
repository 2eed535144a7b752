// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans that lay weights out for a kernel on several threads do that on as many: a call on plain memory plans anew each
// time, and with few batch rows the weights are most of its work.
#pragma once

#include <cstdint>

namespace fulcrum::backends {

/// While it lives, plans that this thread makes may use so many.
class PlanThreads {
 public:
  explicit PlanThreads(int threads);
  ~PlanThreads();
  PlanThreads(const PlanThreads&) = delete;
  PlanThreads& operator=(const PlanThreads&) = delete;

 private:
  int before_;
};

/// Runs work for parts [0, parts) of a plan, which writes so many bytes in all, on the threads that it may use; on fewer
/// where that is little.
void plan_parts(std::int64_t parts, std::int64_t bytes,
                void (*work)(void* context, std::int64_t begin, std::int64_t end), void* context);

}  // namespace fulcrum::backends
