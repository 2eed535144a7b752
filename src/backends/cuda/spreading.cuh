// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All hops of activation_spreading in one launch: by one CTA, by a cluster or by the whole grid, with a barrier before
// each hop. Rows are added up in the order of the definition, so that every shape of launch gives the same bits. A term
// of a node that passes nothing on is a zero, and zeros change no sum (none is ever -0): they are left out.
#pragma once

#include "backends/cuda/spreading_layout.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::spreading {

inline constexpr int kThreads = 1024, kWarps = kThreads / kLanes;

/// Who takes part, and what a barrier is.
enum class Team { cta, cluster, grid };
/// How a term finds what its source passed on. `whole`: all values are in shared memory. `bits`: values of the first
/// positions and a bit for each node that passes something on are there, and only such a node's value is fetched.
/// `plain`: every value is fetched.
enum class Look { whole, bits, plain };

/// The layout in the device's memory.
struct Graph {
  std::int64_t long_positions, positions;
  const std::int32_t* node_of;
  const Slice* slices;
  const Edge* slice_edges;
  const Edge* long_edges;
  const Segment* segments;
  const Tile* tiles;
  const Hub* hubs;
  const std::int32_t* slice_begin;
  const std::int32_t* tile_begin;
};

/// Memory of a plan, by position. A team of one CTA has what it passes on and the activations in shared memory.
struct State {
  float* passed[2];        // by parity of the hop
  std::uint32_t* bits[2];  // of nodes that passed something on; those with long rows always count as such
  float* activation;
  float* parts;            // sums of segments of hubs
  std::uint32_t* tickets;  // by hub; zero between hops
  std::uint32_t* word;     // of the grid's barrier
};

struct Rule {
  std::int32_t hops;
  float lambda, theta, cap;
  bool include_source;
};

/// Bytes from the start of dynamic shared memory.
struct Places {
  int view;  // values, whole or the first; one CTA: values of both parities and activations
  int hot;   // how many are the first, a multiple of 32
  int bits;
  int terms;                                             // of two tiles
  int tile_edges;                                        // room of one
  int slice_edges, long_edges, slices, tiles, segments;  // of this CTA, where they stay over all hops
  int activations;                                       // of the nodes of this CTA's slices
};

/// What a node passes on once its row is added up; `activation` becomes the new one. NaN stays NaN.
__device__ __forceinline__ float spread_to(float sum, const Rule& rule, float& activation) {
  float c = rule.lambda * sum;
  if (fabsf(c) < rule.theta) c = 0.0F;
  const float room = c >= 0.0F ? rule.cap - activation : -rule.cap - activation;
  const bool fits = c != c || (c >= 0.0F ? c < room : c > room);
  const float passed_on = fits ? c : room;
  activation = activation + passed_on;
  return passed_on;
}

/// Waits for all CTAs of a cooperative launch. Every barrier adds 2^31 to the word, so that its top bit turns when the
/// last CTA has come, in this launch and in all later ones. `sense` is that bit as it was before.
__device__ __forceinline__ void grid_barrier(std::uint32_t* word, std::uint32_t& sense) {
  constexpr std::uint32_t kTop = 0x80000000u;
  constexpr std::uint32_t kMostPolls = 1u << 25;  // tens of seconds: an error is better than a hang
  __syncthreads();
  if (threadIdx.x == 0) {
    const std::uint32_t mine = blockIdx.x == 0 ? kTop - (gridDim.x - 1) : 1u;
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(mine) : "memory");
    for (std::uint32_t polls = 0;; ++polls) {
      std::uint32_t now;
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
      if ((now ^ sense) & kTop) break;
      if (polls == kMostPolls) __trap();
    }
  }
  sense ^= kTop;
  __syncthreads();
}

