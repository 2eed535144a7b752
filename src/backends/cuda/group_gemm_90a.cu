// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h. A CTA makes a tile of 128 rows and 128 columns; the four tiles of a cluster are two by two
// neighbours, and each CTA copies half of its rows of A and of its columns of B for its neighbours too, so that L2 gives
// everything once for two. A warp asks for the copies, two warpgroups multiply what is there. With a split, a second
// four of CTAs has the upper half of the terms. Tensor cores take rows of B as they come for 16-bit elements; f32 they
// want along k, so there the transposed product is made and B's columns are the operand that registers hold.
#include <cstdint>
#include <type_traits>

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/gemm_epilogue.cuh"
#include "backends/cuda/group_gemm.h"
#include "backends/cuda/tensor_map.h"
#include "backends/cuda/warpgroup.cuh"

namespace fulcrum::backends::cuda {
namespace {

namespace wg = warpgroup;
using streaming::Barrier;

constexpr int kTile = kGroupTile, kConsumers = 256, kThreads = kConsumers + 32, kWarps = kConsumers / 32;
constexpr int kPartBytes = 64 * wg::kRowBytes;  // half of a slab's rows, or of its columns
constexpr int kSlabBytes = 4 * kPartBytes, kStages = 6;
constexpr int kSentFloats = 32;  // of a thread, half of its sums
constexpr int kInboxBytes = kConsumers * kSentFloats * 4;
constexpr int kAcross = 1, kDown = 2, kOther = 4;  // bits of a CTA's rank: column, row, terms
constexpr int kReaders = 3;  // CTAs that get something of a copy: this one and two neighbours

using Sums = wg::Sums<16>;

struct Maps {
  CUtensorMap a, b;
};

struct Memory {
  alignas(1024) char slabs[kStages][kSlabBytes];
  float4 inbox[kInboxBytes / 16];
  float bias[kTile];
  Barrier full[kStages], empty[kStages];
};

/// Elements of a row of 128 bytes, which are the terms of a slab.
template <class T>
constexpr int kDepth = wg::kRowBytes / static_cast<int>(sizeof(T));

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// A box at these coordinates to the same place in each CTA of `mask`.
__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap* map, int x, int y, int z,
                                         Barrier* barrier, unsigned mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(wg::shared_of(barrier)), "h"(static_cast<std::uint16_t>(mask))
      : "memory");
}

__device__ __forceinline__ void init_barrier(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wg::shared_of(barrier)), "r"(arrivals)
               : "memory");
}

__device__ __forceinline__ std::uint32_t address_in(const void* here, unsigned cta) {
  std::uint32_t there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(wg::shared_of(here)), "r"(cta));
  return there;
}

__device__ __forceinline__ void arrive_in(const Barrier* barrier, unsigned cta) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(address_in(barrier, cta))
               : "memory");
}

/// Where a CTA works.
struct Place {
  unsigned rank;
  int row0, column0, entry;  // of the tile
  int k0, slabs;
};

template <class T, int kSplit>
__device__ __forceinline__ Place place_of(const Gemm& g) {
  constexpr unsigned kCtas = 4 * kSplit;
  const auto along = static_cast<unsigned>((g.n + 2 * kTile - 1) / (2 * kTile));
  const unsigned block = blockIdx.x / kCtas, rank = blockIdx.x % kCtas;
  const int k = static_cast<int>(g.k), all = (k + kDepth<T> - 1) / kDepth<T>;
  const int share = (all + kSplit - 1) / kSplit, first = static_cast<int>(rank / kOther) * share;
  return {.rank = rank,
          .row0 = static_cast<int>(block / along * 2 + rank / kDown % 2) * kTile,
          .column0 = static_cast<int>(block % along * 2 + rank % 2) * kTile,
          .entry = static_cast<int>(blockIdx.y),
          .k0 = first * kDepth<T>,
          .slabs = min(share, max(0, all - first))};
}

/// One thread asks for all slabs, each when all who get some of it are done with the one that lay there.
template <class T>
__device__ __forceinline__ void copy_slabs(Memory& memory, const Maps& maps, const Place& place) {
  constexpr int kBoxColumns = kDepth<T>, kBoxes = 64 / kBoxColumns, kBoxBytes = kPartBytes / kBoxes;
  const int across = static_cast<int>(place.rank % 2), down = static_cast<int>(place.rank / kDown % 2);
  const unsigned along_mask = 1U << place.rank | 1U << (place.rank ^ kAcross),
                 down_mask = 1U << place.rank | 1U << (place.rank ^ kDown);
  for (int slab = 0; slab < place.slabs; ++slab) {
    const int stage = slab % kStages, k = place.k0 + slab * kDepth<T>;
    if (slab >= kStages)
      streaming::wait_for(&memory.empty[stage], static_cast<unsigned>(slab / kStages - 1) & 1);
    Barrier* full = &memory.full[stage];
    streaming::arrive_expecting(full, kSlabBytes);
    const std::uint32_t rows =
        wg::shared_of(memory.slabs[stage]) + static_cast<std::uint32_t>(across * kPartBytes);
    copy_box(rows, &maps.a, k, place.row0 + across * 64, place.entry, full, along_mask);
    const std::uint32_t columns =
        wg::shared_of(memory.slabs[stage]) + static_cast<std::uint32_t>((2 + down) * kPartBytes);
#pragma unroll
    for (int box = 0; box < kBoxes; ++box)
      copy_box(columns + box * kBoxBytes, &maps.b, place.column0 + down * 64 + box * kBoxColumns, k,
               place.entry, full, down_mask);
  }
}

