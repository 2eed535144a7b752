// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// All hops of activation_spreading in one launch: by one CTA, by a cluster or by the whole grid, with a barrier before
// each hop. Rows are added up in the order of the definition, so that every shape of launch gives the same bits. A term
// of a node that passes nothing on is a zero, and zeros change no sum (none is ever -0): it needs no fetching.
#pragma once

#include "backends/cuda/spreading_parts.cuh"

namespace fulcrum::backends::cuda::spreading {

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
  Share first, end;  // this CTA's
  std::int64_t first_wanted = 0;
  int wanted_count = 0;
  std::uint32_t sense = 0;

  template <class T>
  __device__ T* in_shared(int place) const {
    return reinterpret_cast<T*>(shared + place);
  }
  __device__ float* values(std::int32_t parity) const {
    if constexpr (kTeam == Team::cta) return in_shared<float>(at.view) + (parity & 1) * g.positions;
    return s.passed[parity & 1];
  }
  __device__ float* activations() const {
    if constexpr (kTeam == Team::cta) return in_shared<float>(at.view) + 2 * g.positions;
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

  /// A copy that is there after wait_held() and a barrier. All arrays and shares of them begin at multiples of kBytes.
  template <int kBytes, class T>
  __device__ void hold(const T* from, std::int64_t count, int to) const {
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + to));
    const auto pieces = static_cast<int>(count * static_cast<std::int64_t>(sizeof(T)) / kBytes);
    for (int i = threadIdx.x; i < pieces; i += kThreads) {
      asm volatile(
          "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address + static_cast<std::uint32_t>(i) * kBytes),
          "l"(reinterpret_cast<const char*>(from) + std::int64_t{i} * kBytes), "n"(kBytes)
          : "memory");
    }
  }
  /// This CTA's work, which no call ever changes, on its way into shared memory.
  __device__ void hold() {
    first = g.shares[blockIdx.x];
    end = g.shares[blockIdx.x + 1];
    if constexpr (kLook == Look::own) {
      first_wanted = g.wanted_begin[blockIdx.x];
      wanted_count = static_cast<int>(g.wanted_begin[blockIdx.x + 1] - first_wanted);
    }
    if constexpr (!kHeld) return;
    hold<16>(g.node_of + position_of(first.slice) - lane, (end.slice - first.slice) * kLanes, at.nodes);
    asm volatile("cp.async.commit_group;" ::: "memory");  // first: it is wanted first
    hold<16>(g.sources + first.edge, end.edge - first.edge, at.sources);
    hold<16>(g.weights + first.edge, end.edge - first.edge, at.weights);
    hold<8>(g.slices + first.slice, end.slice - first.slice, at.slices);
    hold<8>(g.segments + first.segment, end.segment - first.segment, at.segments);
    hold<16>(g.tiles + first.tile, end.tile - first.tile, at.tiles);
    hold<16>(g.hubs + first.hub, end.hub - first.hub, at.hubs);
    if constexpr (kLook == Look::own) hold<16>(g.wanted + first_wanted, wanted_count, at.wanted);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  template <int kLeft>
  __device__ void wait_held() const {
    if constexpr (kHeld) asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
  }
  __device__ Slice slice_at(std::int32_t number) const {
    if constexpr (kHeld) return in_shared<const Slice>(at.slices)[number - first.slice];
    return g.slices[number];
  }
  __device__ Segment segment_at(std::int32_t number) const {
    if constexpr (kHeld) return in_shared<const Segment>(at.segments)[number - first.segment];
    return g.segments[number];
  }
  __device__ Tile tile_at(std::int32_t number) const {
    if constexpr (kHeld) return in_shared<const Tile>(at.tiles)[number - first.tile];
    return g.tiles[number];
  }
  __device__ const std::int32_t* sources_of(const Tile& tile) const {
    if constexpr (kHeld)
      return in_shared<const std::int32_t>(at.sources) + static_cast<int>(tile.at - first.edge);
    return g.sources + tile.at;
  }
  __device__ const float* weights_of(const Tile& tile) const {
    if constexpr (kHeld) return in_shared<const float>(at.weights) + static_cast<int>(tile.at - first.edge);
    return g.weights + tile.at;
  }

  __device__ __forceinline__ std::int32_t position_of(std::int32_t slice) const {
    return static_cast<std::int32_t>(g.long_positions) + slice * kLanes + lane;
  }
  __device__ __forceinline__ std::int32_t node_of(std::int32_t position) const {
    const std::int32_t mine = position - static_cast<std::int32_t>(g.long_positions) - first.slice * kLanes;
    if (kHeld && mine >= 0) return in_shared<const std::int32_t>(at.nodes)[mine];
    return g.node_of[position];
  }
  /// The activation of this lane's node of a slice, which no other CTA asks for.
  __device__ __forceinline__ float& activation_of(std::int32_t slice) const {
    if constexpr (kHeld && kTeam != Team::cta) {
      return in_shared<float>(at.activations)[(slice - first.slice) * kLanes + lane];
    }
    return activations()[position_of(slice)];
  }

  /// Whether the value of `source` has to be fetched; -1 has none.
  __device__ __forceinline__ bool is_wanted(std::int32_t source) const {
    if constexpr (kLook == Look::bits || kLook == Look::hot) {
      const std::uint32_t word = in_shared<const std::uint32_t>(at.bits)[source >= 0 ? source >> 5 : 0];
      return source >= at.hot && (word >> (source & 31) & 1u);
    }
    return source >= 0;
  }

  /// Terms of up to kCount * kThreads edges into shared memory: sources, then bits, then values, all at once each, so
  /// that a thread waits three times and not for every edge. The work is even, however long rows are.
  template <int kCount>
  __device__ __forceinline__ void fetch(const Tile& tile, const float* from, float* terms) const {
    const std::int32_t* sources = sources_of(tile);
    const float* weights = weights_of(tile);
    std::int32_t source[kCount];
    float found[kCount];
    bool wanted[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int e = static_cast<int>(threadIdx.x) + i * kThreads;
      source[i] = e < tile.edges ? sources[e] : -1;
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) wanted[i] = is_wanted(source[i]);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      found[i] = 0.0F;
      if (wanted[i]) found[i] = from[source[i]];
      if (kLook == Look::hot && source[i] >= 0 && source[i] < at.hot) {
        found[i] = in_shared<const float>(at.view)[source[i]];
      }
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int e = static_cast<int>(threadIdx.x) + i * kThreads;
      if (e < tile.edges) terms[e] = weights[e] * found[i];
    }
  }
  __device__ void fetch(const Tile& tile, const float* from, float* terms) const {
    constexpr int kMost = kTileEdges / kThreads, kFew = 6;
    if (tile.edges <= kFew * kThreads) {
      fetch<kFew>(tile, from, terms);
    } else {
      fetch<kMost>(tile, from, terms);
    }
  }

  /// Every 32nd of `count` terms from the first on, added in order; asked for kChunk at a time. Zeros change no sum.
  template <int kChunk>
  __device__ __forceinline__ float add_up(const float* terms, int count) const {
    float sum = 0.0F;
#pragma unroll 1
    for (int first_term = 0; first_term < count; first_term += kChunk) {
      float term[kChunk];
#pragma unroll
      for (int i = 0; i < kChunk; ++i) {
        term[i] = first_term + i < count ? terms[(first_term + i) * kLanes] : 0.0F;
      }
#pragma unroll
      for (int i = 0; i < kChunk; ++i) sum = sum + term[i];
    }
    return sum;
  }

  /// A node's new state; returns whether it passes something on.
  __device__ __forceinline__ bool settle(std::int32_t position, float sum, float activation, float& kept,
                                         float* to, bool last) const {
    const float passed_on = spread_to(sum, rule, activation);
    if (last) {
      const std::int32_t node = node_of(position);
      if (node >= 0) out[node] = activation;
    } else {
      to[position] = passed_on;
      kept = activation;
    }
    return passed_on != 0.0F;  // NaN too
  }
  __device__ void mark(std::int32_t position, bool active, std::uint32_t* bits, bool last) const {
    if constexpr (kLook == Look::bits || kLook == Look::hot) {
      const std::uint32_t word = __ballot_sync(0xFFFFFFFFu, active);
      if (lane == 0 && !last) bits[position >> 5] = word;
    }
  }

  /// Slices of a tile, a row a lane. Warps count backwards: the first have the longest segments.
  __device__ void add_slices(const Tile& tile, const float* terms, float* to, std::uint32_t* bits,
                             bool last) const {
#pragma unroll 1
    for (std::int32_t i = kWarps - 1 - warp; i < tile.slices; i += kWarps) {
      const Slice slice = slice_at(tile.first_slice + i);
      const float* mine = terms + slice.at + lane;
      float& kept = activation_of(tile.first_slice + i);
      const float activation = kept;
      const float sum = add_up<8>(mine, slice.steps);
      const std::int32_t position = position_of(tile.first_slice + i);
      mark(position, settle(position, sum, activation, kept, to, last), bits, last);
    }
  }

  /// The sum of a hub that CTAs share by whoever brings its last part; parts are added in order.
  __device__ void settle_part(const Segment& segment, const Hub& hub, float sum, float activation, float* to,
                              bool last) const {
    __stcg(s.parts + segment.part, sum);
    std::uint32_t before;  // what others stored before their tickets is there behind this one
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(s.tickets + segment.hub)
                 : "memory");
    if (before != static_cast<std::uint32_t>(hub.segments) - 1) return;
    s.tickets[segment.hub] = 0;
    float total = 0.0F;
