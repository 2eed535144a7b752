// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeping the best of many on the device. A result is one integer, its key: a larger key is a better result, and no
// two are equal, so that the order in which keys arrive changes nothing. Up to 32 of them live in a warp's registers
// (WarpList), more in shared memory (BlockList); CTAs hand their lists to the one that finishes last.
#pragma once

#include <cstdint>

namespace fulcrum::backends::cuda::topk {

using Key = unsigned long long;  // 0: none
inline constexpr int kWarpMost = 32;
inline constexpr int kMostKeys = 2048;  // of a list in shared memory
inline constexpr unsigned kAll = 0xFFFFFFFFu;

/// Scores as integers of the same order: 0 and -0 are equal, NaN is 0, below every number.
__device__ inline std::uint32_t order_of(float score) {
  const std::uint32_t bits = __float_as_uint(score + 0.0F);
  return score != score ? 0 : (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
}
__device__ inline float score_of(std::uint32_t order) {
  if (order == 0) return __uint_as_float(0x7FC00000u);
  return __uint_as_float((order & 0x80000000u) ? order & 0x7FFFFFFFu : ~order);
}
/// Higher scores first, then lower rows; for distances the score is the negated distance. Rows below 2^31.
__device__ inline Key key_of(float score, std::int64_t row) {
  return static_cast<Key>(order_of(score)) << 32 |
         static_cast<std::uint32_t>(~static_cast<std::uint32_t>(row));
}
__device__ inline float key_score(Key key) { return score_of(static_cast<std::uint32_t>(key >> 32)); }
__device__ inline std::int32_t key_row(Key key) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(key));
}

__device__ inline Key larger(Key a, Key b) { return a > b ? a : b; }
__device__ inline Key smaller(Key a, Key b) { return a < b ? a : b; }

/// One key a lane to descending order over the lanes; `kFrom` = 32: of a bitonic sequence only, which is five steps.
template <int kFrom = 2>
__device__ inline Key sort_lanes(Key key, int lane) {
#pragma unroll
  for (int size = kFrom; size <= 32; size *= 2) {
#pragma unroll
    for (int distance = size / 2; distance > 0; distance /= 2) {
      const Key other = __shfl_xor_sync(kAll, key, distance);
      const bool first = (lane & distance) == 0, descending = (lane & size) == 0 || size == 32;
      key = first == descending ? larger(key, other) : smaller(key, other);
    }
  }
  return key;
}

/// The best k <= 32 keys that a warp has seen, best in lane 0; lanes from k on may hold others. Whole warps call.
struct WarpList {
  Key mine = 0;
  Key worst = 0;  // of the k, in every lane: keys up to it cannot enter

  __device__ void learn_worst(int k) { worst = __shfl_sync(kAll, mine, k - 1); }
  /// The same key in every lane.
  __device__ void insert(Key key, int k, int lane) {
    const unsigned before = __ballot_sync(kAll, mine > key);
    const Key up = __shfl_up_sync(kAll, mine, 1);
    const int place = __popc(before);
    if (lane == place) mine = key;
    if (lane > place) mine = up;
    learn_worst(k);
  }
  /// 32 keys in descending order over the lanes.
  __device__ void merge_sorted(Key keys, int k, int lane) {
    mine = sort_lanes<32>(larger(mine, __shfl_sync(kAll, keys, 31 - lane)), lane);
    learn_worst(k);
  }
  /// One key a lane, 0 for none, in any order. Returns whether any entered.
  __device__ bool offer(Key key, int k, int lane) {
    constexpr int kFew = 6;  // so many insertions take as long as to sort and merge
    unsigned better = __ballot_sync(kAll, key > worst);
    if (better == 0) return false;
    if (__popc(better) > kFew) {
      merge_sorted(sort_lanes(key > worst ? key : 0, lane), k, lane);
      return true;
    }
    for (; better != 0; better &= better - 1) {
      const Key next = __shfl_sync(kAll, key, __ffs(static_cast<int>(better)) - 1);
      if (next > worst) insert(next, k, lane);
    }
    return true;
  }
};

/// Results to their arrays, one a lane.
__device__ inline void write_lane(Key mine, int k, int lane, std::int32_t* ids, float* scores) {
  if (lane >= k) return;
  ids[lane] = key_row(mine);
  scores[lane] = key_score(mine);
}