/// 64 rows of the tile and all columns.
template <bool kBf16>
__device__ __forceinline__ void multiply_slab(Sums& sums, std::uint32_t slab, int group) {
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const std::uint32_t left = slab + group * kPartBytes + step * 32,
                        right = slab + 2 * kPartBytes + step * 16 * wg::kRowBytes;
    wg::multiply<kBf16, true>(sums, wg::describe(left), wg::describe(right, kPartBytes), true);
  }
  wg::commit_products();
}

__device__ __forceinline__ std::uint32_t tf32_of(float value) {
  std::uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

/// 64 columns of the tile and all rows: column g + 8 e of a warp's 16, which lie in one box of 32.
__device__ __forceinline__ void multiply_slab_tf32(Sums& sums, const char* slab, int warp, int lane) {
  const char* box = slab + 2 * kPartBytes + warp / 2 * (kPartBytes / 2);
  std::uint32_t columns[4][4];
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int term = step * 8 + e / 2 * 4 + lane % 4, column = warp % 2 * 16 + e % 2 * 8 + lane / 4;
      columns[step][e] =
          tf32_of(*reinterpret_cast<const float*>(box + wg::chunk_offset(term, column / 4) + column % 4 * 4));
    }
  }
  wg::begin_products();
#pragma unroll
  for (int step = 0; step < 4; ++step)
    wg::multiply_tf32(sums, columns[step], wg::describe(wg::shared_of(slab) + step * 32));
  wg::commit_products();
}

/// A warp's word to the CTAs whose copies came here that a slab may be written again.
__device__ __forceinline__ void release(Memory& memory, int slab, const Place& place, int lane) {
  if (slab + kStages >= place.slabs || lane >= kReaders) return;
  const unsigned cta = place.rank ^ (lane == 1 ? kAcross : lane == 2 ? kDown : 0);
  arrive_in(&memory.empty[slab % kStages], cta);
}

template <class T>
__device__ __forceinline__ void multiply_slabs(Sums& sums, Memory& memory, const Place& place) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  for (int slab = 0; slab < place.slabs; ++slab) {
    const int stage = slab % kStages;
    streaming::wait_for(&memory.full[stage], static_cast<unsigned>(slab / kStages) & 1);
    __syncwarp();
    if constexpr (sizeof(T) == 2) {
      multiply_slab<std::is_same_v<T, __nv_bfloat16>>(sums, wg::shared_of(memory.slabs[stage]), warp / 4);
      wg::await_products<1>();
      if (slab > 0) release(memory, slab - 1, place, lane);
    } else {
      multiply_slab_tf32(sums, memory.slabs[stage], warp, lane);
      wg::await_products<0>();
      __syncwarp();
      release(memory, slab, place, lane);
    }
  }
  wg::await_products<0>();
}

/// Eight of the tile's 16 groups of sums, bias and activation on them. Sums of f32 are of the transposed tile.
template <class T, int kFirst>
__device__ __forceinline__ void write_half(const Gemm& g, const Sums& sums, const float* bias, T* c,
                                           const Place& place) {
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int along_fragment = warp * 16 + lane / 4, across_fragment = lane % 4 * 2;
  c += place.entry * g.m * g.n;
#pragma unroll
  for (int j = kFirst; j < kFirst + 8; ++j) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int own = along_fragment + r * 8, other = across_fragment + j * 8;
      if constexpr (sizeof(T) == 2) {
        const int64_t row = place.row0 + own, column = place.column0 + other;
        if (row >= g.m || column >= g.n) continue;
        const float x = sums[j][2 * r] + bias[other], y = sums[j][2 * r + 1] + bias[other + 1];
        store_pair(c + row * g.n + column, finished(x, g.activation), finished(y, g.activation));
      } else {
        const int64_t column = place.column0 + own, row = place.row0 + other;
        if (column >= g.n) continue;
        const float x = finished(sums[j][2 * r] + bias[own], g.activation),
                    y = finished(sums[j][2 * r + 1] + bias[own], g.activation);
        if (row < g.m) c[row * g.n + column] = x;
        if (row + 1 < g.m) c[(row + 1) * g.n + column] = y;
      }
    }
  }
}

