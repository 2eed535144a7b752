// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How a window went on. The first one has the program's start in it, with calls that never come again: how many launches
// go with another call, and how many with a second, its later half tells. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/inject/totals.h"

namespace fulcrum::trace::inject {

class Course {
 public:
  /// From time to time, while it is open.
  void note(std::int64_t at_ns, const Launches& until_now) {
    if (noted_++ % every_ != 0) return;
    if (seen_.size() == kMost) {  // every other one will do
      for (std::size_t i = 0; i < kMost / 2; ++i) seen_[i] = seen_[2 * i];
      seen_.resize(kMost / 2);
      every_ *= 2;
    }
    seen_.push_back({at_ns, until_now});
  }

  /// Of a window that began with nothing launched: from when half of its kernels had been.
  Late later_half(std::int64_t end_ns, const Launches& until_now) const {
    for (const Instant& one : seen_)
      if (2 * one.launches.kernels >= until_now.kernels)
        return {until_now.since(one.launches), end_ns - one.at_ns};
    return {};
  }

 private:
  struct Instant {
    std::int64_t at_ns;
    Launches launches;
  };
  static constexpr std::size_t kMost = 256;
  std::vector<Instant> seen_;
  std::int64_t noted_ = 0, every_ = 1;
};

}  // namespace fulcrum::trace::inject
