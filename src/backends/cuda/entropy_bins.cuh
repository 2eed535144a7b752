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

/// Where bins come from, and how many values are clamped.
struct BinJob {
  Range range;
  Bins bins;
  Totals* totals;
  std::int64_t* clamped;
};

/// A warp's block of columns and its first row; four columns a lane.
struct BinPlace {
  int lane, block, first, column;

  __device__ __forceinline__ explicit BinPlace(const BinImage& to) : lane(threadIdx.x % kWarp) {
    // Units of a thousand pixels are fewer than 2^32.
    const unsigned unit = blockIdx.x * kBinWarps + threadIdx.x / kWarp,
                   blocks = static_cast<unsigned>(to.blocks);
    block = static_cast<int>(unit % blocks), first = static_cast<int>(unit / blocks) * kBinRows;
    column = block * BinImage::kBlock + 4 * lane;
  }
  __device__ __forceinline__ void store(const BinImage& to, int y, unsigned word) const {
    *reinterpret_cast<unsigned*>(to.bins + y * to.pitch + column) = word;
  }
  /// Which rows of the warp's have a NaN, a bit each: by whole warps.
  __device__ __forceinline__ void store_nans(const BinImage& to, unsigned rows) const {
    rows = __reduce_or_sync(kAll, rows);
    if (lane < kBinRows && first + lane < to.h)
      to.nans[static_cast<std::int64_t>(first + lane) * to.blocks + block] = rows >> lane & 1U;
  }
};

/// Bins of four pixels, a byte each. A sum with 2^23 has a whole number in its lowest bits.
__device__ __forceinline__ unsigned four_bins(const Bins& bins, const float (&x)[4]) {
  unsigned bin[4];
#pragma unroll
  for (int m = 0; m < 4; ++m) {
    const float at = fminf(fmaxf(__fmul_rn(__fsub_rn(x[m], bins.lo), bins.scale), 0.0F), 255.0F);  // NaN: 0
    bin[m] = __float_as_uint(__fadd_rz(at, 0x1p23F));
  }
  return __byte_perm(__byte_perm(bin[0], bin[1], 0x0040), __byte_perm(bin[2], bin[3], 0x0040), 0x5410);
}

/// What is found beside bins: pixels that are clamped, and rows of the warp's with a NaN, a bit each.
struct Found {
  unsigned clamped = 0, nans = 0;

  /// Row r of the warp's: the first `there` of these pixels lie in the image.
  __device__ __forceinline__ void take(const Bins& bins, const float (&x)[4], int r, int there) {
    bool nan = false;
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const bool inside = m < there;
      nan |= isnan(x[m]) & inside;
      if (((x[m] < bins.lo) | (x[m] > bins.hi)) & inside) ++clamped;
    }
    if (nan) nans |= 1U << r;
  }
};

/// Rows of inputs under the first taps of a lane's four outputs and five columns on; zeros outside of the image.
/// kVectors: four of a row come at once, the others from the lanes beside.
template <bool kVectors>
struct Taps {
  static constexpr int kRows = kBinRows + 2, kLoads = kVectors ? 5 : 6;
  float loaded[kRows][kLoads];

  __device__ __forceinline__ void load(const ConvImage& image, const BinPlace& place) {
    const int h = static_cast<int>(image.input_h), w = static_cast<int>(image.input_w);
    const int top = place.first - static_cast<int>(image.pad_y);
    const int left = place.column - static_cast<int>(image.pad_x);
    // Of a vector's lanes only the outermost look beside it.
    const int beside = place.lane == 0 ? left : place.column + 4;
    const bool outer = (place.lane == 0 || place.lane == kWarp - 1) && beside >= 0 && beside < w;
    const float* row = image.x + top * image.input_w;
#pragma unroll
    for (int i = 0; i < kRows; ++i, row += image.input_w) {
      const bool there = static_cast<unsigned>(top + i) < static_cast<unsigned>(h);
      if constexpr (kVectors) {
        float4 four = make_float4(0, 0, 0, 0);
        if (there && place.column < w) four = *reinterpret_cast<const float4*>(row + place.column);
        loaded[i][0] = four.x, loaded[i][1] = four.y, loaded[i][2] = four.z, loaded[i][3] = four.w;
        loaded[i][4] = there && outer ? row[beside] : 0;
      } else {
#pragma unroll
        for (int j = 0; j < 6; ++j) {
          loaded[i][j] = there && left + j >= 0 && left + j < w ? row[left + j] : 0;
        }
      }
    }
  }
  /// By whole warps.
  __device__ __forceinline__ void spread(int i, float (&x)[6]) const {
    if constexpr (kVectors) {
      const int lane = threadIdx.x % kWarp;
      const float left = __shfl_up_sync(kAll, loaded[i][3], 1);
      const float right = __shfl_down_sync(kAll, loaded[i][0], 1);
      x[0] = lane == 0 ? loaded[i][4] : left;
      x[5] = lane == kWarp - 1 ? loaded[i][4] : right;
#pragma unroll
      for (int j = 0; j < 4; ++j) x[1 + j] = loaded[i][j];
    } else {
#pragma unroll
      for (int j = 0; j < 6; ++j) x[j] = loaded[i][j];
    }
  }
};

