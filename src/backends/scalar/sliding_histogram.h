// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A histogram that pixels enter and leave, with the sum of T over its bins kept up to date; and the entropy of one row
// of an image of bins by sliding it along.
#pragma once

#include <fulcrum/ops/pixel_entropy.h>

#include <cstring>

namespace fulcrum::backends::scalar {

/// Marks a NaN pixel in an image of bins.
inline constexpr std::uint16_t kNanBin = 256;

class SlidingHistogram {
 public:
  void clear() {
    std::memset(counts_, 0, sizeof(counts_));
    sum_ = 0;
  }
  void add(std::uint16_t bin) { sum_ += steps_[counts_[bin]++]; }
  void remove(std::uint16_t bin) { sum_ -= steps_[--counts_[bin]]; }
  bool has_nan() const { return counts_[kNanBin] != 0; }
  std::int64_t sum() const { return sum_; }

 private:
  const std::int64_t* steps_ = ops::entropy_steps();
  std::int64_t sum_ = 0;
  std::uint16_t counts_[ops::kEntropyBins + 1] = {};
};

/// Entropy of output row y. row(r) points at the bins of image row r.
template <class Row>
void entropy_row(std::int64_t y, std::int64_t window, std::int64_t h, std::int64_t w, const Row& row,
                 SlidingHistogram& histogram, float* out) {
  const ops::EntropySpan rows = ops::entropy_span(y, window, h);
  const std::int64_t left = window / 2, right = window - 1 - left;
  histogram.clear();
  const auto column = [&](std::int64_t x, auto&& change) {
    if (x < 0 || x >= w) return;
    for (std::int64_t r = rows.first; r < rows.last; ++r) change(row(r)[x]);
  };
  const auto add = [&](std::uint16_t bin) { histogram.add(bin); };
  const auto remove = [&](std::uint16_t bin) { histogram.remove(bin); };
  for (std::int64_t x = 0; x < right; ++x) column(x, add);
  for (std::int64_t x = 0; x < w; ++x) {
    column(x + right, add);
    column(x - left - 1, remove);
    const ops::EntropySpan columns = ops::entropy_span(x, window, w);
    const std::int64_t pixels = (rows.last - rows.first) * (columns.last - columns.first);
    out[x] = histogram.has_nan() ? std::numeric_limits<float>::quiet_NaN()
                                 : ops::entropy_of(pixels, histogram.sum());
  }
}

}  // namespace fulcrum::backends::scalar