/// A thread's sums of one half, to its like among the CTAs with the other terms.
template <int kFirst>
__device__ __forceinline__ void send_half(const Sums& sums, std::uint32_t inbox) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t to =
        inbox + static_cast<std::uint32_t>(j * kConsumers + static_cast<int>(threadIdx.x)) * 16;
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(sums[kFirst + j][0]),
                 "f"(sums[kFirst + j][1]), "f"(sums[kFirst + j][2]), "f"(sums[kFirst + j][3])
                 : "memory");
  }
}
template <int kFirst>
__device__ __forceinline__ void add_half(Sums& sums, const float4* inbox) {
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float4 other = inbox[j * kConsumers + static_cast<int>(threadIdx.x)];
    sums[kFirst + j][0] += other.x;
    sums[kFirst + j][1] += other.y;
    sums[kFirst + j][2] += other.z;
    sums[kFirst + j][3] += other.w;
  }
}

#endif

template <class T, int kSplit>
__global__ void __launch_bounds__(kThreads, 1)
    group_kernel(const __grid_constant__ Maps maps, Gemm g, const float* bias, T* c) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char raw[];
  Memory& memory = *reinterpret_cast<Memory*>(raw);
  const int thread = static_cast<int>(threadIdx.x);
  const Place place = place_of<T, kSplit>(g);
  if (thread == kConsumers) {
    for (Barrier& barrier : memory.full) init_barrier(&barrier, 1);
    for (Barrier& barrier : memory.empty) init_barrier(&barrier, kReaders * kWarps);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  streaming::cluster_arrive();
  streaming::cluster_wait();  // all barriers of the cluster are there
  streaming::follow();
  Sums sums = {};
  if (thread >= kConsumers) {
    if (thread == kConsumers) copy_slabs<T>(memory, maps, place);
  } else {
    if (thread < kTile)
      memory.bias[thread] = bias && place.column0 + thread < g.n ? bias[place.column0 + thread] : -0.0F;
    multiply_slabs<T>(sums, memory, place);
    const bool is_upper = place.rank >= kOther;
    if constexpr (kSplit > 1) {
      const std::uint32_t there = address_in(memory.inbox, place.rank ^ kOther);
      if (is_upper) {
        send_half<0>(sums, there);
      } else {
        send_half<8>(sums, there);
      }
    }
  }
  if constexpr (kSplit > 1) {
    streaming::cluster_arrive();
    streaming::cluster_wait();
  } else {
    __syncthreads();  // bias is there
  }
  if (thread >= kConsumers) return;
  if constexpr (kSplit > 1) {
    if (place.rank >= kOther) {
      add_half<8>(sums, memory.inbox);
      write_half<T, 8>(g, sums, memory.bias, c, place);
    } else {
      add_half<0>(sums, memory.inbox);
      write_half<T, 0>(g, sums, memory.bias, c, place);
    }
  } else {
    write_half<T, 0>(g, sums, memory.bias, c, place);
    write_half<T, 8>(g, sums, memory.bias, c, place);
  }
#endif
}

template <class T>
constexpr MapElement kMapElement = sizeof(T) == 4                     ? MapElement::f32
                                   : std::is_same_v<T, __nv_bfloat16> ? MapElement::bf16
                                                                      : MapElement::f16;

template <class T, int kSplit>
fulcrum_status launch(const Gemm& g, const GemmOperands& operands, cudaStream_t stream) {
  constexpr int kCtas = 4 * kSplit;
  const auto kernel = group_kernel<T, kSplit>;
  static const cudaError_t allowed =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory));
  FULCRUM_CUDA(allowed);
  Maps maps;
  const auto width = static_cast<uint32_t>(kDepth<T>);
  FULCRUM_STATUS(make_map(&maps.a, kMapElement<T>, operands.a, {g.k, g.m, g.batch}, width, 64));
  FULCRUM_STATUS(make_map(&maps.b, kMapElement<T>, operands.b, {g.n, g.k, g.batch}, width, width));
  const int64_t blocks = (g.m + 2 * kTile - 1) / (2 * kTile) * ((g.n + 2 * kTile - 1) / (2 * kTile));
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = streaming::config_of({.ctas = blocks * kCtas,
                                                    .threads = kThreads,
                                                    .programmatic = true,
                                                    .cluster = kCtas,
                                                    .shared_bytes = sizeof(Memory)},
                                                   nullptr, attributes);
  config.stream = stream;
  config.gridDim.y = static_cast<unsigned>(g.batch);
  FULCRUM_CUDA(cudaLaunchKernelEx(&config, kernel, maps, g, operands.bias, static_cast<T*>(operands.c)));
  return done();
}

template <class T>
fulcrum_status launch_split(const Gemm& g, const GemmOperands& operands, int split, cudaStream_t stream) {
  return split == 1 ? launch<T, 1>(g, operands, stream) : launch<T, 2>(g, operands, stream);
}

}  // namespace

fulcrum_status enqueue_group(const Gemm& g, const GemmOperands& operands, int split, cudaStream_t stream) {
  if (g.outputs() == 0) return done();
  if (g.element == Element::f32) return launch_split<float>(g, operands, split, stream);
  if (g.element == Element::bf16) return launch_split<__nv_bfloat16>(g, operands, split, stream);
  return launch_split<__half>(g, operands, split, stream);
}

}  // namespace fulcrum::backends::cuda
