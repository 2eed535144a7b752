// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise ops on long arrays through shared memory: CTAs that stay, bulk copies in, the function in place, bulk
// copies out. Reads and writes then come in runs of 16 KB, and loads are in flight whatever the threads do.
#pragma once

#include <new>

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kBulkThreads = 512, kBulkCtasPerSm = 2;
inline constexpr int kTileVectors = 1024;

/// A tile of every input; the result takes the place of the first.
template <int kInputs>
struct Tile {
  float4 in[kInputs][kTileVectors];
};
/// Places of the ring: what two CTAs of an SM have room for.
template <int kInputs>
inline constexpr int kTilePlaces = 6 / kInputs;

/// Who asks for tiles and sends them off: thread 0.
template <int kInputs>
struct TileFeed {
  Tile<kInputs>* ring;
  Barrier* full;
  int64_t* tile_in;  // which tile a place of the ring holds; -1: there are no more
  const float* in[kInputs];
  int64_t units;
  uint64_t policy;
  Draws draws;
  bool ended = false;

  __device__ __forceinline__ unsigned bytes_of(int64_t tile) const {
    const int64_t left = units - tile * kTileVectors;
    return static_cast<unsigned>(left < kTileVectors ? left : kTileVectors) * sizeof(float4);
  }

  /// Fills a place that nobody reads any more. Behind the last tile the follower may come up.
  __device__ __forceinline__ void fill(int place) {
    if (ended) return;
    const int64_t tile = draws.take();
    tile_in[place] = tile;
    if (tile < 0) {
      ended = true;
      arrive(full + place);
      release_next();
      return;
    }
    const unsigned bytes = bytes_of(tile);
    arrive_expecting(full + place, kInputs * bytes);
#pragma unroll
    for (int k = 0; k < kInputs; ++k)
      copy_in(ring[place].in[k], in[k] + tile * (4 * kTileVectors), bytes, full + place, policy);
  }
};

/// Operands behind `head` lie on 16 bytes; there are kTilePlaces tiles for every CTA.
///
/// A place is filled again one turn after its tile was sent off, when that copy has left shared memory: behind the
/// CTA's barrier that follows all reads and writes of the place. A place's barrier completes one phase for each fill, a
/// fill comes only when all threads have seen the phase before, and `parity` counts the fills of the places in turn.
template <class Function>
__global__ void __launch_bounds__(kBulkThreads, kBulkCtasPerSm)
    map_in_ring(Function f, Operands<Function::kInputs> operands, Span span, unsigned* counter, bool once,
                bool ahead) {
  constexpr int kInputs = Function::kInputs, kPlaces = kTilePlaces<kInputs>;
  constexpr auto kAll = std::make_index_sequence<kInputs>();
  extern __shared__ __align__(128) char ring_memory[];
  auto* ring = reinterpret_cast<Tile<kInputs>*>(ring_memory);
  __shared__ Barrier full[kPlaces];
  __shared__ int64_t tile_in[kPlaces];
  const int thread = static_cast<int>(threadIdx.x);
  const bool feeds = thread == 0;
  const int64_t tiles = (span.units + kTileVectors - 1) / kTileVectors;
  if (feeds) {
    init_barriers(full, kPlaces);
    if (ahead) {
      const int64_t first = span.head + blockIdx.x * static_cast<int64_t>(4 * kTileVectors);
#pragma unroll
      for (int k = 0; k < kInputs; ++k) fetch_ahead(operands.in[k] + first, kTileVectors * sizeof(float4));
    }
  }
  __syncthreads();
  await_previous();

  TileFeed<kInputs> feed{.ring = ring,
                         .full = full,
                         .tile_in = tile_in,
                         .units = span.units,
                         .policy = policy_of(once),
                         .draws = Draws{counter, tiles, kPlaces}};
#pragma unroll
  for (int k = 0; k < kInputs; ++k) feed.in[k] = operands.in[k] + span.head;
  if (feeds) {
    for (int place = 0; place < kPlaces; ++place) feed.fill(place);
  }
  if (blockIdx.x == 0 && thread < span.odd) {
    const int64_t at = thread < span.head ? thread : thread + 4 * span.units;
    float odd[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) odd[k] = operands.in[k][at];
    operands.out[at] = apply(f, odd, kAll);
  }

  unsigned parity = 0;
  for (int place = 0, before = -1;; before = place, place = place + 1 == kPlaces ? 0 : place + 1) {
    if (before > place) parity ^= 1;
    wait_for(full + place, parity);
    const int64_t tile = tile_in[place];
    if (tile < 0) break;
    const unsigned bytes = feed.bytes_of(tile);
    const int end = static_cast<int>(bytes / sizeof(float4));
#pragma unroll
    for (int i = 0; i < kTileVectors / kBulkThreads; ++i) {
      const int at = thread + i * kBulkThreads;
      if (at < end) {
        float4 x[kInputs];
#pragma unroll
        for (int k = 0; k < kInputs; ++k) x[k] = ring[place].in[k][at];
        ring[place].in[0][at] = apply(f, x, kAll);
      }
    }
    order_before_copies();
    __syncthreads();
    if (feeds) {
      copy_out(operands.out + span.head + tile * (4 * kTileVectors), ring[place].in[0], bytes, feed.policy);
      if (before >= 0) {
        wait_until_left<1>();
        feed.fill(before);
      }
    }
  }
  if (feeds) wait_until_written();
}

