// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows of any size that slide down the columns of an image, a column a thread: pixels come straight from memory, T
// from the caches, counts of 16 bits lie in shared memory, each thread's in its own bank.
#pragma once

#include "backends/cuda/entropy_window.cuh"

namespace fulcrum::backends::cuda::entropy {

/// One window of a thread; has what sinks want of Windows.
struct AnyWindow {
  static constexpr int kWarps = 4, kThreads = kWarps * kWarp;

  unsigned char* memory;
  const std::int64_t* table;
  std::int64_t sum[1] = {0};

  __device__ __forceinline__ std::uint16_t& place(unsigned bin) const {
    return *reinterpret_cast<std::uint16_t*>(memory + (bin >> 1) * 512 + (bin & 1) * 2 + threadIdx.x * 4);
  }
  __device__ __forceinline__ void enter(unsigned bin) {
    std::uint16_t& count = place(bin);
    const unsigned before = count;
    count = static_cast<std::uint16_t>(before + 1);
    sum[0] += table[before + 1] - table[before];
  }
  __device__ __forceinline__ void leave(unsigned bin) {
    std::uint16_t& count = place(bin);
    const unsigned before = count;
    count = static_cast<std::uint16_t>(before - 1);
    sum[0] -= table[before] - table[before - 1];
  }
};

/// As slide_strip(). Lanes are on their own here: NaN is what a lane's own window has seen.
template <class Sink>
__device__ __forceinline__ unsigned slide_any(const Image& image, const Bins& bins,
                                              const Strip<std::int64_t>& strip, int window,
                                              unsigned char* memory, const std::int64_t* table, Sink& sink) {
  const std::int64_t column = strip.column + threadIdx.x % kWarp;
  const std::int64_t left = max(column - window / 2, std::int64_t{0});
  const std::int64_t right = min(column - window / 2 + window, image.w);
  const std::int64_t top = strip.first - window / 2, bottom = strip.last - 1 - window / 2 + window;
  const int lane = threadIdx.x % kWarp;
  const bool own = lane >= strip.own_first && lane < strip.own_last && column >= 0 && column < image.w;
  AnyWindow windows{.memory = memory, .table = table};
  unsigned clamped = 0;
  std::int64_t last_nan = -window - 1;  // above every window
#pragma unroll 1
  for (std::int64_t row = max(top, std::int64_t{0}); row < bottom; ++row) {
    const std::int64_t leaving = row - window;
    if (row < image.h) {
      const float* from = image.x + row * image.w;
      for (std::int64_t c = left; c < right; ++c) {
        const float x = from[c];
        if (isnan(x)) last_nan = row;
        windows.enter(bins(x));
      }
      if (own && row >= strip.count_first && row < strip.count_last && bins.clamps(from[column])) ++clamped;
    }
    if (leaving >= max(top, std::int64_t{0})) {
      const float* from = image.x + leaving * image.w;
      for (std::int64_t c = left; c < right; ++c) windows.leave(bins(from[c]));
    }
    __syncwarp();
    if (row - top >= window - 1) sink.take(row - (window - 1 - window / 2), windows, last_nan > leaving);
  }
  return clamped;
}

}  // namespace fulcrum::backends::cuda::entropy