#pragma unroll 4
    for (std::int32_t i = 0; i < hub.segments; ++i) total = total + __ldcg(s.parts + hub.first + i);
    settle(hub.position, total, activation, activations()[hub.position], to, last);
  }

  /// Segments of a tile, each by a warp; then lane j settles the row of the warp's segment j.
  __device__ void add_segments(const Tile& tile, const float* terms, float* to, bool last) const {
#pragma unroll 1
    for (std::int32_t base = warp; base < tile.segments; base += kWarps * kLanes) {
      const std::int32_t number = base + lane * kWarps;
      const bool there = number < tile.segments;
      const Segment mine = there ? segment_at(tile.first_segment + number) : Segment{0, 0, 0, kLocal, 0, 0};
      // Asked for early: there is time until the sums are made.
      const Hub hub = mine.hub >= 0 ? g.hubs[g.first_shared_hub + mine.hub] : Hub{0, 0, 0, 0};
      const float activation = mine.hub != kLocal ? activations()[mine.position] : 0.0F;
      float my_sum = 0.0F;
#pragma unroll 1
      for (int j = 0; j < kLanes && base + j * kWarps < tile.segments; ++j) {
        const float* from = terms + __shfl_sync(0xFFFFFFFFu, mine.at, j) + lane;
        const int edges = __shfl_sync(0xFFFFFFFFu, mine.edges, j);
        float sum = add_up<16>(from, (edges - lane + kLanes - 1) / kLanes);
        __syncwarp();
#pragma unroll
        for (int half = kLanes / 2; half > 0; half /= 2) {
          sum = sum + __shfl_down_sync(0xFFFFFFFFu, sum, half);
        }
        sum = __shfl_sync(0xFFFFFFFFu, sum, 0);
        if (lane == j) my_sum = sum;
      }
      if (!there) continue;
      if (mine.hub == kWhole) {
        settle(mine.position, my_sum, activation, activations()[mine.position], to, last);
      } else if (mine.hub == kLocal) {
        in_shared<float>(at.parts)[mine.part] = my_sum;
      } else {
        settle_part(mine, hub, my_sum, activation, to, last);
      }
    }
  }

  /// Hubs of this CTA alone, once all their parts are in shared memory.
  __device__ void settle_hubs(float* to, bool last) const {
    if (first.hub == end.hub) return;
    __syncthreads();
    for (std::int32_t i = first.hub + static_cast<std::int32_t>(threadIdx.x); i < end.hub; i += kThreads) {
      const Hub hub = kHeld ? in_shared<const Hub>(at.hubs)[i - first.hub] : g.hubs[i];
      const float* parts = in_shared<const float>(at.parts) + hub.first;
      float total = 0.0F;
      for (std::int32_t part = 0; part < hub.segments; ++part) total = total + parts[part];
      float& kept = activations()[hub.position];
      settle(hub.position, total, kept, kept, to, last);
    }
  }

  /// Before the first hop: what the input says, by position.
  __device__ void start() {
    const bool last = rule.hops == 0;
    float* const to = values(0);
    const auto begin = [&](std::int32_t position, std::int32_t node, float& kept) {
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
    wait_held<1>();
    __syncthreads();
    const std::int64_t threads = std::int64_t{gridDim.x} * kThreads;
    for (std::int64_t p = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; p < g.long_positions;
         p += threads) {
      begin(static_cast<std::int32_t>(p), g.node_of[p], activations()[p]);
    }
    for (std::int32_t slice = first.slice + warp; slice < end.slice; slice += kWarps) {
      const std::int32_t position = position_of(slice);
      mark(position, begin(position, node_of(position), activation_of(slice)), s.bits[0], last);
    }
  }

  /// What other CTAs wrote, on its way into shared memory. CTAs begin at different places: all of them read the same.
  __device__ void copy_in(const void* from, int words, int to) const {
    const int pieces = words / 4;
    const int turn = static_cast<int>(blockIdx.x) * pieces / static_cast<int>(gridDim.x);
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared + to));
    for (int i = threadIdx.x; i < pieces; i += kThreads) {
      const int piece = i + turn < pieces ? i + turn : i + turn - pieces;
      asm volatile(
          "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address + static_cast<std::uint32_t>(piece) * 16),
          "l"(static_cast<const uint4*>(from) + piece)
          : "memory");
    }
  }
  /// The values that this CTA's edges name into shared memory, several loads of a thread in flight. Positions ascend,
  /// so that neighbours in a warp share sectors.
  __device__ __forceinline__ void fetch_own(const float* from) const {
    constexpr int kBatch = 8;
    const std::int32_t* list = kHeld ? in_shared<const std::int32_t>(at.wanted) : g.wanted + first_wanted;
    float* const view = in_shared<float>(at.view);
#pragma unroll 1
    for (int base = static_cast<int>(threadIdx.x); base < wanted_count; base += kBatch * kThreads) {
      float value[kBatch];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int place = base + i * kThreads;
        if (place < wanted_count) value[i] = __ldcg(from + list[place]);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int place = base + i * kThreads;
        if (place < wanted_count) view[place] = value[i];
      }
    }
  }
  /// Everybody's values, or some of them and the bits of all, into shared memory.
  __device__ const float* look(std::int32_t parity) const {
    if constexpr (kTeam == Team::cta || kLook == Look::plain) return values(parity);
    if constexpr (kLook == Look::own) {
      fetch_own(values(parity));
      __syncthreads();
      return in_shared<const float>(at.view);
    }
    if constexpr (kLook == Look::whole) {
      copy_in(values(parity), static_cast<int>(g.positions), at.view);
    } else {
      copy_in(s.bits[parity & 1], static_cast<int>(g.positions / kLanes), at.bits);
      if constexpr (kLook == Look::hot) copy_in(values(parity), at.hot, at.view);
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    return kLook == Look::whole ? in_shared<const float>(at.view) : values(parity);
  }

  __device__ void run() {
    if constexpr (kTeam == Team::grid) sense = *reinterpret_cast<volatile std::uint32_t*>(s.word);
    start();
    wait_held<0>();
    int buffer = 0;
    for (std::int32_t hop = 1; hop <= rule.hops; ++hop) {
      const bool last = hop == rule.hops;
      barrier();
      const float* from = look(hop - 1);
      float* const to = values(hop);
      std::uint32_t* const bits = s.bits[hop & 1];
#pragma unroll 1
      for (std::int32_t number = first.tile; number < end.tile; ++number) {
        // Of two buffers, one is written again two tiles, and so a barrier, after it was read.
        float* terms = in_shared<float>(at.terms + buffer * at.tile_bytes);
        const Tile tile = tile_at(number);
        fetch(tile, from, terms);
        __syncthreads();
        add_segments(tile, terms, to, last);
        add_slices(tile, terms, to, bits, last);
        buffer ^= 1;
      }
      settle_hubs(to, last);
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
