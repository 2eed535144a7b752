// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a spreading kernel is given, who takes part, and the two steps that all of its ways share: what a node passes on,
// and the wait for all CTAs.
#pragma once

#include "backends/cuda/spreading_layout.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::spreading {

inline constexpr int kThreads = 1024, kWarps = kThreads / kLanes;

/// Who takes part, and what a barrier is.
enum class Team { cta, cluster, grid };
/// How a term finds what its source passed on. `whole`: all values are in shared memory. `bits`: a bit for each node
/// that passes something on is there, and only such a node's value is fetched. `hot`: the same, but the values of the
/// first positions are there too. `own`: the values that this CTA's edges name are there, each once. `plain`: every
/// value is fetched.
enum class Look { whole, bits, hot, own, plain };

/// The layout in the device's memory.
struct Graph {
  std::int64_t long_positions, positions, first_shared_hub;
  const std::int32_t* node_of;
  const std::int32_t* sources;
  const float* weights;
  const Slice* slices;
  const Segment* segments;
  const Tile* tiles;
  const Hub* hubs;
  const Share* shares;
  const std::int32_t* wanted;        // positions of the values that a CTA fetches, where edges name these
  const std::int64_t* wanted_begin;  // by CTA, and the end
};

/// Memory of a plan, by position. A team of one CTA has what it passes on and the activations in shared memory.
struct State {
  float* passed[2];        // by parity of the hop
  std::uint32_t* bits[2];  // of nodes that passed something on; those with long rows always count as such
  float* activation;
  float* parts;            // sums of segments of hubs that CTAs share
  std::uint32_t* tickets;  // by such hub; zero between hops
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
  int terms;                                            // of one tile, or of two in turn
  int tile_bytes;                                       // from one to the other; 0: there is one
  int parts;                                            // of this CTA's hubs
  int sources, weights, slices, segments, tiles, hubs;  // of this CTA, where they stay over all hops
  int nodes, activations;                               // of this CTA's slices, with them
  int wanted;                                           // what this CTA fetches, with them
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

}  // namespace fulcrum::backends::cuda::spreading
