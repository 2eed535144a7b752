// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See plan_threads.h.
#include "backends/plan_threads.h"

#include <fulcrum/backends.h>

#include <algorithm>

namespace fulcrum::backends {
namespace {

// What a thread writes in a few microseconds: less is not worth handing over.
constexpr std::int64_t kBytesPerThread = 32 << 10;

thread_local int plan_threads = 1;

}  // namespace

PlanThreads::PlanThreads(int threads) : before_(plan_threads) { plan_threads = threads; }
PlanThreads::~PlanThreads() { plan_threads = before_; }

void plan_parts(std::int64_t parts, std::int64_t bytes,
                void (*work)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  const std::int64_t most = std::clamp<std::int64_t>(bytes / kBytesPerThread, 1, plan_threads);
  if (most == 1) return work(context, 0, parts);
  parallel(parts, static_cast<int>(most), work, context);
}

}  // namespace fulcrum::backends
