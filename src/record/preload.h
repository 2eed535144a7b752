// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The recorder's side of the library that is preloaded into programs it starts.
#pragma once

#include <fulcrum/core/profile.h>

#include "record/events.h"
#include "record/inject/shared.h"

namespace fulcrum::record {

class Preload {
 public:
  /// With a period the library samples by timers.
  explicit Preload(std::uint64_t timer_period_ns);
  ~Preload();
  Preload(const Preload&) = delete;
  Preload& operator=(const Preload&) = delete;

  /// Where the library is; empty: not found, and why() says where it was looked for.
  const std::string& library() const { return library_; }
  bool there() const { return memory_ != nullptr && !library_.empty(); }
  /// What the program needs in its environment; empty when the library is not there.
  std::vector<std::pair<std::string, std::string>> environment() const;
  std::vector<CpuProfile::Call> calls() const;
  /// Entries of the table of parallel regions that are in use, copied.
  std::vector<inject::LoopEntry> loops() const;

  /// Hands out the samples that are complete, and frees their places.
  void drain(const std::function<void(const inject::SampleSlot&)>&);
  std::int64_t lost_samples() const;
  std::int64_t threads() const;

 private:
  std::string library_;
  int descriptor_ = -1;
  inject::Memory* memory_ = nullptr;
};

}  // namespace fulcrum::record
