// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a 3 x 3 convolution on their way into the ring of sliding windows: each input row is loaded once, while the
// last one is counted, and adds its taps to the three rows of outputs that it meets, in the order of the definition.
#pragma once

#include "backends/cuda/entropy_window.cuh"

namespace fulcrum::backends::cuda::entropy {

/// An image, a kernel of 3 x 3 and the padding; h and w are those of the convolution.
struct ConvImage {
  const float* x;
  const float* k;
  std::int64_t input_h, input_w, pad_y, pad_x, h, w;
};

__device__ __forceinline__ float conv_at(const ConvImage& c, std::int64_t y, std::int64_t x) {
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const std::int64_t row = y + i - c.pad_y, column = x + j - c.pad_x;
      if (row < 0 || row >= c.input_h || column < 0 || column >= c.input_w) continue;
      sum = __fmaf_rn(c.k[3 * i + j], c.x[row * c.input_w + column], sum);
    }
  }
  return sum;
}

__device__ __noinline__ static bool window_has_nan(ConvImage image, std::int64_t y, std::int64_t x,
                                                   int window) {
  const std::int64_t top = y - window / 2, left = x - window / 2;
  for (std::int64_t r = max(top, std::int64_t{0}); r < min(top + window, image.h); ++r) {
    for (std::int64_t c = max(left, std::int64_t{0}); c < min(left + window, image.w); ++c) {
      if (isnan(conv_at(image, r, c))) return true;
    }
  }
  return false;
}

/// The range of the convolution of an image with values in [lo, hi], by a warp, in every lane.
__device__ __forceinline__ Bins bound_of(const ConvImage& c, float lo, float hi) {
  const bool padded = c.pad_y > 0 || c.pad_x > 0;
  const double a = padded && lo > 0 ? 0.0 : lo, b = padded && hi < 0 ? 0.0 : hi;
  const int lane = threadIdx.x % kWarp;
  const double weight = lane < 9 ? c.k[lane] : 0;
  const double with_a = weight * a, with_b = weight * b;
  const double least = with_b < with_a ? with_b : with_a, most = with_a < with_b ? with_b : with_a;
  double low = 0, high = 0;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    low += __shfl_sync(kAll, least, i);
    high += __shfl_sync(kAll, most, i);
  }
  return bins_between(static_cast<float>(low), static_cast<float>(high));
}

/// As Stage, of a convolution.
template <int kW, int kColumns>
struct ConvStage {
  using Shape = WindowShape<kW, kColumns>;
  static constexpr int kHalf = Shape::kHalf, kLine = Shape::kLine, kLoads = Shape::kLoads;

  Bins bins;
  Strip<int> strip;
  unsigned char* ring;
  const float* row;      // the next input row, under the first tap of this lane's first pixel
  int h, w;              // of the convolution
  int input_h, input_w;  // of the image
  int input_y;           // of the next input row
  int tap;               // column under the first tap of this lane's first pixel
  unsigned own, clamped;
  float weight[9];
  float one[kLoads], two[kLoads];  // sums with one and two rows of taps
  float next[kLoads][3];

  __device__ __forceinline__ void begin(const ConvImage& image, int first) {
    h = static_cast<int>(image.h), w = static_cast<int>(image.w);
    input_h = static_cast<int>(image.input_h), input_w = static_cast<int>(image.input_w);
    const int lane = threadIdx.x % kWarp;
    tap = strip.column - kHalf + lane - static_cast<int>(image.pad_x);
    input_y = first - static_cast<int>(image.pad_y);
    row = image.x + input_y * image.input_w + tap;
    own = clamped = 0;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      const int i = lane + m * kWarp - kHalf;
      if (i >= strip.own_first && i < strip.own_last) own |= 1U << m;
      one[m] = two[m] = 0;
    }
#pragma unroll
    for (int t = 0; t < 9; ++t) weight[t] = image.k[t];
    float unused[kLoads];
    fetch<true>();
    add<true>(unused);
    fetch<true>();
    add<true>(unused);
    fetch<true>();
  }
  /// Whether all taps of the strip's pixels lie in the image, as far as columns tell.
  __device__ __forceinline__ bool is_inner(const ConvImage& image) const {
    const std::int64_t left = strip.column - kHalf, right = left + kLine;
    return left >= image.pad_x && right - image.pad_x + 2 <= image.input_w;
  }

  static __device__ __forceinline__ bool seen(int m) {
    return (m + 1) * kWarp <= kLine || static_cast<int>(threadIdx.x % kWarp) + m * kWarp < kLine;
  }
  template <bool kMasked>
  __device__ __forceinline__ bool meets(int m, int j) const {
    const int column = tap + m * kWarp + j;
    return !kMasked || (column >= 0 && column < input_w);
  }

  template <bool kMasked>
  __device__ __forceinline__ void fetch() {
    if (input_y >= 0 && input_y < input_h) {
#pragma unroll
      for (int m = 0; m < kLoads; ++m) {
#pragma unroll
        for (int j = 0; j < 3; ++j) next[m][j] = seen(m) && meets<kMasked>(m, j) ? row[m * kWarp + j] : 0;
      }
    }
    row += input_w;
    ++input_y;
  }
  /// The row that was fetched last: the first, second and third row of taps of three rows of outputs, the last of which
  /// is complete.
  template <bool kMasked>
  __device__ __forceinline__ void add(float (&complete)[kLoads]) {
    const bool there = input_y > 0 && input_y <= input_h;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      float sums[3] = {0, one[m], two[m]};
      if (there) {
#pragma unroll
        for (int j = 0; j < 3; ++j) {
#pragma unroll
          for (int i = 0; i < 3; ++i) {
            if (meets<kMasked>(m, j)) sums[i] = __fmaf_rn(weight[3 * i + j], next[m][j], sums[i]);
          }
        }
      }
      one[m] = sums[0], two[m] = sums[1], complete[m] = sums[2];
    }
  }

  template <bool kMasked>
  __device__ __forceinline__ bool put(int y, int slot) {
    float x[kLoads];
    add<kMasked>(x);
    unsigned char* to = ring + slot * Shape::kPitch + threadIdx.x % kWarp;
    bool nan = false;
    unsigned outside = 0;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      const int column = strip.column - kHalf + static_cast<int>(threadIdx.x % kWarp) + m * kWarp;
      if (kMasked && (column < 0 || column >= w)) x[m] = bins.lo;
      if (!seen(m)) x[m] = bins.lo;
      if (seen(m)) to[m * kWarp] = static_cast<unsigned char>(bins(x[m]));
      nan |= isnan(x[m]);
      if (bins.clamps(x[m])) outside |= 1U << m;
    }
    if (y >= strip.count_first && y < strip.count_last) clamped += __popc(outside & own);
    return __any_sync(kAll, nan);
  }
};

template <int kW, int kColumns>
struct StageOf<ConvImage, kW, kColumns> {
  using Type = ConvStage<kW, kColumns>;
};

}  // namespace fulcrum::backends::cuda::entropy