template <Team kTeam, Look kLook, bool kHeld>
struct Spreader {
  const Graph& g;
  const State& s;
  const Rule& rule;
  const float* x;
  float* out;
  char* shared;
  const Places& at;
  int lane, warp;
  std::int32_t first_slice, end_slice, first_tile, end_tile;
  std::int32_t held_slice, held_long,
      held_segment;  // `at` of this CTA's first slice and tile; its first segment
  std::uint32_t sense = 0;

  __device__ float* values(std::int32_t parity) const {
    if constexpr (kTeam == Team::cta) {
      return reinterpret_cast<float*>(shared + at.view) + (parity & 1) * g.positions;
    }
    return s.passed[parity & 1];
  }
  __device__ float* activations() const {
    if constexpr (kTeam == Team::cta) return reinterpret_cast<float*>(shared + at.view) + 2 * g.positions;
    return s.activation;
  }

  __device__ void barrier() {
    if constexpr (kTeam == Team::cta) __syncthreads();
    if constexpr (kTeam == Team::cluster) {
#if __CUDA_ARCH__ >= 900
      asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
    }
    if constexpr (kTeam == Team::grid) grid_barrier(s.word, sense);
  }

  template <int kBytes, class T>
  __device__ void hold(const T* from, std::int64_t count, int to) const {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + to));
    const std::int64_t pieces = count * static_cast<std::int64_t>(sizeof(T)) / kBytes;
    for (std::int64_t i = threadIdx.x; i < pieces; i += kThreads) {
      asm volatile(
          "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address + static_cast<std::uint32_t>(i) * kBytes),
          "l"(reinterpret_cast<const char*>(from) + i * kBytes), "n"(kBytes)
          : "memory");
    }
  }
  /// This CTA's work, which no call ever changes, on its way into shared memory.
  __device__ void hold() {
    first_slice = g.slice_begin[blockIdx.x];
    end_slice = g.slice_begin[blockIdx.x + 1];
    first_tile = g.tile_begin[blockIdx.x];
    end_tile = g.tile_begin[blockIdx.x + 1];
    held_slice = held_long = held_segment = 0;
    if constexpr (!kHeld) return;
    if (first_slice < end_slice) {
      const Slice last = g.slices[end_slice - 1];
      held_slice = g.slices[first_slice].at;
      hold<16>(g.slice_edges + std::int64_t{held_slice} * kLanes,
               std::int64_t{last.at + last.steps - held_slice} * kLanes, at.slice_edges);
      hold<8>(g.slices + first_slice, end_slice - first_slice, at.slices);
    }
    if (first_tile < end_tile) {
      const Tile first = g.tiles[first_tile], last = g.tiles[end_tile - 1];
      held_long = first.at;
      held_segment = first.first;
      hold<8>(g.long_edges + held_long, std::int64_t{last.at} + last.edges - held_long, at.long_edges);
      hold<16>(g.tiles + first_tile, end_tile - first_tile, at.tiles);
      hold<8>(g.segments + held_segment, last.first + last.segments - held_segment, at.segments);
    }
  }
  /// The work is there once a barrier follows.
  __device__ void held() const {
    if constexpr (kHeld) asm volatile("cp.async.wait_all;" ::: "memory");
  }
  __device__ Slice slice_at(std::int32_t number) const {
    if constexpr (kHeld) return reinterpret_cast<const Slice*>(shared + at.slices)[number - first_slice];
    return g.slices[number];
  }
  __device__ Tile tile_at(std::int32_t number) const {
    if constexpr (kHeld) return reinterpret_cast<const Tile*>(shared + at.tiles)[number - first_tile];
    return g.tiles[number];
  }
  __device__ Segment segment_at(std::int32_t number) const {
    if constexpr (kHeld) return reinterpret_cast<const Segment*>(shared + at.segments)[number - held_segment];
    return g.segments[number];
  }
  __device__ const int2* slice_edges(const Slice& slice) const {
    if constexpr (kHeld) {
      return reinterpret_cast<const int2*>(shared + at.slice_edges) + (slice.at - held_slice) * kLanes + lane;
    }
    return reinterpret_cast<const int2*>(g.slice_edges) + std::int64_t{slice.at} * kLanes + lane;
  }
  __device__ const int2* long_edges(const Tile& tile) const {
    if constexpr (kHeld) {
      return reinterpret_cast<const int2*>(shared + at.long_edges) + (tile.at - held_long);
    }
    return reinterpret_cast<const int2*>(g.long_edges) + tile.at;
  }

  __device__ __forceinline__ std::int32_t position_of(std::int32_t slice) const {
    return static_cast<std::int32_t>(g.long_positions) + slice * kLanes + lane;
  }

  /// What `source` passed on; 0 for none.
  __device__ __forceinline__ float value(const float* from, std::int32_t source) const {
    if constexpr (kLook == Look::bits) {
      const auto* words = reinterpret_cast<const std::uint32_t*>(shared + at.bits);
      float found = 0.0F;
      if (source >= at.hot) {
        if (words[source >> 5] >> (source & 31) & 1u) found = from[source];
      } else if (source >= 0) {
        found = reinterpret_cast<const float*>(shared + at.view)[source];
      }
      return found;
    }
    return source >= 0 ? from[source] : 0.0F;
  }

  /// A node's new state; returns whether it passes something on.
  __device__ __forceinline__ bool settle(std::int32_t position, float sum, float activation, float& kept,
                                         float* to, bool last) const {
    const float passed_on = spread_to(sum, rule, activation);
    if (last) {
      const std::int32_t node = g.node_of[position];
      if (node >= 0) out[node] = activation;
    } else {
      to[position] = passed_on;
      kept = activation;
    }
    return passed_on != 0.0F;  // NaN too
  }
  /// The activation of this lane's node of a slice, which nobody else asks for.
  __device__ __forceinline__ float& activation_of(std::int32_t slice) const {
    if constexpr (kHeld && kTeam != Team::cta) {
      return reinterpret_cast<float*>(shared + at.activations)[(slice - first_slice) * kLanes + lane];
    }
    return activations()[position_of(slice)];
  }
  __device__ __forceinline__ void settle_slice(std::int32_t slice, float sum, float* to, std::uint32_t* bits,
                                               bool last) const {
    const std::int32_t position = position_of(slice);
    float& kept = activation_of(slice);
    const bool active = settle(position, sum, kept, kept, to, last);
    if constexpr (kLook == Look::bits) {
      const std::uint32_t word = __ballot_sync(0xFFFFFFFFu, active);
      if (lane == 0 && !last) bits[position >> 5] = word;
    }
  }

  /// kCount edges of each lane: first all values are asked for, then terms are added in order. Weights are read again
  /// from where the edge was: registers are short.
  template <int kCount>
  struct Chunk {
    float value[kCount];

    __device__ __forceinline__ void fetch(const Spreader& spreader, const float* from, const int2* edges,
                                          int steps) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        value[i] = i < steps ? spreader.value(from, edges[i * kLanes].x) : 0.0F;
      }
    }
    __device__ __forceinline__ float add_to(float sum, const int2* edges, int steps) const {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        if (i < steps) sum = sum + __int_as_float(edges[i * kLanes].y) * value[i];
      }
      return sum;
    }
  };

  __device__ __forceinline__ void spread_slice(std::int32_t number, const Slice& slice, const float* from,
                                               float* to, std::uint32_t* bits, bool last) const {
    const int2* edges = slice_edges(slice);
    float sum = 0.0F;
#pragma unroll 1
    for (int steps = slice.steps; steps > 0; steps -= 12, edges += 12 * kLanes) {
      Chunk<12> chunk;
      chunk.fetch(*this, from, edges, steps);
      sum = chunk.add_to(sum, edges, steps);
    }
    settle_slice(number, sum, to, bits, last);
  }

  /// Two slices at a time where both are short: as many values in flight as in one of long rows.
  __device__ void spread_slices(const float* from, float* to, std::uint32_t* bits, bool last) const {
#pragma unroll 1
    for (std::int32_t number = first_slice + warp; number < end_slice; number += 2 * kWarps) {
      const std::int32_t other = number + kWarps;
      const Slice slice = slice_at(number);
      const Slice second = other < end_slice ? slice_at(other) : Slice{0, 0};
      if (other < end_slice && slice.steps <= 8 && second.steps <= 8) {
        Chunk<8> chunk, chunk2;
        chunk.fetch(*this, from, slice_edges(slice), slice.steps);
        chunk2.fetch(*this, from, slice_edges(second), second.steps);
        const float sum = chunk.add_to(0.0F, slice_edges(slice), slice.steps);
        const float sum2 = chunk2.add_to(0.0F, slice_edges(second), second.steps);
        settle_slice(number, sum, to, bits, last);
        settle_slice(other, sum2, to, bits, last);
        continue;
      }
      spread_slice(number, slice, from, to, bits, last);
      if (other < end_slice) spread_slice(other, second, from, to, bits, last);
    }
  }

  /// All terms of a tile into shared memory: the work is even, however long the rows are.
  __device__ void gather_tile(const Tile& tile, const float* from, float* terms) const {
    constexpr int kCount = 8;
    const int2* edges = long_edges(tile);
#pragma unroll 1
    for (int first = threadIdx.x; first < tile.edges; first += kCount * kThreads) {
      float found[kCount];
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int e = first + i * kThreads;
        found[i] = e < tile.edges ? value(from, edges[e].x) : 0.0F;
      }
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        const int e = first + i * kThreads;
        if (e < tile.edges) terms[e] = __int_as_float(edges[e].y) * found[i];
      }
    }
  }

  /// The sum of a hub by whoever brings its last part; parts are added in order.
  __device__ void settle_part(const Segment& segment, float sum, float* to, bool last) const {
    const Hub hub = g.hubs[segment.hub];
    __stcg(s.parts + segment.part, sum);
    __threadfence();
    if (atomicAdd(s.tickets + segment.hub, 1u) != static_cast<std::uint32_t>(hub.segments) - 1) return;
    s.tickets[segment.hub] = 0;
    __threadfence();
    float total = 0.0F;
#pragma unroll 4
    for (std::int32_t i = 0; i < hub.segments; ++i) total = total + __ldcg(s.parts + hub.first + i);
    float& kept = activations()[segment.position];
    settle(segment.position, total, kept, kept, to, last);
  }

  /// Segments of a tile, each by a warp; then lane j settles the row of the warp's segment j.
  __device__ void add_tile(const Tile& tile, const float* terms, float* to, bool last) const {
#pragma unroll 1
    for (std::int32_t base = warp; base < tile.segments; base += kWarps * kLanes) {
      const std::int32_t number = base + lane * kWarps;
      const bool there = number < tile.segments;
      const Segment mine = there ? segment_at(tile.first + number) : Segment{tile.at, 0, 0, -1, -1};
      const float activation = there && mine.hub < 0 ? activations()[mine.position] : 0.0F;
      float my_sum = 0.0F;
#pragma unroll 1
      for (int j = 0; j < kLanes && base + j * kWarps < tile.segments; ++j) {
        const float* from = terms + (__shfl_sync(0xFFFFFFFFu, mine.at, j) - tile.at);
        const int edges = __shfl_sync(0xFFFFFFFFu, mine.edges, j);
        float sum = 0.0F;
#pragma unroll 8
        for (int e = lane; e < edges; e += kLanes) sum = sum + from[e];
#pragma unroll
        for (int half = kLanes / 2; half > 0; half /= 2) {
          sum = sum + __shfl_down_sync(0xFFFFFFFFu, sum, half);
        }
        sum = __shfl_sync(0xFFFFFFFFu, sum, 0);
        if (lane == j) my_sum = sum;
      }
      if (!there) continue;
      if (mine.hub >= 0) {
        settle_part(mine, my_sum, to, last);
      } else {
        settle(mine.position, my_sum, activation, activations()[mine.position], to, last);
      }
    }
  }

  /// Before the first hop: what the input says, by position.
  __device__ void start() {
    const bool last = rule.hops == 0;
    float* const to = values(0);
    const auto begin = [&](std::int64_t position, float& kept) {
      const std::int32_t node = g.node_of[position];
      const float value = node >= 0 ? x[node] : 0.0F;
      const float activation = rule.include_source ? value : 0.0F;
      if (last) {
        if (node >= 0) out[node] = activation;
      } else {
        to[position] = value;
        kept = activation;
      }
      return value != 0.0F;
    };
    const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
    for (std::int64_t p = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; p < g.long_positions;
         p += threads) {
      begin(p, activations()[p]);
    }
    for (std::int32_t slice = first_slice + warp; slice < end_slice; slice += kWarps) {
      const std::int32_t position = position_of(slice);
      const bool active = begin(position, activation_of(slice));
      if constexpr (kLook == Look::bits) {
        const std::uint32_t word = __ballot_sync(0xFFFFFFFFu, active);
        if (lane == 0 && !last) s.bits[0][position >> 5] = word;
      }
    }
  }

  __device__ void copy_in(const void* from, std::int64_t words, int to) const {
    for (std::int64_t i = threadIdx.x; i < words / 4; i += kThreads) {
      reinterpret_cast<uint4*>(shared + to)[i] = static_cast<const uint4*>(from)[i];
    }
  }
  /// Everybody's values, or some of them and the bits of all, into shared memory.
  __device__ const float* look(std::int32_t parity) const {
    if constexpr (kTeam == Team::cta || kLook == Look::plain) return values(parity);
    if constexpr (kLook == Look::whole) {
      copy_in(values(parity), g.positions, at.view);
    } else {
      copy_in(s.bits[parity & 1], g.positions / kLanes, at.bits);
      copy_in(values(parity), at.hot, at.view);
    }
    __syncthreads();
    return kLook == Look::whole ? reinterpret_cast<const float*>(shared + at.view) : values(parity);
  }

  __device__ void run() {
    if constexpr (kTeam == Team::grid) sense = *reinterpret_cast<volatile std::uint32_t*>(s.word);
    start();
    held();
    int buffer = 0;
    for (std::int32_t hop = 1; hop <= rule.hops; ++hop) {
      const bool last = hop == rule.hops;
      barrier();
      const float* from = look(hop - 1);
      float* const to = values(hop);
      std::uint32_t* const bits = s.bits[hop & 1];
      if (first_tile == end_tile) spread_slices(from, to, bits, last);
      for (std::int32_t number = first_tile; number < end_tile; ++number) {
        // A buffer is written again two tiles, and so a barrier, after it was read.
        float* terms = reinterpret_cast<float*>(shared + at.terms) + buffer * at.tile_edges;
        const Tile tile = tile_at(number);
        gather_tile(tile, from, terms);
        if (number == first_tile) spread_slices(from, to, bits, last);
        __syncthreads();
        add_tile(tile, terms, to, last);
        buffer ^= 1;
      }
    }
  }
};

template <Team kTeam, Look kLook, bool kHeld>
__global__ void __launch_bounds__(kThreads, 1)
    spread(const __grid_constant__ Graph g, const __grid_constant__ State s,
           const __grid_constant__ Rule rule, const float* x, float* out,
           const __grid_constant__ Places places) {
  extern __shared__ uint4 shared[];
  Spreader<kTeam, kLook, kHeld> spreader{g,
                                         s,
                                         rule,
                                         x,
                                         out,
                                         reinterpret_cast<char*>(shared),
                                         places,
                                         static_cast<int>(threadIdx.x) % kLanes,
                                         static_cast<int>(threadIdx.x) / kLanes};
  spreader.hold();
  streaming::follow();
  spreader.run();
}

}  // namespace fulcrum::backends::cuda::spreading
