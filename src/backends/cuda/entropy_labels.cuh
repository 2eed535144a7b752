// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From sums of T to labels that have voted, for the fused pipeline. For windows of one size the entropy falls as the sum
// rises, so "entropy above a threshold" is "sum below a limit". Sums of a table with fewer bits tell nearly all windows
// on which side they are; the others are counted anew with the exact table.
#pragma once

#include "backends/cuda/entropy_window.cuh"
#include "backends/cuda/segment.cuh"

namespace fulcrum::backends::cuda::entropy {

/// A call, and how it is cut: warps along a row, rows of one, warps down a column.
struct LabelJob {
  Image image;  // the convolution
  std::uint8_t* out;
  std::int64_t* clamped;
  int window;
  Range range;
  Bins bins;
  segment::Thresholds thresholds;
  Totals* totals;
  const std::int64_t* table;
  std::int64_t across, strip_rows, strips;
};

/// Labels by the entropy itself.
struct ExactJudge {
  Finish finish;

  __device__ __forceinline__ void set(int pixels, const LabelJob& job) { finish.set(pixels, job.table); }
  template <class Windows>
  __device__ __forceinline__ unsigned bit(const Windows& windows, int k, bool, const LabelJob& job) const {
    return segment::bit_of(finish(windows.sum[k]), job.thresholds);
  }
};

/// Labels by sums that lack bits: at most `sure` is above a threshold, more than sure + open is not.
template <int kW>
struct CoarseJudge {
  int pixels, sure[3], open[3];

  __device__ __forceinline__ void set(int count, const LabelJob& job) {
    const float thresholds[3] = {job.thresholds.high, job.thresholds.middle, job.thresholds.low};
    constexpr double kUnit = 1.0 / static_cast<double>(std::int64_t{1} << lost_bits<kW, int>());
    pixels = count;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const double part = thresholds[i] * (count * 0x1p32);
      const double limit = (static_cast<double>(job.table[count]) - part) * kUnit;
      // Each bin's entry is half a unit off at most, and only those with two pixels and more are off at all; the
      // entropy is rounded to 24 bits.
      const double margin = count * 0.25 + part * 0x1p-22 * kUnit + 4;
      sure[i] = static_cast<int>(fmax(floor(limit - margin), -1.0));
      open[i] = static_cast<int>(fmax(ceil(limit + margin), -1.0)) - sure[i];
    }
  }
  /// Whole warps call. Windows around no pixel of the image (not `there`) may have any label. The others that are in
  /// doubt are counted by the warp together, one after the other: a lone lane would keep the others waiting.
  template <class Windows>
  __device__ __forceinline__ unsigned bit(const Windows& windows, int k, bool there,
                                          const LabelJob& job) const {
    const int sum = windows.sum[k];
    bool doubt = false;
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      doubt |= static_cast<unsigned>(sum - sure[i] - 1) < static_cast<unsigned>(open[i]);
    }
    unsigned label = sum <= sure[0] ? 0x10U : sum <= sure[1] ? 0x100U : sum <= sure[2] ? 0x1000U : 0x1U;
    unsigned lanes = __ballot_sync(kAll, doubt && there);
    if (lanes == 0) return label;
    __syncwarp();  // counts of all lanes are in place
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      const std::int64_t exact_sum = windows.exact_sum(lane, k, job.table);
      if (static_cast<int>(threadIdx.x % kWarp) != lane) continue;
      ExactJudge exact;
      exact.set(pixels, job);
      label = segment::bit_of(exact.finish(exact_sum), job.thresholds);
    }
    __syncwarp();  // before they change again
    return label;
  }
};

/// Labels of a row of a thread's windows as bits, and sums of three neighbours along the row.
template <int kColumns>
struct LabelRow {
  unsigned own[kColumns], three[kColumns];
};

/// kW 0: any window, with exact sums.
template <int kW, int kColumns, class Sum, class Index, class Source>
struct LabelSink {
  using Judge = std::conditional_t<sizeof(Sum) == 8, ExactJudge, CoarseJudge<kW>>;

  const LabelJob& job;
  const Source& image;
  Strip<Index> strip;
  Index column;
  Index h, w;
  int rows = 0;
  Judge judge[kColumns];
  LabelRow<kColumns> above, here;

  template <class Windows>
  __device__ __forceinline__ void take(Index y, const Windows& windows, bool nan) {
    const int now = inside_of(y, job.window, h);
    if (now != rows) {
      rows = now;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        judge[k].set(now * inside_of<Index>(column + k, job.window, w), job);
      }
    }
    LabelRow<kColumns> below;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const bool there = column + k >= 0 && column + k < w;
      below.own[k] = judge[k].bit(windows, k, there, job);
      if (nan && there && window_has_nan(image, y, column + k, job.window)) below.own[k] = 1;
    }
    const unsigned left = __shfl_up_sync(kAll, below.own[kColumns - 1], 1);
    const unsigned right = __shfl_down_sync(kAll, below.own[0], 1);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      below.three[k] = below.own[k] + (k > 0 ? below.own[k - 1] : left) +
                       (k + 1 < kColumns ? below.own[(k + 1) % kColumns] : right);
    }
    if (y > strip.count_first) emit(y - 1, below);
    above = here, here = below;
  }

  /// Row y, whose labels are in `here`.
  __device__ __forceinline__ void emit(Index y, const LabelRow<kColumns>& below) const {
    const bool inner = y > 0 && y + 1 < h;
    std::uint8_t* to = job.out + y * job.image.w + column;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const Index x = column + k;
      const unsigned around = above.three[k] + here.three[k] + below.three[k] - here.own[k];
      const bool may = inner && x > 0 && x + 1 < w;
      const unsigned label = segment::labels_of(segment::vote(here.own[k], around, may ? 0xFFFFU : 0U));
      const Index place = x - strip.column;
      if (place >= strip.own_first && place < strip.own_last && x < w) {
        to[k] = static_cast<std::uint8_t>(label);
      }
    }
  }

  /// After the last row: the image's last one has nothing below it.
  __device__ __forceinline__ void end() const {
    if (strip.count_last == h) emit(h - 1, here);
  }
};

}  // namespace fulcrum::backends::cuda::entropy
