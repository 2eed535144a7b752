// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast on the device. A value that is known is scattered at once to all later steps that it feeds, newest lag
// last, which is the order of the definition: every step's sum is one chain of fmas and the bits are those of the CPU.
// Orders up to 32: a thread a series, open sums in registers. Longer ones: a warp a series, eight steps at a time.
#include <algorithm>
#include <span>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kEveryLane = 0xFFFFFFFFU;
constexpr int kShortOrder = 32;

enum Dim { kSeries, kLength, kOrderOf, kSteps, kModels };

struct Forecast {
  const float *history, *coefficients;
  float* out;
  int64_t series, length, order, steps;
  bool shared;  // one set of coefficients for all series
};

/// Rows first .. first + 31 of [series, stride], `columns` of them from `column` on, into shared memory. Rows past the
/// end are the last again.
__device__ __forceinline__ void load_rows(const float* from, int64_t first, int64_t series, int64_t stride,
                                          int64_t column, int columns, float (*tile)[kWarp + 1]) {
  const int lane = threadIdx.x;
  __syncwarp();
  if (lane < columns) {
    float row[kWarp];  // all on their way at once
#pragma unroll
    for (int r = 0; r < kWarp; ++r) row[r] = from[min(first + r, series - 1) * stride + column + lane];
#pragma unroll
    for (int r = 0; r < kWarp; ++r) tile[r][lane] = row[r];
  }
  __syncwarp();
}

/// One series by a thread: sum[j] is what the step j ahead has so far. Coefficients past the order are zero.
template <int kMost>
struct Series {
  float c[kMost], sum[kMost];
  int order;

  /// The next value is known: it goes to all later steps, which move up. A zero coefficient changes nothing, unless the
  /// value is NaN or Inf.
  __device__ __forceinline__ void take(float y) {
#pragma unroll
    for (int j = 0; j + 1 < kMost; ++j) sum[j] = __fmaf_rn(c[j], y, sum[j + 1]);
    sum[kMost - 1] = __fmaf_rn(c[kMost - 1], y, 0.0F);
    if (fabsf(y) < INFINITY || order == kMost) return;
#pragma unroll
    for (int j = 0; j < kMost; ++j) sum[j] = j < order ? sum[j] : 0;
  }

  /// The whole history, oldest first.
  __device__ __forceinline__ void begin(const float* history) {
#pragma unroll
    for (int j = 0; j < kMost; ++j) sum[j] = 0;
    if (order < kMost) {
#pragma unroll 1
      for (int i = 0; i < order; ++i) take(history[i]);
      return;
    }
#pragma unroll
    for (int i = 0; i < kMost; ++i) {  // without the steps that are history themselves
#pragma unroll
      for (int j = 0; j <= i; ++j) sum[j] = __fmaf_rn(c[kMost - 1 - i + j], history[i], sum[j]);
    }
  }
};

/// A warp a CTA, a series a lane.
template <int kMost>
__global__ void __launch_bounds__(kWarp) ar_forecast_threads(Forecast f) {
  __shared__ float tile[kWarp][kWarp + 1];
  const int lane = threadIdx.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kWarp;
  streaming::follow();
  Series<kMost> own;
  own.order = static_cast<int>(f.order);
  if (!f.shared) load_rows(f.coefficients, first, f.series, f.order, 0, own.order, tile);
  const float* c = f.shared ? f.coefficients : tile[lane];
#pragma unroll
  for (int j = 0; j < kMost; ++j) own.c[j] = j < own.order ? c[j] : 0;
  load_rows(f.history, first, f.series, f.length, f.length - f.order, own.order, tile);
  own.begin(tile[lane]);
  for (int64_t t0 = 0; t0 < f.steps; t0 += kWarp) {
    const int count = static_cast<int>(min(int64_t{kWarp}, f.steps - t0));
    __syncwarp();
    for (int k = 0; k < count; ++k) {
      const float y = own.sum[0];
      tile[lane][k] = y;
      own.take(y);
    }
    __syncwarp();
    const int rows = static_cast<int>(min(int64_t{kWarp}, f.series - first));
    if (lane < count) {
      float* to = f.out + first * f.steps + t0 + lane;
#pragma unroll 8
      for (int r = 0; r < rows; ++r) to[r * f.steps] = tile[r][lane];
    }
  }
}

constexpr int kBlock = 8;  // steps at a time
constexpr int kWarps = 4;  // series of a CTA

/// One series by a warp: lane l has the open sums of the steps l * kPer .. ahead, and their coefficients.
template <int kPer>
struct Open {
  float sum[kPer], c[kPer + kBlock - 1];
  int first, order;  // of this lane's coefficients; of the model

