// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernels of local entropy share: the rule from pixel to bin, the finite extremes of an image, the count of
// clamped pixels, the table T on the device, and bits from a sum of T.
#pragma once

#include <cfloat>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::entropy {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAll = 0xFFFFFFFFU;
inline constexpr std::int64_t kTableEntries = 255 * 255 + 1;

/// As the op defines it; NaN goes to bin 0.
struct Bins {
  float lo, hi, scale;

  __device__ __forceinline__ unsigned operator()(float x) const {
    const float at = __fmul_rn(__fsub_rn(x, lo), scale);
    return at > 0 ? static_cast<unsigned>(at < 255 ? at : 255.0F) : 0U;
  }
  __device__ __forceinline__ bool clamps(float x) const { return x < lo || x > hi; }
};

__host__ __device__ inline Bins bins_between(float lo, float hi) {
  if (!(lo < hi)) return Bins{lo, hi, 0};
  const double scale = 256 / (static_cast<double>(hi) - lo);
  return Bins{lo, hi, scale < FLT_MAX ? static_cast<float>(scale) : FLT_MAX};
}

/// For finite extremes, min > max when there is nothing finite.
__device__ inline Bins bins_of_image(float min, float max) {
  if (min > max) min = max = 0;
  Bins bins = bins_between(min, max);
  if (min == max) bins.scale = FLT_MAX;
  return bins;
}

/// What CTAs of a call add up: in a plan's scratch memory, as made by reset() before and after every call. Extremes are
/// integers in the order of the floats, so that atomics of any order give one result.
struct Totals {
  unsigned long long clamped;
  unsigned tickets;
  int min, max;
  Bins bins;  // of a call whose first launch knows them
};

__device__ __forceinline__ int ordered(float x) {
  const int bits = __float_as_int(x);
  return bits ^ ((bits >> 31) & 0x7FFFFFFF);
}
__device__ __forceinline__ float from_ordered(int key) {
  return __int_as_float(key ^ ((key >> 31) & 0x7FFFFFFF));
}
inline constexpr int kNoMin = 0x7F800000;                                   // +Inf
inline constexpr int kNoMax = static_cast<int>(0xFF800000U ^ 0x7FFFFFFFU);  // -Inf

__global__ static void reset(Totals* totals) { *totals = Totals{0, 0, kNoMin, kNoMax, Bins{0, 1, 256}}; }

/// This thread's finite extremes, brought together at the end by whole warps.
struct Extremes {
  int min = kNoMin, max = kNoMax;

  __device__ __forceinline__ void take(float x) {
    if (!isfinite(x)) return;
    const int key = ordered(x);
    min = ::min(min, key), max = ::max(max, key);
  }
  __device__ __forceinline__ void give(Totals* totals) const {
    const int low = __reduce_min_sync(kAll, min), high = __reduce_max_sync(kAll, max);
    if (threadIdx.x % kWarp == 0 && low <= high) {
      atomicMin(&totals->min, low);
      atomicMax(&totals->max, high);
    }
  }
};

/// Where the bins of a call come from.
enum class Range { given, image, first_launch };

__device__ __forceinline__ Bins bins_for(Range range, const Bins& given, const Totals* totals) {
  if (range == Range::given) return given;
  if (range == Range::first_launch) return totals->bins;
  return bins_of_image(from_ordered(__ldcg(&totals->min)), from_ordered(__ldcg(&totals->max)));
}

/// Every thread of the CTA calls it, with what it has clamped: the last CTA writes the sum and leaves the totals as it
/// found them.
__device__ __forceinline__ void add_clamped(unsigned mine, Totals* totals, std::int64_t* clamped) {
  __shared__ unsigned sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const unsigned of_warp = __reduce_add_sync(kAll, mine);
  if (threadIdx.x % kWarp == 0 && of_warp > 0) atomicAdd(&sum, of_warp);
  __syncthreads();
  if (threadIdx.x == 0 && sum > 0) atomicAdd(&totals->clamped, static_cast<unsigned long long>(sum));
  if (streaming::draws_last(&totals->tickets, gridDim.x) && threadIdx.x == 0) {
    *clamped = static_cast<std::int64_t>(atomicExch(&totals->clamped, 0ULL));
    totals->min = kNoMin, totals->max = kNoMax;
  }
}

