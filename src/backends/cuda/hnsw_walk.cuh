// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The walk of hnsw_search by one CTA a query: greedy descent, then the ef best of layer 0 as one sorted list in shared
// memory. Each step expands the nearest `beam` nodes at once, a warp each: more distances than one by one, in fewer
// steps, which is what a query waits for. Lists are merged by counting, so that no order of arrival shows.
#pragma once

#include "backends/cuda/hnsw_distance.cuh"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::hnsw {

inline constexpr int kLinks = 32, kUpperLinks = 16;  // of a node in layer 0, and in each above it
inline constexpr int kMostBeam = 4;
inline constexpr int kMostThreads = 256;

/// The graph in the device's memory. Lists that are not full are filled up with the node itself.
struct Links {
  const std::int32_t* lower;        // [count][kLinks]
  const std::int32_t* upper_begin;  // [count]
  const std::int32_t* upper;        // [][kUpperLinks]
  std::int32_t entry, top_layer;
};

struct Search {
  const float* queries;
  std::int64_t count;
  std::int32_t k, ef, beam;
  std::int32_t* ids;
  float* distances;
  bool by_graph;            // else every vector is compared
  float* padded;            // a query for every CTA; null: in shared memory
  std::uint32_t* seen;      // a bit a node for every CTA; null: in shared memory
  std::int64_t seen_words;  // of one, a multiple of 4
};

struct Walker {
  const Vectors& v;
  const Links& links;
  const Search& search;
  float* query;       // all of these in shared memory
  Key* lists;         // two of `ef`: steps write the one that they do not read
  Key* found;         // of this step, in any order
  std::int32_t* ids;  // to be compared
  std::uint32_t* seen;
  int* id_count;
  int* found_count;
  int* hint;  // two: the first place that got a new key, by parity of the step
  int lane, warp, warps;
  int capacity = 0, size = 0, parity = 0;

  __device__ const Key* list() const { return lists + parity * search.ef; }

  /// One id a lane, those that are wanted, to the ids.
  __device__ void take(std::int32_t id, bool wanted) const {
    const unsigned mask = __ballot_sync(kAll, wanted);
    int at = 0;
    if (lane == 0) at = atomicAdd(id_count, __popc(mask));
    at = __shfl_sync(kAll, at, 0);
    if (wanted) ids[at + __popc(mask & ((1u << lane) - 1))] = id;
  }