  /// The next kBlock values are known: they go to all later steps, which move up. Coefficients past the order are zero
  /// and change nothing, unless a value is NaN or Inf.
  __device__ __forceinline__ void take(const float (&y)[kBlock]) {
    float above[kBlock];
#pragma unroll
    for (int k = 0; k < kBlock; ++k) {
      above[k] = __shfl_down_sync(kEveryLane, sum[k], 1);
      if (threadIdx.x % kWarp == kWarp - 1) above[k] = 0;
    }
    bool finite = true;
#pragma unroll
    for (int k = 0; k < kBlock; ++k) finite &= fabsf(y[k]) < INFINITY;
    if (finite) {
      move<true>(y, above);
    } else {
      move<false>(y, above);
    }
  }

 private:
  template <bool kFinite>
  __device__ __forceinline__ void move(const float (&y)[kBlock], const float (&above)[kBlock]) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      float moved = i + kBlock < kPer ? sum[(i + kBlock) % kPer] : above[(i + kBlock) % kPer % kBlock];
#pragma unroll
      for (int k = 0; k < kBlock; ++k) {
        const float added = __fmaf_rn(c[i + kBlock - 1 - k], y[k], moved);
        moved = kFinite || first + i + kBlock - 1 - k < order ? added : moved;
      }
      sum[i] = moved;
    }
  }
};

/// Orders from 33 to 32 kPer.
template <int kPer>
__global__ void __launch_bounds__(kWarps* kWarp) ar_forecast_warps(Forecast f) {
  const int lane = threadIdx.x % kWarp;
  const int64_t series = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (series >= f.series) return;
  streaming::follow();
  const float* c = f.coefficients + (f.shared ? 0 : series * f.order);
  const int order = static_cast<int>(f.order);
  Open<kPer> open;
  open.first = lane * kPer;
  open.order = order;
#pragma unroll
  for (int i = 0; i < kPer; ++i) open.sum[i] = 0;
#pragma unroll
  for (int m = 0; m < kPer + kBlock - 1; ++m) open.c[m] = open.first + m < order ? c[open.first + m] : 0;
  float newest[kBlock - 1];  // coefficients that lead from one step of a block to another
#pragma unroll
  for (int m = 0; m < kBlock - 1; ++m) newest[m] = c[m];

  // The history, 32 values at a time. What comes before the first lag feeds steps that are history themselves.
  const float* end = f.history + (series + 1) * f.length;
  const int rounded = (order + kWarp - 1) / kWarp * kWarp;
  for (int s = -rounded; s < 0; s += kWarp) {
    const float known = s + lane >= -order ? end[s + lane] : 0;
#pragma unroll 1
    for (int b = 0; b < kWarp; b += kBlock) {
      float y[kBlock];
#pragma unroll
      for (int k = 0; k < kBlock; ++k) y[k] = __shfl_sync(kEveryLane, known, b + k);
      open.take(y);
    }
  }
  float* out = f.out + series * f.steps;
  for (int64_t t = 0; t < f.steps; t += kBlock) {
    float y[kBlock], mine = 0;
#pragma unroll
    for (int k = 0; k < kBlock; ++k) y[k] = __shfl_sync(kEveryLane, open.sum[k], 0);
#pragma unroll
    for (int k = 0; k < kBlock; ++k) {  // every lane does all: no trips between lanes on the way
#pragma unroll
      for (int m = 0; m < k; ++m) y[k] = __fmaf_rn(newest[k - 1 - m], y[m], y[k]);
      mine = lane == k ? y[k] : mine;
    }
    if (lane < kBlock && t + lane < f.steps) out[t + lane] = mine;
    open.take(y);
  }
}

using Kernel = void (*)(Forecast);
Kernel kernel_for(int64_t order) {
  if (order <= 4) return ar_forecast_threads<4>;
  if (order <= 8) return ar_forecast_threads<8>;
  if (order <= 16) return ar_forecast_threads<16>;
  if (order <= kShortOrder) return ar_forecast_threads<kShortOrder>;
  if (order <= 256) return ar_forecast_warps<8>;
  return order <= 512 ? ar_forecast_warps<16> : ar_forecast_warps<32>;
}

fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const Forecast f{.history = a->in<float>(0),
                   .coefficients = a->in<float>(1),
                   .out = a->out<float>(2),
                   .series = a->dim[kSeries],
                   .length = a->dim[kLength],
                   .order = a->dim[kOrderOf],
                   .steps = a->dim[kSteps],
                   .shared = a->dim[kModels] == 1};
  if (f.series == 0 || f.steps == 0) return done();
  const bool programmatic = streaming::can_follow(a) != 0;
  const auto warps = static_cast<int>(std::clamp<int64_t>(f.series / device().sms, 1, kWarps));
  const streaming::Launch shape =
      f.order <= kShortOrder
          ? streaming::Launch{streaming::divide_up(f.series, kWarp), kWarp, programmatic}
          : streaming::Launch{streaming::divide_up(f.series, warps), warps * kWarp, programmatic};
  return streaming::launch(kernel_for(f.order), shape, stream, count, f);
}

}  // namespace

std::span<const fulcrum_kernel> ar_forecast() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 2, .isa = streaming::isa, .run = run}};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
