// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An image, or a 3 x 3 convolution of one, stored as the bins of its values, a byte each: an eighth of what the values of
// a convolution would move. A warp has blocks of 128 columns and a few rows, all of whose inputs are on their way at
// once.
#pragma once

#include "backends/cuda/entropy_conv.cuh"
#include "backends/cuda/entropy_fours.cuh"

namespace fulcrum::backends::cuda::entropy {

inline constexpr int kBinWarps = 8, kBinRows = 8;

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

__device__ __noinline__ static float conv_apart(ConvImage image, int y, int x) {
  return conv_at(image, y, x);
}

/// kVectors: a padding of one column, and rows of whole groups of four at 16 bytes.
template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 2) conv_bins(LabelJob job, ConvImage image, BinImage to) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kBinWarps + threadIdx.x / kWarp;
  const int block = static_cast<int>(unit % to.blocks), first = static_cast<int>(unit / to.blocks) * kBinRows;
  const int column = block * BinImage::kBlock + 4 * lane;
  streaming::follow();
  unsigned clamped = 0;
  if (first < to.h) {
    const Bins bins = job.range == Range::given ? job.bins : bound_of(image, job.bins.lo, job.bins.hi);
    float weight[9], x[kBinRows + 2][6];
    bool finite = true;
#pragma unroll
    for (int t = 0; t < 9; ++t) weight[t] = image.k[t], finite &= isfinite(weight[t]);
#pragma unroll
    for (int i = 0; i < kBinRows + 2; ++i) load_taps<kVectors>(image, first + i - image.pad_y, column, x[i]);
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      const int y = first + r;
      if (y >= to.h) break;
      unsigned word = 0;
      bool nan = false;
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        float sum = 0;
#pragma unroll
        for (int t = 0; t < 9; ++t) sum = __fmaf_rn(weight[t], x[r + t / 3][m + t % 3], sum);
        // In the padding there are no taps: where a weight is not finite, zeros would make NaN of them.
        const bool there = column + m < to.w;
        if (!finite && there) sum = conv_apart(image, y, column + m);
        word |= bins(sum) << (8 * m);
        nan |= there && isnan(sum);
        clamped += there && bins.clamps(sum);
      }
      *reinterpret_cast<unsigned*>(to.bins + y * to.pitch + column) = word;
      nan = __any_sync(kAll, nan);
      if (lane == 0) to.nans[static_cast<std::int64_t>(y) * to.blocks + block] = nan;
    }
  }
  add_clamped(clamped, job.totals, job.clamped);
}

/// Four pixels of a row from `column` on, those past its end like `outside`. kVectors: rows are whole groups of four that
/// lie at multiples of their size.
template <bool kVectors>
__device__ __forceinline__ void load_four(const float* row, int column, int w, float outside, float (&x)[4]) {
  if constexpr (kVectors) {
    const float4 four = column < w ? *reinterpret_cast<const float4*>(row + column)
                                   : make_float4(outside, outside, outside, outside);
    x[0] = four.x, x[1] = four.y, x[2] = four.z, x[3] = four.w;
  } else {
#pragma unroll
    for (int m = 0; m < 4; ++m) x[m] = column + m < w ? row[column + m] : outside;
  }
}

/// Where an image's bins come from, and how many of its pixels are clamped.
struct BinJob {
  Range range;
  Bins bins;
  Totals* totals;
  std::int64_t* clamped;
};

template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 4) image_bins(const float* x, BinImage to, BinJob job) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kBinWarps + threadIdx.x / kWarp;
  const int block = static_cast<int>(unit % to.blocks), first = static_cast<int>(unit / to.blocks) * kBinRows;
  const int column = block * BinImage::kBlock + 4 * lane;
  streaming::follow();
  unsigned clamped = 0;
  if (first < to.h) {
    const Bins bins = bins_for(job.range, job.bins, job.totals);
    float value[kBinRows][4];
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      const int y = min(first + r, to.h - 1);
      load_four<kVectors>(x + static_cast<std::int64_t>(y) * to.w, column, to.w, bins.lo, value[r]);
    }
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      const int y = first + r;
      if (y >= to.h) break;
      unsigned word = 0;
      bool nan = false;
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        word |= bins(value[r][m]) << (8 * m);
        nan |= isnan(value[r][m]);
        clamped += bins.clamps(value[r][m]);
      }
      *reinterpret_cast<unsigned*>(to.bins + y * to.pitch + column) = word;
      nan = __any_sync(kAll, nan);
      if (lane == 0) to.nans[static_cast<std::int64_t>(y) * to.blocks + block] = nan;
    }
  }
  add_clamped(clamped, job.totals, job.clamped);
}

/// Bytes that are bins already: there is nothing to clamp and no NaN.
template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 4)
    byte_bins(const unsigned char* x, BinImage to, std::int64_t* clamped) {
  const int lane = threadIdx.x % kWarp;
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kBinWarps + threadIdx.x / kWarp;
  const int block = static_cast<int>(unit % to.blocks), first = static_cast<int>(unit / to.blocks) * kBinRows;
  const int column = block * BinImage::kBlock + 4 * lane;
  streaming::follow();
  if (blockIdx.x == 0 && threadIdx.x == 0) *clamped = 0;
  if (first >= to.h) return;
  unsigned word[kBinRows];
#pragma unroll
  for (int r = 0; r < kBinRows; ++r) {
    const unsigned char* row = x + static_cast<std::int64_t>(min(first + r, to.h - 1)) * to.w;
    word[r] = 0;
    if constexpr (kVectors) {
      if (column < to.w) word[r] = *reinterpret_cast<const unsigned*>(row + column);
    } else {
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        if (column + m < to.w) word[r] |= static_cast<unsigned>(row[column + m]) << (8 * m);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kBinRows; ++r) {
    if (first + r < to.h) *reinterpret_cast<unsigned*>(to.bins + (first + r) * to.pitch + column) = word[r];
  }
}

/// Bytes as the pixels whose bins they are in the range 0 to 1.
__global__ static void widen_bytes(const unsigned char* x, std::int64_t n, float* to) {
  streaming::follow();
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
    to[i] = __fdiv_rn(static_cast<float>(x[i]), 255.0F);
}

}  // namespace fulcrum::backends::cuda::entropy