  template <bool kSquared>
  __device__ void compare_all(int count, Key bound) const {
    constexpr int kRows = 4, kLanesEach = kWarp / kRows;
    const auto* q = reinterpret_cast<const float4*>(query);
    for (int first = warp * kRows; first < count; first += warps * kRows) {
      const float4* row[kRows];
      float sum[kRows];
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        row[r] = reinterpret_cast<const float4*>(v.rows + ids[min(first + r, count - 1)] * v.stride);
        sum[r] = 0.0F;
      }
#pragma unroll 1
      for (int i = lane; i < static_cast<int>(v.stride / 4); i += kWarp) {
        const float4 mine = q[i];
#pragma unroll
        for (int r = 0; r < kRows; ++r) sum[r] = add<kSquared>(mine, __ldg(row[r] + i), sum[r]);
      }
      const float total = sum_over_lanes(sum, lane);
      const int place = first + lane / kLanesEach;
      if (lane % kLanesEach != 0 || place >= count) continue;
      const Key key = key_of(kSquared ? total : v.base - total, ids[place]);
      if (key > bound) found[atomicAdd(found_count, 1)] = key;
    }
  }
  /// Keys of the ids that are above `bound`, to `found`. Barriers before and after it are the caller's.
  __device__ void compare(int count, Key bound) const {
    if (v.squared) {
      compare_all<true>(count, bound);
    } else {
      compare_all<false>(count, bound);
    }
  }

  /// From the entry down to layer 1: the nearest node that its neighbours do not improve on.
  __device__ Key descend() const {
    if (threadIdx.x == 0) ids[0] = links.entry, *found_count = 0;
    __syncthreads();
    compare(1, 0);
    __syncthreads();
    Key nearest = found[0];
    for (std::int32_t layer = links.top_layer; layer > 0; --layer) {
      for (bool moved = true; moved;) {
        __syncthreads();  // everybody has read `found`
        if (threadIdx.x == 0) *id_count = 0, *found_count = 0;
        __syncwarp();
        if (warp == 0) {
          const std::int32_t node = id_of(nearest);
          const std::int64_t list = links.upper_begin[node] + layer - 1;
          const std::int32_t id = lane < kUpperLinks ? __ldg(links.upper + list * kUpperLinks + lane) : node;
          take(id, id != node);
        }
        __syncthreads();
        compare(*id_count, nearest);
        __syncthreads();
        const int count = *found_count;
        moved = count > 0;
        for (int i = 0; i < count; ++i) nearest = topk::larger(nearest, found[i]);
      }
    }
    return nearest;
  }

  /// What was found goes into the list; its places up to `expanded` are done with. Ends with a barrier.
  __device__ void merge(int expanded) {
    const int count = *found_count;
    const Key* from = list();
    Key* to = lists + (parity ^ 1) * search.ef;
    for (int i = threadIdx.x; i < size; i += blockDim.x) {
      const Key key = i <= expanded ? from[i] & ~kFresh : from[i];
      int place = i;
      for (int j = 0; j < count; ++j) place += found[j] > key;
      if (place < capacity) to[place] = key;
    }
    for (int j = threadIdx.x; j < count; j += blockDim.x) {
      const Key key = found[j];
      int low = 0, high = size;  // the first place that is not better
      while (low < high) {
        const int middle = (low + high) / 2;
        if (from[middle] > key) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      for (int i = 0; i < count; ++i) low += found[i] > key;
      if (low >= capacity) continue;
      to[low] = key;
      atomicMin(hint + parity, low);
    }
    if (threadIdx.x == 0) *id_count = 0;
    size = min(capacity, size + count);
    parity ^= 1;
    __syncthreads();
    if (threadIdx.x == 0) *found_count = 0;
  }

  /// Empty lists; a barrier must follow.
  __device__ void begin(int most) {
    capacity = most;
    size = parity = 0;
    if (threadIdx.x == 0) *id_count = 0, *found_count = 0;
  }

  /// This warp's pick: the place of the warp'th key that still has to be expanded, from `first` on. The same in all
  /// warps: how many there are, at most beam, and the place of the last.
  __device__ int pick(int first, int& mine, int& last) const {
    int picked = 0;
    const Key* keys = list();
    for (int base = first; base < size && picked < search.beam; base += kWarp) {
      const bool fresh = base + lane < size && (keys[base + lane] & kFresh) != 0;
      unsigned mask = __ballot_sync(kAll, fresh);
      for (; mask != 0 && picked < search.beam; mask &= mask - 1, ++picked) {
        last = base + __ffs(static_cast<int>(mask)) - 1;
        if (picked == warp) mine = last;
      }
    }
    return picked;
  }

  __device__ bool first_visit(std::int32_t id) const {
    const std::uint32_t bit = 1u << (id & 31);
    return (atomicOr(seen + (id >> 5), bit) & bit) == 0;
  }

  __device__ void walk() {
    const Key start = descend();
    __syncthreads();
    begin(search.ef);
    if (threadIdx.x == 0) {
      lists[0] = start;
      first_visit(id_of(start));
    }
    size = 1;
    __syncthreads();
    int first = 0;
    while (true) {
      int mine = 0, last = 0;
      const int picked = pick(first, mine, last);
      if (picked == 0) break;
      if (warp < picked) {
        const std::int32_t node = id_of(list()[mine]);
        const std::int32_t id = __ldg(links.lower + std::int64_t{node} * kLinks + lane);
        take(id, id != node && first_visit(id));
      }
      if (threadIdx.x == 0) hint[parity] = last + 1;
      __syncthreads();
      compare(*id_count, size == capacity ? list()[capacity - 1] : 0);
      __syncthreads();
      const int before = parity;
      merge(last);
      first = hint[before];
    }
    __syncthreads();  // the lists are read below, and may be written again
  }

  /// The k nearest of all vectors, when the graph has fewer to give from where a walk began.
  __device__ void scan() {
    const int step = kLinks * search.beam;
    begin(search.k);
    for (std::int64_t base = 0; base < v.count; base += step) {
      __syncthreads();
      const int count = static_cast<int>(min(static_cast<std::int64_t>(step), v.count - base));
      for (int i = threadIdx.x; i < count; i += blockDim.x) ids[i] = static_cast<std::int32_t>(base) + i;
      __syncthreads();
      compare(count, size == capacity ? list()[capacity - 1] : 0);
      __syncthreads();
      merge(-1);
    }
    __syncthreads();
  }

  __device__ void run(std::int64_t number) {
    size = 0;
    if (warp == 0) load_query(v, search.queries + number * v.dimension, query, lane);
    for (std::int64_t i = threadIdx.x; i < search.seen_words / 4; i += blockDim.x) {
      reinterpret_cast<uint4*>(seen)[i] = make_uint4(0, 0, 0, 0);
    }
    __syncthreads();
    if (search.by_graph) walk();
    if (size < search.k) scan();
    for (int i = threadIdx.x; i < search.k; i += blockDim.x) {
      search.ids[number * search.k + i] = id_of(list()[i]);
      search.distances[number * search.k + i] = distance_of(list()[i]);
    }
    __syncthreads();
  }
};

