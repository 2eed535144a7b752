// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a process touches: clears the reference bits of its pages, waits, counts those that are set again. A few
// short windows only, because each walk over the pages takes time in proportion to the memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace fulcrum::record {

class TouchedBytes {
 public:
  explicit TouchedBytes(pid_t pid) : pid_(pid) {}
  /// To be called often, with the time since the recording began.
  void tick(double seconds);
  /// The most of any window; 0: no window was looked at.
  double bytes() const { return most_; }

 private:
  pid_t pid_;
  int window_ = 0;
  double opened_ = -1;
  double most_ = 0;
};

/// A value of smaps_rollup in bytes: "Referenced", "Rss".
std::optional<double> rollup_bytes(std::string_view text, std::string_view name);

}  // namespace fulcrum::record