/// The best of the lists of a CTA's warps, in warp 0's. All threads call; `shared` holds 32 keys a warp.
__device__ inline void merge_block(WarpList& list, Key* shared, int k, int lane, int warp, int warps) {
  shared[warp * 32 + lane] = lane < k ? list.mine : 0;
  __syncthreads();
  for (int step = 1; step < warps; step *= 2) {
    if (warp % (2 * step) == 0 && warp + step < warps) {
      list.merge_sorted(shared[(warp + step) * 32 + lane], k, lane);
      shared[warp * 32 + lane] = lane < k ? list.mine : 0;
    }
    __syncthreads();
  }
}

/// Whether this CTA is the last of `ctas` to come here; all threads call, and what the others wrote before is then
/// visible to all threads of the last. The ticket is zero before and after. Loads behind it go past L1: __ldcg.
__device__ inline bool is_last_block(unsigned* ticket, unsigned ctas) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc(ticket, ctas - 1) == ctas - 1;
    __threadfence();
  }
  __syncthreads();
  return last;
}

/// Lists of several CTAs in memory: the key of rank r of list c at [r * lists + c], each descending, so that a rank
/// without a key that enters ends the merge. A CTA's list of k <= 32:
__device__ inline void store_ranks(Key mine, int k, int lane, Key* ranks, std::int64_t lists,
                                   std::int64_t list) {
  if (lane < k) __stcg(ranks + lane * lists + list, mine);
}
/// Lists `first`, `first` + `step`, ... of those, 32 at a time, by one warp.
__device__ inline void merge_ranks(WarpList& into, const Key* ranks, std::int64_t lists, std::int64_t first,
                                   std::int64_t step, int k, int lane) {
  for (std::int64_t base = first * 32; base < lists; base += step * 32) {
    const std::int64_t list = base + lane;
    Key next = list < lists ? __ldcg(ranks + list) : 0;
    for (int rank = 0; rank < k; ++rank) {
      const Key now = next;
      if (rank + 1 < k) next = list < lists ? __ldcg(ranks + (rank + 1) * lists + list) : 0;
      if (!into.offer(now, k, lane)) break;
    }
  }
}

/// Shared memory's keys in descending order, by all threads; `size` is a power of two.
__device__ inline void sort_block(Key* keys, int size) {
  for (int run = 2; run <= size; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < size / 2; i += static_cast<int>(blockDim.x)) {
        const int low = 2 * i - (i & (distance - 1)), high = low + distance;
        const Key a = keys[low], b = keys[high];
        const bool descending = (low & run) == 0;
        if ((a < b) == descending) keys[low] = b, keys[high] = a;
      }
    }
  }
  __syncthreads();
}

/// The best k that a CTA has seen, for any k: keys come into the free end of `keys` and are sorted in when that is
/// full. Threads append between two calls of make_room(); `capacity` is a power of two, at least twice k.
struct BlockList {
  Key* keys;        // shared, capacity of them
  unsigned* count;  // shared
  int capacity, k;
  Key worst = 0;  // in every thread

  /// The same `keys` and `count` for all threads; a barrier must follow.
  __device__ void clear() {
    if (threadIdx.x == 0) *count = 0;
  }
  /// There must be room.
  __device__ void append(Key key) {
    if (key > worst) keys[atomicAdd(count, 1u)] = key;
  }
  /// All threads: so that `adding` more keys have room, at most capacity - k.
  __device__ void make_room(int adding) {
    __syncthreads();
    const int held = static_cast<int>(*count);
    if (held + adding > capacity) {
      finish();
    } else {
      __syncthreads();
    }
  }
  /// All threads: the best k in order at keys[0..], zeros behind what there is.
  __device__ void finish() {
    __syncthreads();
    const int held = static_cast<int>(*count);
    int size = 32;  // of what there is to sort, often far less than there is room for
    while (size < held || size < k) size *= 2;
    for (int i = held + static_cast<int>(threadIdx.x); i < size; i += static_cast<int>(blockDim.x))
      keys[i] = 0;
    sort_block(keys, size);
    if (threadIdx.x == 0) *count = static_cast<unsigned>(held < k ? held : k);
    worst = keys[k - 1];
    __syncthreads();
  }
};

}  // namespace fulcrum::backends::cuda::topk
