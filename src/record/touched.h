// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a process touches: once it has started up, the reference bits of its pages are cleared; how many are set
// again is read a few times, ever more rarely, because a walk over the pages takes time in proportion to them. Pages that
// came after the last reading were touched as well. What ends before all that has touched what was resident.
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
  /// Since the bits were cleared, or of a process that did not live for long after that what was resident at most; 0: it
  /// was never seen.
  double bytes() const { return seen_for_ >= kEnoughSeconds ? referenced_ + grown_ : resident_; }

 private:
  pid_t pid_;
  static constexpr double kEnoughSeconds = 1.5;

  bool given_up_ = false;
  std::size_t reads_ = 0;
  double cleared_ = -1;  // when
  double seen_for_ = 0;  // from then to the last reading
  double referenced_ = 0, resident_ = 0;
  double resident_then_ = 0, grown_ = 0;  // at the last reading; since then
};

/// A value of smaps_rollup in bytes: "Referenced", "Rss".
std::optional<double> rollup_bytes(std::string_view text, std::string_view name);

}  // namespace fulcrum::record
