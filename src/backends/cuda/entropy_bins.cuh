// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A 3 x 3 convolution stored as the bins of its values, a byte each: an eighth of what the values themselves would move.
// A warp has blocks of 128 columns and a few rows, all of whose inputs are on their way at once.
#pragma once

#include "backends/cuda/entropy_conv.cuh"
#include "backends/cuda/entropy_pairs.cuh"

namespace fulcrum::backends::cuda::entropy {

inline constexpr int kBinWarps = 8, kBinRows = 4;

/// A row of inputs under the first taps of a lane's four outputs and five columns on; zeros outside of the image.
template <bool kVectors>
__device__ __forceinline__ void load_taps(const ConvImage& image, std::int64_t y, std::int64_t column,
                                          float (&x)[6]) {
  const bool there = y >= 0 && y < image.input_h;
  const float* row = image.x + y * image.input_w;
  if constexpr (kVectors) {
    const int lane = threadIdx.x % kWarp;
    const bool mine = there && column < image.input_w;
    const float4 four = mine ? *reinterpret_cast<const float4*>(row + column) : make_float4(0, 0, 0, 0);
    x[1] = four.x, x[2] = four.y, x[3] = four.z, x[4] = four.w;
    x[0] = __shfl_up_sync(kAll, four.w, 1);
    x[5] = __shfl_down_sync(kAll, four.x, 1);
    if (lane == 0) x[0] = mine && column > 0 ? row[column - 1] : 0;
    if (lane == kWarp - 1) x[5] = there && column + 4 < image.input_w ? row[column + 4] : 0;
  } else {
#pragma unroll
    for (int j = 0; j < 6; ++j) {
      const std::int64_t at = column + j - image.pad_x;
      x[j] = there && at >= 0 && at < image.input_w ? row[at] : 0;
    }
  }
}

/// What a lane has of a row: its bins go to memory, and whether the row's block has a NaN.
__device__ __forceinline__ void put_bins(const BinImage& to, int y, int block, int column, unsigned word,
                                         bool nan) {
  *reinterpret_cast<unsigned*>(to.bins + y * to.pitch + column) = word;
  nan = __any_sync(kAll, nan);
  if (threadIdx.x % kWarp == 0) to.nans[static_cast<std::int64_t>(y) * to.blocks + block] = nan;
}

/// Rows of weights that are not all finite: in the padding there are no taps, where zeros would make NaN of them.
__device__ __noinline__ static unsigned put_slowly(ConvImage image, Bins bins, BinImage to, int first,
                                                   int block, int column) {
  unsigned clamped = 0;
  for (int y = first; y < min(first + kBinRows, to.h); ++y) {
    unsigned word = 0;
    bool nan = false;
    for (int m = 0; m < 4; ++m) {
      if (column + m >= to.w) break;
      const float sum = conv_at(image, y, column + m);
      word |= bins(sum) << (8 * m);
      nan |= isnan(sum);
      clamped += bins.clamps(sum);
    }
    put_bins(to, y, block, column, word, nan);
  }
  return clamped;
}

/// `bins_now` is asked while inputs are on their way.
template <bool kVectors, class BinsNow>
__device__ __forceinline__ unsigned put_rows(const ConvImage& image, const float (&weight)[9],
                                             BinsNow bins_now, const BinImage& to, int first, int block,
                                             int column) {
  float x[kBinRows + 2][6];
#pragma unroll
  for (int i = 0; i < kBinRows + 2; ++i) load_taps<kVectors>(image, first + i - image.pad_y, column, x[i]);
  const Bins bins = bins_now();
  unsigned clamped = 0;
#pragma unroll
  for (int r = 0; r < kBinRows; ++r) {
    if (first + r >= to.h) break;
    unsigned word = 0;
    bool nan = false;
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      float sum = 0;
#pragma unroll
      for (int t = 0; t < 9; ++t) sum = __fmaf_rn(weight[t], x[r + t / 3][m + t % 3], sum);
      const bool there = column + m < to.w;
      word |= bins(sum) << (8 * m);
      nan |= there && isnan(sum);
      clamped += there && bins.clamps(sum);
    }
    put_bins(to, first + r, block, column, word, nan);
  }
  return clamped;
}

/// kVectors: a padding of one column, and rows of whole groups of four at 16 bytes.
template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, kVectors ? 3 : 2)
    conv_bins(LabelJob job, ConvImage image, BinImage to) {
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kBinWarps + threadIdx.x / kWarp;
  const int block = static_cast<int>(unit % to.blocks), first = static_cast<int>(unit / to.blocks) * kBinRows;
  const int column = block * BinImage::kBlock + 4 * static_cast<int>(threadIdx.x % kWarp);
  streaming::follow();
  unsigned clamped = 0;
  if (first < to.h) {
    float weight[9];
    bool finite = true;
#pragma unroll
    for (int t = 0; t < 9; ++t) weight[t] = image.k[t], finite &= isfinite(weight[t]);
    const auto bins_now = [&] {
      return job.range == Range::given ? job.bins : bound_of(image, job.bins.lo, job.bins.hi);
    };
    clamped = finite ? put_rows<kVectors>(image, weight, bins_now, to, first, block, column)
                     : put_slowly(image, bins_now(), to, first, block, column);
  }
  add_clamped(clamped, job.totals, job.clamped);
}

}  // namespace fulcrum::backends::cuda::entropy