struct BulkPlan {
  Scratch counter;
};

inline fulcrum_status make_bulk_plan(const fulcrum_kernel*, const fulcrum_args*, void** plan) {
  auto* made = new (std::nothrow) BulkPlan;
  if (made == nullptr) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of an element-wise kernel");
  const auto fill = [made]() -> fulcrum_status {
    FULCRUM_STATUS(made->counter.take(sizeof(unsigned)));
    FULCRUM_CUDA(cudaMemsetAsync(made->counter.as<void>(), 0, sizeof(unsigned), stream_of(nullptr)));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  };
  const fulcrum_status status = fill();
  if (status.code != FULCRUM_OK) {
    delete made;
    return status;
  }
  *plan = made;
  return status;
}

inline void drop_bulk_plan(void* plan) { delete static_cast<BulkPlan*>(plan); }

/// Whether n elements, `head` of them before the first vector, are enough for the ring.
template <class Function>
bool fits_ring(int64_t n, int head) {
  const int64_t ctas = static_cast<int64_t>(kBulkCtasPerSm) * device().sms;
  return head >= 0 && can_follow(nullptr) &&
         span_of(n, head).units / kTileVectors >= kTilePlaces<Function::kInputs> * ctas;
}

/// One call through the ring, where fits_ring() holds. `counter`: zero, of this call alone while it runs.
template <class Function>
fulcrum_status launch_ring(const Function& f, const Operands<Function::kInputs>& operands, int64_t n,
                           unsigned* counter, bool ahead, void* stream, int64_t count) {
  constexpr size_t kBytes = kTilePlaces<Function::kInputs> * sizeof(Tile<Function::kInputs>);
  static_assert(kBulkCtasPerSm * (kBytes + 2048) <= 228 * 1024);
  const auto kernel = map_in_ring<Function>;
  FULCRUM_STATUS(allow_shared<kBytes>(kernel));
  const int64_t ctas = static_cast<int64_t>(kBulkCtasPerSm) * device().sms;
  const bool once = n * 4 * (Function::kInputs + 1) > device().l2_bytes;
  return launch(kernel, Launch{ctas, kBulkThreads, true, 1, kBytes}, stream, count, f, operands,
                span_of(n, common_head(operands)), counter, once, ahead);
}

/// What is too short or not aligned goes the usual way.
template <class Function, bool kAhead>
fulcrum_status run_bulk(const fulcrum_args* a, void* stream, int64_t count) {
  const auto operands = operands_of<Function>(*a);
  const int64_t n = Function::elements(*a);
  if (!fits_ring<Function>(n, common_head(operands)))
    return run_map<Function, Layout::automatic>(a, stream, count);
  auto* counter = static_cast<const BulkPlan*>(a->plan)->counter.template as<unsigned>();
  return launch_ring(Function::from(*a), operands, n, counter, kAhead, stream, count);
}

}  // namespace fulcrum::backends::cuda::streaming
