// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax of many rows by warps that stay: each has a ring of rows in shared memory, which bulk copies fill, and takes
// its rows one after the other. No warp waits for another.
//
// A call of some microseconds loses one or two between its last row and the next call's first, in which memory would be
// idle. So CTAs of the call behind come up in the places of those that end, and fetch their first rows into L2 before
// they wait.
#pragma once

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/softmax_rows.cuh"

namespace fulcrum::backends::cuda::rows {

inline constexpr int kRingRow = 1024;  // elements of the longest row
inline constexpr int kRingWarps = 8;
// Timed on an H200 with 4096 rows, 8.78 us: two or three places took 10 % and 3 % longer, no or two rows ahead 6 % and
// 7 %, and rows that do not leave the caches first 3 %.
inline constexpr int kRingPlaces = 4;
inline constexpr int kRingAhead = 1;  // rows of each warp that are fetched into L2 while the call before ends
inline constexpr std::size_t kRingBytes = sizeof(float) * kRingRow * kRingWarps * kRingPlaces;

/// The rows of a warp: w, w + all warps, and so on, where neighbours in w are on different SMs.
struct RowsOfWarp {
  std::int64_t first, stride, end;

  __device__ static RowsOfWarp of(std::int64_t rows) {
    const std::int64_t ctas = gridDim.x, warp = threadIdx.x / kWarp;
    return {warp * ctas + blockIdx.x, ctas * kRingWarps, rows};
  }
};

/// Rows lie at multiples of 16 bytes; kFull: and have kRingRow elements, none of which is asked for.
///
/// Why no place is overwritten while it is read: a lane fills it again behind the warp's barrier that follows the reads.
/// A place's barrier completes one phase for each fill, and `parity` counts the fills of the places in turn.
template <bool kLog, bool kFull>
__global__ void __launch_bounds__(kRingWarps* kWarp) softmax_ring(Matrix m) {
  extern __shared__ __align__(128) char ring_memory[];
  __shared__ streaming::Barrier full[kRingWarps * kRingPlaces];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  float* ring = reinterpret_cast<float*>(ring_memory) + warp * (kRingPlaces * kRingRow);
  streaming::Barrier* barriers = full + warp * kRingPlaces;
  const RowsOfWarp own = RowsOfWarp::of(m.rows);
  const std::int64_t n = kFull ? kRingRow : m.n;
  const auto row_bytes = static_cast<unsigned>(n * sizeof(float));
  const std::uint64_t policy = streaming::policy_of(true);
  std::int64_t next = own.first;  // to ask for
  const auto expect = [&](int place, std::int64_t row) {
    if (row < own.end) streaming::arrive_expecting(barriers + place, row_bytes);
  };
  const auto ask = [&](int place) {
    if (next < own.end)
      streaming::copy_in(ring + place * kRingRow, m.x + next * n, row_bytes, barriers + place, policy);
    next += own.stride;
    if (next >= own.end) streaming::release_next();
  };
  if (lane == 0) {
    for (std::int64_t row = own.first; row < min(own.end, own.first + kRingAhead * own.stride);
         row += own.stride)
      streaming::fetch_ahead(m.x + row * n, row_bytes);
    streaming::init_barriers(barriers, kRingPlaces);
    for (int place = 0; place < kRingPlaces; ++place) expect(place, own.first + place * own.stride);
  }
  __syncwarp();
  streaming::await_previous();
  if (lane == 0) {
    for (int place = 0; place < kRingPlaces; ++place) ask(place);
  }
  int place = 0;
  unsigned parity = 0;
  const int left = kFull ? kRingRow : static_cast<int>(n) - 4 * lane;
  for (std::int64_t row = own.first; row < own.end; row += own.stride) {
    streaming::wait_for(barriers + place, parity);
    constexpr int kUnits = kRingRow / kUnit;
    float v[kUnits][8];
#pragma unroll
    for (int u = 0; u < kUnits; ++u) {
      load_unit<true, Reuse::again>(ring + place * kRingRow + 4 * lane + u * kUnit, left - u * kUnit, v[u]);
    }
    __syncwarp();
    if (lane == 0) {
      streaming::order_before_copies();
      expect(place, next);
      ask(place);
    }
    Pair pairs[kUnits];
    summarize<kLog>(v, pairs);
    finish_row<kLog, true, Reuse::again, kUnits>(v, pairs, m.out + row * n + 4 * lane, left);
    if (++place == kRingPlaces) place = 0, parity ^= 1;
  }
}

}  // namespace fulcrum::backends::cuda::rows
