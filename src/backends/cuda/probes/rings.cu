// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels of the ops on the arrays of a probe, and a ring that only reads.
#include "backends/cuda/probes/rings.h"

#include "backends/cuda/map_bulk.cuh"

namespace fulcrum::backends::cuda::probes {
namespace {

using namespace streaming;

/// See map_in_ring: the same ring without the way out.
__global__ void __launch_bounds__(kBulkThreads, kBulkCtasPerSm)
    read_in_ring(const float* from, int64_t tiles, unsigned* counter, unsigned* sink) {
  constexpr int kPlaces = kTilePlaces<1>;
  extern __shared__ __align__(128) char ring_memory[];
  auto* ring = reinterpret_cast<Tile<1>*>(ring_memory);
  __shared__ Barrier full[kPlaces];
  __shared__ int64_t tile_in[kPlaces];
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) init_barriers(full, kPlaces);
  __syncthreads();
  await_previous();
  TileFeed<1> feed{.ring = ring,
                   .full = full,
                   .tile_in = tile_in,
                   .in = {from},
                   .units = tiles * kTileVectors,
                   .policy = policy_of(true),
                   .draws = Draws{counter, tiles, kPlaces}};
  if (thread == 0) {
    for (int place = 0; place < kPlaces; ++place) feed.fill(place);
  }
  unsigned parity = 0, seen = 0;
  int place = 0;
  while (true) {
    wait_for(full + place, parity);
    if (tile_in[place] < 0) break;
#pragma unroll
    for (int i = 0; i < kTileVectors / kBulkThreads; ++i) {
      const float4 x = ring[place].in[0][thread + i * kBulkThreads];
      seen ^= __float_as_uint(x.x) ^ __float_as_uint(x.y) ^ __float_as_uint(x.z) ^ __float_as_uint(x.w);
    }
    __syncthreads();
    if (thread == 0) {
      order_before_copies();
      feed.fill(place);
    }
    if (++place == kPlaces) place = 0, parity ^= 1;
  }
  // Keeps the loads alive; whether one thread of a billion writes here does not matter.
  if (seen == 0x9E3779B1u) *sink = seen;
}

template <class Function>
fulcrum_status map_as(Form form, const Operands<Function::kInputs>& operands, int64_t bytes,
                      unsigned* counter, cudaStream_t stream) {
  const int64_t n = bytes / 4;
  if (form != Form::ring) {
    const Layout layout = form == Form::tiles2 ? Layout::ahead2 : Layout::ahead4;
    return map_elements(Function{}, operands, n, layout, stream, 1);
  }
  if (!fits_ring<Function>(n, common_head(operands)))
    return failed(FULCRUM_UNSUPPORTED, "no ring of shared memory");
  return launch_ring(Function{}, operands, n, counter, true, stream, 1);
}

}  // namespace

fulcrum_status read_as(Form form, const void* from, int64_t bytes, unsigned* counter, unsigned* sink,
                       cudaStream_t stream) {
  constexpr int64_t kTileBytes = sizeof(Tile<1>);
  const int64_t tiles = bytes / kTileBytes, ctas = static_cast<int64_t>(kBulkCtasPerSm) * device().sms;
  if (form != Form::ring || bytes % kTileBytes != 0 || !can_follow(nullptr) || tiles < kTilePlaces<1> * ctas)
    return failed(FULCRUM_UNSUPPORTED, "no ring of shared memory");
  constexpr size_t kBytes = kTilePlaces<1> * sizeof(Tile<1>);
  FULCRUM_STATUS(allow_shared<kBytes>(read_in_ring));
  return launch(read_in_ring, Launch{ctas, kBulkThreads, true, 1, kBytes}, stream, 1,
                static_cast<const float*>(from), tiles, counter, sink);
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
