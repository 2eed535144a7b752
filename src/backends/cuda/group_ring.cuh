// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the products of group_gemm.h share. A cluster's CTAs each make a tile of 128 by 128, or a part of its terms.
// One warp fetches slabs into a ring in shared memory, two warpgroups use them. What CTAs of a cluster have in common,
// rows of A or columns of B, each of them fetches a piece of and the copy engine hands to all. For *_90a.cu alone.
#pragma once

#include <cuda.h>

#include <type_traits>

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/fold.cuh"
#include "backends/cuda/gemm.h"
#include "backends/cuda/warpgroup.cuh"

namespace fulcrum::backends::cuda::group {

namespace wg = warpgroup;

constexpr int kTile = 128;
constexpr int kSideBytes = kTile * wg::kRowBytes, kSlabBytes = 2 * kSideBytes;  // a slab of A, and one of B
constexpr int kInboxBytes = kTile * kTile / 2 * 4;                              // half of a tile's sums
constexpr int kStagingBytes = kTile * kTile * 4;

/// How a cluster divides its work: tiles one below the other, tiles side by side, parts of a tile's terms. Short rings
/// let two CTAs share a multiprocessor, so that a call's first copies come up behind the last stores of the one before.
template <int kDownTiles, int kAcrossTiles, int kParts, int kSlabs, int kUserThreads = 256>
struct Plan {
  static constexpr int kUsers = kUserThreads, kThreads = kUsers + 32;
  static constexpr int kDown = kDownTiles, kAcross = kAcrossTiles, kSplit = kParts, kStages = kSlabs;
  static constexpr int kTiles = kDown * kAcross, kCtas = kTiles * kSplit;
  static constexpr bool kIsShort = kStages <= 3;
  static constexpr int kCtasAnSm = kIsShort ? 2 : 1;
  static constexpr int kRingBytes = kStages * kSlabBytes;
  static constexpr bool kHasInbox = kSplit > 1 && !kIsShort;  // else it lies in the ring
  static constexpr int kInboxAt = kHasInbox ? kRingBytes : 0;
  static constexpr int kStagingAt = kSplit > 1 && !kHasInbox ? kInboxBytes : 0;
  static constexpr int kBiasAt = kRingBytes + (kHasInbox ? kInboxBytes : 0);
  static constexpr int kBarriersAt = kBiasAt + kTile * 4;
  static constexpr int kBytes = kBarriersAt + 2 * kStages * 8;
  /// Warps that must be done with a slab of the ring before this CTA's next copies may go there.
  static constexpr int kUsersOfASlab = (kDown + kAcross - 1) * kUsers / 32;
  static_assert(kStagingAt + kStagingBytes / kSplit <= kRingBytes);
};

/// A CTA's share of the product. Terms of `depth` make a slab.
template <class P>
struct Share {
  int rank, across, down, part;
  int row0, column0, k0, slabs;

  __device__ Share(const Gemm& g, int depth) {
    rank = static_cast<int>(blockIdx.x % P::kCtas);
    across = rank % P::kAcross;
    down = rank / P::kAcross % P::kDown;
    part = rank / P::kTiles;
    const unsigned cluster = blockIdx.x / P::kCtas;
    const auto along = static_cast<unsigned>((g.n + kTile * P::kAcross - 1) / (kTile * P::kAcross));
    row0 = (static_cast<int>(cluster / along) * P::kDown + down) * kTile;
    column0 = (static_cast<int>(cluster % along) * P::kAcross + across) * kTile;
    const int all = static_cast<int>((g.k + depth - 1) / depth), each = (all + P::kSplit - 1) / P::kSplit;
    const int first = min(all, part * each);
    slabs = min(all - first, each);
    k0 = first * depth;
  }
  /// The CTA of the same part whose tile lies there.
  __device__ int rank_of(int its_down, int its_across) const {
    return (part * P::kDown + its_down) * P::kAcross + its_across;
  }
};

#if __CUDA_ARCH__ >= 900

/// A box of a matrix stack to the same place in each CTA of `mask`, whose barrier there counts its bytes.
template <bool kToMany>
__device__ __forceinline__ void copy_box(std::uint32_t to, const CUtensorMap& map, int column, int row,
                                         int entry, std::uint32_t barrier, std::uint16_t mask) {
  if constexpr (kToMany) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(entry), "r"(barrier), "h"(mask)
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(entry), "r"(barrier)
        : "memory");
  }
}

/// Slabs that are full, and slabs that all their users have left.
template <class P>
struct Ring {
  std::uint32_t base;
  streaming::Barrier *full, *empty;

  __device__ explicit Ring(char* memory)
      : base(wg::shared_of(memory)),
        full(reinterpret_cast<streaming::Barrier*>(memory + P::kBarriersAt)),
        empty(full + P::kStages) {}

