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

/// As Stage, of a convolution. Taps in the padding meet zeros, which can change no more than the sign of a sum of zero:
/// the bin is the same.
template <class Shape>
struct ConvStage {
  static constexpr int kLoads = Shape::kLoads;

  Line<Shape> line;
  Bins bins;
  const float* row;  // the next input row, under the first tap of this lane's first pixel
  std::int64_t pitch;
  int y, h;       // of the next input row; input rows
  unsigned taps;  // bit 3 m + j: the image has a pixel under tap j of pixel m
  float weight[9];
  float one[kLoads], two[kLoads];  // sums with one and two rows of taps
  float next[kLoads][3];

  __device__ __forceinline__ ConvStage(const ConvImage& image, const Bins& bins, const Strip<int>& strip,
                                       int first, int)
      : line(strip, static_cast<int>(image.w)),
        bins(bins),
        pitch(image.input_w),
        y(first - static_cast<int>(image.pad_y)),
        h(static_cast<int>(image.input_h)),
        taps(0) {
    const int left = strip.column - Shape::kHalf + static_cast<int>(threadIdx.x % kWarp - image.pad_x);
    row = image.x + y * pitch + left;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        const int column = left + m * kWarp + j;
        if ((line.seen >> m & 1) != 0 && column >= 0 && column < image.input_w) taps |= 1U << (3 * m + j);
      }
      one[m] = two[m] = 0;
    }
#pragma unroll
    for (int t = 0; t < 9; ++t) weight[t] = image.k[t];
    float unused[kLoads];
#pragma unroll 1
    for (int i = 0; i < 2; ++i) {
      fetch();
      add(unused);
    }
    fetch();
  }

  __device__ __forceinline__ void fetch() {
    const bool there = y >= 0 && y < h;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        next[m][j] = there && (taps >> (3 * m + j) & 1) != 0 ? row[m * kWarp + j] : 0;
      }
    }
    row += pitch;
    ++y;
  }
  /// The row that was fetched last is the first, second and third row of taps of three rows of outputs, the last of
  /// which is complete.
  __device__ __forceinline__ void add(float (&complete)[kLoads]) {
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      float sums[3] = {0, one[m], two[m]};
#pragma unroll
      for (int j = 0; j < 3; ++j) {
#pragma unroll
        for (int i = 0; i < 3; ++i) sums[i] = __fmaf_rn(weight[3 * i + j], next[m][j], sums[i]);
      }
      one[m] = sums[0], two[m] = sums[1], complete[m] = sums[2];
    }
  }
  __device__ __forceinline__ bool put(unsigned char* to, bool counted, unsigned& clamped) {
    float x[kLoads];
    add(x);
    fetch();
    return line.put(x, bins, to, counted, clamped);
  }
};

template <class Shape>
struct StageOf<ConvImage, Shape> {
  using Type = ConvStage<Shape>;
};

}  // namespace fulcrum::backends::cuda::entropy
