// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Local entropy in integers: the table T that makes it exact, the rule from pixel to bin, and how the op falls into
// pieces. conv_entropy_segment uses all of it.
#pragma once

#include <fulcrum/ops.h>

#include <algorithm>
#include <limits>

namespace fulcrum::ops {

inline constexpr std::int64_t kEntropyBins = 256;
inline constexpr std::int64_t kEntropyLargestWindow = 255;
inline constexpr std::int64_t kEntropyLargestCount = kEntropyLargestWindow * kEntropyLargestWindow;
/// A piece is so many output rows.
inline constexpr std::int64_t kEntropyPieceRows = 8;

/// T[c] = round(c * log2(c) * 2^32) for c in [0, kEntropyLargestCount]; built on first use, exact.
const std::int64_t* entropy_table();
/// D[c] = T[c + 1] - T[c]: what one more pixel in a bin of c adds to the sum of T. Of kEntropyLargestCount entries, and as
/// many more zeros as a window is high: where a column enters before another leaves, a bin holds both for a while.
const std::int64_t* entropy_steps();

/// Entropy in bits of a window of `pixels` with the sum of T over its bins.
inline float entropy_of(std::int64_t pixels, std::int64_t sum) {
  const double scale = static_cast<double>(pixels) * 0x1p32;
  return static_cast<float>(static_cast<double>(entropy_table()[pixels] - sum) / scale);
}

/// From a pixel to one of 256 bins of equal width; what lies outside goes to the first and the last one.
struct EntropyBins {
  float lo = 0, hi = 1, scale = 256;

  int operator()(float x) const {
    const float at = (x - lo) * scale;
    return at > 0 ? static_cast<int>(at < 255 ? at : 255.0F) : 0;  // NaN, which no window shows, is in bin 0
  }
  bool clamps(float x) const { return x < lo || x > hi; }
};
/// lo == hi: every number in bin 0.
EntropyBins entropy_bins(float lo, float hi);
/// For the finite minimum and maximum of an image (+Inf and -Inf when it has none). A constant image has all its
/// numbers in bin 0, and +Inf still in the last one.
EntropyBins entropy_bins_of_image(float min, float max);

/// Rows or columns [first, last) of the window of width W around `at`, cut at the border of an image of `size`.
struct EntropySpan {
  std::int64_t first, last;
};
inline EntropySpan entropy_span(std::int64_t at, std::int64_t window, std::int64_t size) {
  const std::int64_t first = at - window / 2;
  return EntropySpan{std::max<std::int64_t>(first, 0), std::min(first + window, size)};
}

/// The flag of a result with more than 1 % of its pixels outside of the range, else null.
inline const char* clamped_remark(std::int64_t clamped, std::int64_t pixels) {
  return clamped > pixels / 100 ? "clamped" : nullptr;
}

/// The rule behind W=auto, by the number of pixels.
std::int64_t automatic_window(std::int64_t pixels);
/// The window that a call of pixel_entropy uses: W, or that of the rule.
std::int64_t entropy_window(const Args& args);

/// One output of the direct form: bin(y, x) is the bin of a pixel, or negative for NaN.
template <class Bin>
float entropy_at(std::int64_t y, std::int64_t x, std::int64_t window, std::int64_t h, std::int64_t w,
                 const Bin& bin) {
  std::uint16_t counts[kEntropyBins] = {};
  const EntropySpan rows = entropy_span(y, window, h), columns = entropy_span(x, window, w);
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const int b = bin(r, c);
      if (b < 0) return std::numeric_limits<float>::quiet_NaN();
      ++counts[b];
    }
  }
  const std::int64_t* table = entropy_table();
  std::int64_t sum = 0;
  for (const std::uint16_t count : counts) sum += table[count];
  return entropy_of((rows.last - rows.first) * (columns.last - columns.first), sum);
}

/// Scratch of the split. Phase 0 (range=auto only) stores the finite extremes of each piece, combine() leaves those of
/// the image in the first part; phase 1 stores how many pixels each piece clamped, combine() writes their sum.
struct EntropyPart {
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  std::int64_t clamped = 0;
};
/// combine() of both ops: `clamped` is where the sum goes.
void combine_entropy_parts(EntropyPart* parts, std::int64_t pieces, int phase, std::int64_t* clamped);

}  // namespace fulcrum::ops