  /// By one thread; the cluster's barrier follows.
  __device__ void init() const {
    for (int i = 0; i < P::kStages; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(wg::shared_of(full + i)) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(wg::shared_of(empty + i)),
                   "r"(P::kUsersOfASlab)
                   : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }

  /// All slabs of this CTA's share, by one thread. Rows of A: kTile of them, `depth` terms in a row. Rows of B: `depth`
  /// of them, in kBoxes boxes side by side.
  template <int kBoxes>
  __device__ void fetch(const Share<P>& share, const CUtensorMap& left, const CUtensorMap& right,
                        int entry) const {
    constexpr int kDepth = kTile / kBoxes, kLeftRows = kTile / P::kAcross, kRightRows = kDepth / P::kDown;
    constexpr int kBoxColumns = kTile / kBoxes;
    const int first = share.rank_of(share.down, 0), top = share.rank_of(0, share.across);
    const auto in_row = static_cast<std::uint16_t>(((1 << P::kAcross) - 1) << first);
    std::uint16_t in_column = 0;
    for (int d = 0; d < P::kDown; ++d)
      in_column = static_cast<std::uint16_t>(in_column | 1 << (top + d * P::kAcross));
    for (int slab = 0; slab < share.slabs; ++slab) {
      const int stage = slab % P::kStages;
      if (slab >= P::kStages) streaming::wait_for(empty + stage, (slab / P::kStages - 1) & 1);
      streaming::arrive_expecting(full + stage, kSlabBytes);
      const std::uint32_t slab_at = base + stage * kSlabBytes, barrier = wg::shared_of(full + stage);
      const int k = share.k0 + slab * kDepth;
      const int left_row = share.across * kLeftRows, right_row = share.down * kRightRows;
      copy_box<(P::kAcross > 1)>(slab_at + left_row * wg::kRowBytes, left, k, share.row0 + left_row, entry,
                                 barrier, in_row);
#pragma unroll
      for (int box = 0; box < kBoxes; ++box)
        copy_box<(P::kDown > 1)>(slab_at + kSideBytes + (box * kDepth + right_row) * wg::kRowBytes, right,
                                 share.column0 + box * kBoxColumns, k + right_row, entry, barrier, in_column);
    }
  }

  __device__ __forceinline__ void await(int slab) const {
    streaming::wait_for(full + slab % P::kStages, slab / P::kStages & 1);
  }

  /// By every warp that used the slab, when its products are done: who copies into it here or elsewhere may go on. Nobody
  /// is told about slabs that nothing follows, so that no CTA is told anything after its end.
  __device__ __forceinline__ void leave(int slab, const Share<P>& share) const {
    if (slab < 0 || slab + P::kStages >= share.slabs) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane >= P::kDown + P::kAcross - 1) return;
    // Those of the row, then those of the column without this CTA.
    const int other = lane - P::kAcross;
    const int rank = lane < P::kAcross ? share.rank_of(share.down, lane)
                                       : share.rank_of(other < share.down ? other : other + 1, share.across);
    std::uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"(wg::shared_of(empty + slab % P::kStages)), "r"(rank));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
  }
};

/// First thing in a kernel: barriers for all, and the call before is over.
template <class P>
__device__ __forceinline__ void begin_group(const Ring<P>& ring, const CUtensorMap& left,
                                            const CUtensorMap& right) {
  if (threadIdx.x == P::kUsers) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&left) : "memory");
    asm volatile("prefetch.tensormap [%0];" ::"l"(&right) : "memory");
    ring.init();
  }
  if constexpr (P::kCtas > 1) {
    streaming::cluster_arrive();
    streaming::cluster_wait();
  } else {
    __syncthreads();
  }
  streaming::follow();
}

/// A tile's bias to shared memory, long before it is needed; adding -0 changes nothing.
template <class P>
__device__ __forceinline__ void take_bias(const Gemm& g, const Share<P>& share, const float* bias,
                                          float* to) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= kTile) return;
  to[thread] = bias && share.column0 + thread < g.n ? bias[share.column0 + thread] : -0.0F;
}

/// By every thread of a cluster.
__device__ __forceinline__ void meet() {
  streaming::cluster_arrive();
  streaming::cluster_wait();
}

/// The two parts of a tile's sums put together: the lower part's CTA gets the first half of them, the other the second.
/// A thread has kFours in each half, and `sums(half, i)` is the i-th, an array of four. Threads without sums call
/// stand_by() meanwhile.
template <int kFours, class P, class Sums>
__device__ __forceinline__ void join_parts(const Share<P>& share, char* memory, const Sums& sums) {
  static_assert(kFours * P::kUsers * 16 == kInboxBytes);
  if constexpr (!P::kHasInbox) meet();  // nobody reads the ring any more
  const int thread = static_cast<int>(threadIdx.x);
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(wg::shared_of(memory + P::kInboxAt + thread * 16)),
                 "r"(share.part == 0 ? share.rank + P::kTiles : share.rank - P::kTiles));
  const auto send = [&](auto half) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      const float(&four)[4] = sums(half, i);
      asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(there + i * P::kUsers * 16),
                   "f"(four[0]), "f"(four[1]), "f"(four[2]), "f"(four[3])
                   : "memory");
    }
  };
  const auto add = [&](auto half) {
    const auto* inbox = reinterpret_cast<const float4*>(memory + P::kInboxAt) + thread;
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      float(&four)[4] = sums(half, i);
      const float4 other = inbox[i * P::kUsers];
      four[0] += other.x;
      four[1] += other.y;
      four[2] += other.z;
      four[3] += other.w;
    }
  };
  constexpr std::integral_constant<int, 0> kLower;
  constexpr std::integral_constant<int, 1> kUpper;
  if (share.part == 0) {
    send(kUpper);
  } else {
    send(kLower);
  }
  meet();
  if (share.part == 0) {
    add(kLower);
  } else {
    add(kUpper);
  }
}
template <class P>
__device__ __forceinline__ void stand_by() {
  if constexpr (P::kSplit > 1 && !P::kHasInbox) meet();
  if constexpr (P::kSplit > 1) meet();
}

/// A barrier of those that use the slabs.
template <class P>
__device__ __forceinline__ void sync_users() {
  asm volatile("bar.sync 1, %0;" ::"n"(P::kUsers) : "memory");
}

/// The same in all lanes, and the compiler knows it.
__device__ __forceinline__ int warp_index() {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / 32, 0);
}

#endif

}  // namespace fulcrum::backends::cuda::group
