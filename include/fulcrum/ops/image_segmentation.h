// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From value to label, and how image_segmentation falls into pieces.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// A piece is so many output rows.
inline constexpr std::int64_t kSegmentPieceRows = 8;
/// Of the 8 neighbours, so many with one label give it to the pixel.
inline constexpr int kSegmentVotes = 6;

struct SegmentThresholds {
  float high = 0, middle = 0, low = 0;

  explicit SegmentThresholds(double t)
      : high(static_cast<float>(1.5 * t)), middle(static_cast<float>(t)), low(static_cast<float>(0.5 * t)) {}
  /// NaN is above nothing: 0.
  std::uint8_t label(float x) const { return x > high ? 1 : x > middle ? 2 : x > low ? 3 : 0; }
};
/// t must be finite and not negative; `op` goes into the message.
Status check_segment_threshold(double t, std::string_view op);

/// The second pass for one pixel: label(y, x) reads the first pass's map, inside the image.
template <class Label>
std::uint8_t segment_vote(std::int64_t y, std::int64_t x, std::int64_t h, std::int64_t w,
                          const Label& label) {
  const std::uint8_t own = label(y, x);
  if (y == 0 || x == 0 || y + 1 == h || x + 1 == w) return own;  // at most 5 neighbours
  int votes[4] = {};
  for (int n = 0; n < 9; ++n) {
    if (n != 4) ++votes[label(y + n / 3 - 1, x + n % 3 - 1)];
  }
  for (std::uint8_t l = 0; l < 4; ++l) {
    if (votes[l] >= kSegmentVotes) return l;
  }
  return own;
}

}  // namespace fulcrum::ops
