// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels as the vote counts them: label l of a pixel is the bit 4 l of 16, so that sums of neighbours hold four counts
// of at most nine, and two pixels share a word.
#pragma once

#include <cstdint>

namespace fulcrum::backends::cuda::segment {

struct Thresholds {
  float high, middle, low;
};

/// As the op rounds them.
inline Thresholds thresholds_of(double t) {
  return Thresholds{static_cast<float>(1.5 * t), static_cast<float>(t), static_cast<float>(0.5 * t)};
}

/// The bit of a pixel's label; NaN is above nothing.
__device__ __forceinline__ unsigned bit_of(float x, const Thresholds& t) {
  return x > t.high ? 0x10U : x > t.middle ? 0x100U : x > t.low ? 0x1000U : 0x1U;
}

/// The bits of two pixels after the vote. `around`: sums over the eight neighbours of each; `may`: all ones in the half
/// of a pixel that is not at the border.
__device__ __forceinline__ unsigned vote(unsigned own, unsigned around, unsigned may) {
  const unsigned won = (((around + 0x22222222U) & 0x88888888U) >> 3) & may;  // counts of 6 and more
  unsigned any = won | (won >> 4);
  any = (any | (any >> 8)) & 0x00010001U;
  return won | (own & ~(any * 0xFFFFU));
}

/// Labels from bits, one in the low byte of each half.
__device__ __forceinline__ unsigned labels_of(unsigned bits) {
  return ((bits >> 4) & 0x00010001U) | ((bits >> 7) & 0x00020002U) | (((bits >> 12) & 0x00010001U) * 3U);
}

}  // namespace fulcrum::backends::cuda::segment