/// Bytes of dynamic shared memory: lists, found, ids, and where they are not in global memory query and bits, in this
/// order; all are multiples of 16.
inline std::size_t walk_shared_bytes(const Vectors& v, const Search& search, bool query_apart,
                                     bool seen_apart) {
  return static_cast<std::size_t>(2 * 8 * std::int64_t{search.ef} + kLinks * search.beam * (8 + 4) +
                                  (query_apart ? 0 : v.stride * 4) +
                                  (seen_apart ? 0 : search.seen_words * 4));
}

/// kApart: query or bits are in global memory.
template <bool kApart>
__global__ void __launch_bounds__(kMostThreads, kApart ? 3 : 4)
    hnsw_walk(const __grid_constant__ Vectors v, const __grid_constant__ Links links,
              const __grid_constant__ Search search) {
  extern __shared__ uint4 shared[];
  __shared__ int counters[4];
  auto* lists = reinterpret_cast<Key*>(shared);
  auto* found = lists + 2 * search.ef;
  auto* ids = reinterpret_cast<std::int32_t*>(found + kLinks * search.beam);
  auto* query = reinterpret_cast<float*>(ids + kLinks * search.beam);
  auto* bits = reinterpret_cast<std::uint32_t*>(query + v.stride);
  if constexpr (kApart) {
    if (search.padded) {
      bits = reinterpret_cast<std::uint32_t*>(query);
      query = search.padded + blockIdx.x * v.stride;
    }
    if (search.seen) bits = search.seen + blockIdx.x * search.seen_words;
  }
  Walker walker{v,
                links,
                search,
                query,
                lists,
                found,
                ids,
                bits,
                counters,
                counters + 1,
                counters + 2,
                static_cast<int>(threadIdx.x) % kWarp,
                static_cast<int>(threadIdx.x) / kWarp,
                static_cast<int>(blockDim.x) / kWarp};
  streaming::follow();
  for (std::int64_t number = blockIdx.x; number < search.count; number += gridDim.x) walker.run(number);
}

}  // namespace fulcrum::backends::cuda::hnsw
