// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_read on the device: eight vectors of a thread in flight, the sum of their bits in integers, which is exact in
// any order. Several passes, or data that fits into L2, go past L1, which makes them L2's rate.
// A plan's scratch serves one call at a time: calls with the same plan on two streams at once are not allowed.
#include <algorithm>
#include <new>
#include <span>

#include "backends/cuda/fold.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace streaming;

constexpr int kThreads = 512, kItems = 8, kTile = kThreads * kItems;

/// What a plan keeps on the device; zero between calls.
struct Totals {
  unsigned sum, tickets;
};

struct Read {
  const unsigned* x;
  unsigned* out;
  int64_t vectors, passes;
  int head, odd;  // elements before the first vector, and all that belong to none
  Totals* totals;
};

template <Cache kCache, bool kFull>
__device__ __forceinline__ unsigned sum_tile(const uint4* x, int end) {
  uint4 bits[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * kThreads;
    if (!kFull) bits[i] = make_uint4(0, 0, 0, 0);
    if (kFull || at < end) bits[i] = load<kCache>(x + at);
  }
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < kItems; ++i) sum += bits[i].x + bits[i].y + bits[i].z + bits[i].w;
  return sum;
}

/// Sum over the CTA, known to thread 0.
__device__ __forceinline__ unsigned sum_threads(unsigned sum) {
  __shared__ unsigned warps[kThreads / 32];
  sum = __reduce_add_sync(0xFFFFFFFFU, sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  return __reduce_add_sync(0xFFFFFFFFU, threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : 0U);
}

template <Cache kCache>
__global__ void __launch_bounds__(kThreads) sum_bits(Read read) {
  follow();
  const auto* x = reinterpret_cast<const uint4*>(read.x + read.head);
  unsigned sum = 0;
  for (int64_t pass = 0; pass < read.passes; ++pass) {
    for (int64_t tile = blockIdx.x; tile * kTile < read.vectors; tile += gridDim.x) {
      const int64_t left = read.vectors - tile * kTile;
      sum += left >= kTile ? sum_tile<kCache, true>(x + tile * kTile, kTile)
                           : sum_tile<kCache, false>(x + tile * kTile, static_cast<int>(left));
    }
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread < read.odd) {
    const int64_t at = thread < read.head ? thread : thread + 4 * read.vectors;
    sum += read.x[at] * static_cast<unsigned>(read.passes);
  }
  sum = sum_threads(sum);
  if (thread == 0) atomicAdd(&read.totals->sum, sum);
  if (draws_last(&read.totals->tickets, gridDim.x) && thread == 0)
    *read.out = atomicExch(&read.totals->sum, 0U);
}

fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args*, void** plan) {
  auto* scratch = new (std::nothrow) Scratch;
  if (scratch == nullptr) return failed(FULCRUM_OUT_OF_MEMORY, "the plan of probe_read");
  const auto fill = [scratch]() -> fulcrum_status {
    FULCRUM_STATUS(scratch->take(sizeof(Totals)));
    FULCRUM_CUDA(cudaMemsetAsync(scratch->as<Totals>(), 0, sizeof(Totals), stream_of(nullptr)));
    FULCRUM_CUDA(cudaStreamSynchronize(stream_of(nullptr)));
    return done();
  };
  const fulcrum_status status = fill();
  if (status.code != FULCRUM_OK) {
    delete scratch;
    return status;
  }
  *plan = scratch;
  return status;
}

void drop(void* plan) { delete static_cast<Scratch*>(plan); }

/// kTiles: one tile a CTA. Otherwise as many CTAs as fit, which go on from tile to tile.
template <bool kTiles>
fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  const int64_t n = a->dim[0];
  const auto phase = static_cast<int>(reinterpret_cast<uintptr_t>(a->ptr[0]) / 4 % 4);
  Read read{.x = a->in<unsigned>(0),
            .out = a->out<unsigned>(1),
            .passes = a->scalar[0].i,
            .head = static_cast<int>(std::min<int64_t>((4 - phase) % 4, n)),
            .totals = static_cast<const Scratch*>(a->plan)->as<Totals>()};
  read.vectors = (n - read.head) / 4;
  read.odd = static_cast<int>(n - 4 * read.vectors);
  const bool once = read.passes == 1 && 4 * n > device().l2_bytes;
  const auto kernel = once ? sum_bits<Cache::once> : sum_bits<Cache::level2>;
  int64_t ctas = std::max<int64_t>(1, divide_up(read.vectors, kTile));
  if (!kTiles) {
    static const int64_t resident = resident_ctas(sum_bits<Cache::level2>, kThreads);
    ctas = std::min(ctas, resident);
  }
  return launch(kernel, Launch{ctas, kThreads, false}, stream, count, read);
}

template <bool kTiles>
fulcrum_kernel make_kernel(const char* variant) {
  return fulcrum_kernel{
      .variant = variant, .level = 2, .isa = isa, .plan = make_plan, .drop = drop, .run = run<kTiles>};
}

}  // namespace

std::span<const fulcrum_kernel> probe_read() {
  static const fulcrum_kernel kernels[] = {make_kernel<false>("default"), make_kernel<true>("tile8")};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
