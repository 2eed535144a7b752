// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the element-wise ops on the arrays of a probe, and rings in shared memory that bulk copies fill and
// empty: reads and writes then come in runs of 16 KB, and loads are in flight whatever the threads do.
#include "backends/cuda/probes/rings.h"

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::probes {
namespace {

using namespace streaming;

constexpr int kRingThreads = 512, kCtasPerSm = 2;
constexpr int kTileVectors = 1024;
constexpr unsigned kTileBytes = kTileVectors * sizeof(float4);

/// A tile of every input; what is written takes the place of the first.
template <int kInputs>
struct Tile {
  float4 in[kInputs][kTileVectors];
};
/// Places of the ring: what two CTAs of an SM have room for.
template <int kInputs>
constexpr int kPlaces = 6 / kInputs;

/// Who asks for tiles: thread 0.
template <int kInputs>
struct Feed {
  Tile<kInputs>* ring;
  Barrier* full;
  int64_t* tile_in;  // which tile a place of the ring holds; -1: there are no more
  const Operands<kInputs>& operands;
  uint64_t policy;
  Draws draws;
  bool ended = false;

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
    arrive_expecting(full + place, kInputs * kTileBytes);
#pragma unroll
    for (int k = 0; k < kInputs; ++k)
      copy_in(ring[place].in[k], operands.in[k] + tile * (4 * kTileVectors), kTileBytes, full + place,
              policy);
  }
};

/// One input without an output is read, one with it copied, two are added. There are kPlaces tiles for every CTA.
///
/// A place that is only read is filled again behind the CTA's barrier that follows the reads; one that is written out
/// is filled one turn later, when that copy has left shared memory. A place's barrier completes one phase for each
/// fill, a fill comes only when all threads have seen the phase before, and `parity` counts the fills of the places in
/// turn.
template <int kInputs, bool kWrites>
__global__ void __launch_bounds__(kRingThreads, kCtasPerSm)
    pass_in_ring(Operands<kInputs> operands, int64_t tiles, unsigned* counter, unsigned* sink) {
  extern __shared__ __align__(128) char ring_memory[];
  auto* ring = reinterpret_cast<Tile<kInputs>*>(ring_memory);
  __shared__ Barrier full[kPlaces<kInputs>];
  __shared__ int64_t tile_in[kPlaces<kInputs>];
  const int thread = static_cast<int>(threadIdx.x);
  const bool feeds = thread == 0;
  if (feeds) init_barriers(full, kPlaces<kInputs>);
  __syncthreads();
  await_previous();
  Feed<kInputs> feed{ring, full, tile_in, operands, policy_of(true), Draws{counter, tiles, kPlaces<kInputs>}};
  if (feeds) {
    for (int place = 0; place < kPlaces<kInputs>; ++place) feed.fill(place);
  }
  unsigned parity = 0, seen = 0;
  for (int place = 0, before = -1;; before = place, place = place + 1 == kPlaces<kInputs> ? 0 : place + 1) {
    if (before > place) parity ^= 1;
    wait_for(full + place, parity);
    const int64_t tile = tile_in[place];
    if (tile < 0) break;
#pragma unroll
    for (int i = 0; i < kTileVectors / kRingThreads; ++i) {
      float4& x = ring[place].in[0][thread + i * kRingThreads];
      if constexpr (kInputs == 2) {
        const float4 y = ring[place].in[1][thread + i * kRingThreads];
        x = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
      } else if (!kWrites) {
        seen ^= __float_as_uint(x.x) ^ __float_as_uint(x.y) ^ __float_as_uint(x.z) ^ __float_as_uint(x.w);
      }
    }
    order_before_copies();
    __syncthreads();
    if (!feeds) continue;
    if (!kWrites) {
      feed.fill(place);
    } else {
      copy_out(operands.out + tile * (4 * kTileVectors), ring[place].in[0], kTileBytes, feed.policy);
      if (before >= 0) {
        wait_until_left<1>();
        feed.fill(before);
      }
    }
  }
  if (kWrites && feeds) wait_until_written();
  // Keeps the loads alive; whether one thread of a billion writes here does not matter.
  if (!kWrites && seen == 0x9E3779B1u) *sink = seen;
}

template <int kInputs, bool kWrites>
fulcrum_status launch_ring(const Operands<kInputs>& operands, int64_t bytes, unsigned* counter,
                           unsigned* sink, cudaStream_t stream) {
  constexpr size_t kBytes = kPlaces<kInputs> * sizeof(Tile<kInputs>);
  static_assert(kCtasPerSm * (kBytes + 2048) <= 228 * 1024);
  const int64_t tiles = bytes / kTileBytes, ctas = static_cast<int64_t>(kCtasPerSm) * device().sms;
  if (bytes % kTileBytes != 0 || !can_follow(nullptr) || tiles < kPlaces<kInputs> * ctas)
    return failed(FULCRUM_UNSUPPORTED, "no ring of shared memory");
  const auto kernel = pass_in_ring<kInputs, kWrites>;
  FULCRUM_STATUS(allow_shared<kBytes>(kernel));
  return launch(kernel, Launch{ctas, kRingThreads, true, 1, kBytes}, stream, 1, operands, tiles, counter,
                sink);
}

template <class Function>
fulcrum_status map_as(Form form, const Operands<Function::kInputs>& operands, int64_t bytes,
                      unsigned* counter, cudaStream_t stream) {
  switch (form) {
    case Form::tiles2:
      return map_elements<Layout{.items = 2}>(Function{}, operands, bytes / 4, stream, 1);
    case Form::tiles4:
      return map_elements<Layout{.items = 4}>(Function{}, operands, bytes / 4, stream, 1);
    case Form::ring:
      break;
  }
  return launch_ring<Function::kInputs, true>(operands, bytes, counter, nullptr, stream);
}

}  // namespace

fulcrum_status read_as(Form form, const void* from, int64_t bytes, unsigned* counter, unsigned* sink,
                       cudaStream_t stream) {
  if (form != Form::ring) return failed(FULCRUM_UNSUPPORTED, "no op reads in this form");
  const Operands<1> operands{{static_cast<const float*>(from)}, nullptr};
  return launch_ring<1, false>(operands, bytes, counter, sink, stream);
}

fulcrum_status copy_as(Form form, void* base, int64_t bytes, unsigned* counter, cudaStream_t stream) {
  auto* array = static_cast<float*>(base);
  return map_as<Copy>(form, {{array}, array + bytes / 4}, bytes, counter, stream);
}

fulcrum_status add_as(Form form, void* base, int64_t bytes, unsigned* counter, cudaStream_t stream) {
  auto* array = static_cast<float*>(base);
  return map_as<Sum>(form, {{array, array + bytes / 4}, array + bytes / 2}, bytes, counter, stream);
}

}  // namespace fulcrum::backends::cuda::probes