__device__ __noinline__ static float conv_apart(ConvImage image, int y, int x) {
  return conv_at(image, y, x);
}

/// In the padding there are no taps: where a weight is not finite, zeros would make NaN of them.
__device__ __forceinline__ void conv_bins_apart(const ConvImage& image, const BinImage& to,
                                                const BinPlace& place, const Bins& bins, Found& found) {
  const int there = to.w - place.column;
#pragma unroll 1
  for (int r = 0; r < kBinRows && place.first + r < to.h; ++r) {
    const int y = place.first + r;
    float sum[4] = {};
#pragma unroll 1
    for (int m = 0; m < 4; ++m) {
      const float value = m < there ? conv_apart(image, y, place.column + m) : 0;
      sum[0] = sum[1], sum[1] = sum[2], sum[2] = sum[3], sum[3] = value;
    }
    place.store(to, y, four_bins(bins, sum));
    found.take(bins, sum, r, there);
  }
}

/// kVectors: a padding of one column, and rows of whole groups of four at 16 bytes.
template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 2) conv_bins(BinJob job, ConvImage image, BinImage to) {
  __shared__ Bins shared_bins;
  const BinPlace place(to);
  streaming::follow();
  Taps<kVectors> taps;
  taps.load(image, place);
  float weight[9];
  bool finite = true;
#pragma unroll
  for (int t = 0; t < 9; ++t) weight[t] = image.k[t], finite &= isfinite(weight[t]);
  if (threadIdx.x < kWarp) {  // while inputs are on their way
    const Bins bins = job.range == Range::given ? job.bins : bound_of(image, job.bins.lo, job.bins.hi);
    if (place.lane == 0) shared_bins = bins;
  }
  __syncthreads();
  const Bins bins = shared_bins;
  Found found;
  if (finite) {
    // Of a vector all columns lie in the image or none.
    const int there = kVectors ? 4 : to.w - place.column;
    float x[kBinRows + 2][6];
    taps.spread(0, x[0]);
    taps.spread(1, x[1]);
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      if (place.first + r >= to.h) break;
      taps.spread(r + 2, x[r + 2]);
      float sum[4] = {};
#pragma unroll
      for (int m = 0; m < 4; ++m) {
#pragma unroll
        for (int t = 0; t < 9; ++t) sum[m] = __fmaf_rn(weight[t], x[r + t / 3][m + t % 3], sum[m]);
      }
      place.store(to, place.first + r, four_bins(bins, sum));
      found.take(bins, sum, r, there);
    }
    if (place.column >= to.w) found = Found{};
  } else {
    conv_bins_apart(image, to, place, bins, found);
  }
  place.store_nans(to, found.nans);
  add_clamped(found.clamped, job.totals, job.clamped);
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

template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 4) image_bins(const float* x, BinImage to, BinJob job) {
  const BinPlace place(to);
  streaming::follow();
  Found found;
  if (place.first < to.h) {
    const Bins bins = bins_for(job.range, job.bins, job.totals);
    float value[kBinRows][4];
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      const float* const row = x + static_cast<std::int64_t>(min(place.first + r, to.h - 1)) * to.w;
      load_four<kVectors>(row, place.column, to.w, bins.lo, value[r]);
    }
#pragma unroll
    for (int r = 0; r < kBinRows; ++r) {
      if (place.first + r >= to.h) break;
      place.store(to, place.first + r, four_bins(bins, value[r]));
      found.take(bins, value[r], r, 4);
    }
    place.store_nans(to, found.nans);
  }
  add_clamped(found.clamped, job.totals, job.clamped);
}

/// Bytes that are bins already: there is nothing to clamp and no NaN.
template <bool kVectors>
__global__ void __launch_bounds__(kBinWarps* kWarp, 4)
    byte_bins(const unsigned char* x, BinImage to, std::int64_t* clamped) {
  const BinPlace place(to);
  streaming::follow();
  if (blockIdx.x == 0 && threadIdx.x == 0) *clamped = 0;
  if (place.first >= to.h) return;
  unsigned word[kBinRows];
#pragma unroll
  for (int r = 0; r < kBinRows; ++r) {
    const unsigned char* row = x + static_cast<std::int64_t>(min(place.first + r, to.h - 1)) * to.w;
    word[r] = 0;
    if constexpr (kVectors) {
      if (place.column < to.w) word[r] = *reinterpret_cast<const unsigned*>(row + place.column);
    } else {
#pragma unroll
      for (int m = 0; m < 4; ++m) {
        if (place.column + m < to.w) word[r] |= static_cast<unsigned>(row[place.column + m]) << (8 * m);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kBinRows; ++r) {
    if (place.first + r < to.h) place.store(to, place.first + r, word[r]);
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