/// From sums of T to bits for windows of one size: the quotient correctly rounded by a reciprocal that is, and two
/// steps with exact remainders.
struct Finish {
  std::int64_t whole = 0;  // T of all pixels
  double scale = 1, inverse = 1;

  __device__ __forceinline__ void set(int pixels, const std::int64_t* table) {
    whole = table[pixels];
    scale = pixels * 0x1p32;
    inverse = __drcp_rn(scale);
  }
  __device__ __forceinline__ float operator()(std::int64_t sum) const {
    const double bits = __ll2double_rn(whole - sum);
    double quotient = __dmul_rn(bits, inverse);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      quotient = __fma_rn(__fma_rn(-quotient, scale, bits), inverse, quotient);
    }
    return __double2float_rn(quotient);
  }
};

struct Image {
  const float* x;
  std::int64_t h, w;
};

__device__ __noinline__ static bool window_has_nan(Image image, std::int64_t y, std::int64_t x, int window) {
  const std::int64_t top = y - window / 2, left = x - window / 2;
  for (std::int64_t r = max(top, std::int64_t{0}); r < min(top + window, image.h); ++r) {
    for (std::int64_t c = max(left, std::int64_t{0}); c < min(left + window, image.w); ++c) {
      if (isnan(image.x[r * image.w + c])) return true;
    }
  }
  return false;
}

/// Pixels of the window around `at` that lie in the image, along one axis; 1 where there is none.
template <class Index>
__device__ __forceinline__ int inside_of(Index at, int window, Index size) {
  const Index first = at - window / 2;
  return max(static_cast<int>(min(first + window, size) - max(first, Index{0})), 1);
}

/// The table on the device, while a plan holds it: all plans share one.
struct Table {
  Scratch memory;
  fulcrum_status upload(const void* host) {
    FULCRUM_STATUS(memory.take(kTableEntries * sizeof(std::int64_t)));
    FULCRUM_CUDA(cudaMemcpyAsync(memory.as<void>(), host, kTableEntries * sizeof(std::int64_t),
                                 cudaMemcpyHostToDevice, stream_of(nullptr)));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  }
};

inline fulcrum_status table_on_device(const void* host, std::shared_ptr<const Table>& table) {
  static std::mutex mutex;
  static std::weak_ptr<const Table> shared;
  const std::scoped_lock lock(mutex);
  table = shared.lock();
  if (table) return done();
  if (host == nullptr) return failed(FULCRUM_INVALID_ARGUMENT, "the table of the op was not prepared");
  std::shared_ptr<Table> made(new (std::nothrow) Table);
  if (!made) return failed(FULCRUM_OUT_OF_MEMORY, "the entropy table");
  FULCRUM_STATUS(made->upload(host));
  shared = table = std::move(made);
  return done();
}

/// What a plan of both ops has.
struct Plan {
  std::shared_ptr<const Table> table;
  Scratch totals;
  Scratch middle;  // the convolution between two launches

  fulcrum_status fill(const void* prepared, std::int64_t middle_bytes) {
    FULCRUM_STATUS(table_on_device(prepared, table));
    FULCRUM_STATUS(totals.take(sizeof(Totals)));
    if (middle_bytes > 0) FULCRUM_STATUS(middle.take(static_cast<std::size_t>(middle_bytes)));
    reset<<<1, 1, 0, stream_of(nullptr)>>>(totals.as<Totals>());
    FULCRUM_STATUS(launched("reset of the totals"));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  }
};

inline fulcrum_status make_plan(const void* prepared, std::int64_t middle_bytes, void** plan) {
  auto* made = new (std::nothrow) Plan;
  if (made == nullptr) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of an entropy");
  const fulcrum_status status = made->fill(prepared, middle_bytes);
  if (status.code != FULCRUM_OK) {
    delete made;
    return status;
  }
  *plan = made;
  return status;
}

inline void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

}  // namespace fulcrum::backends::cuda::entropy
