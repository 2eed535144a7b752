// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How a convolution over channels becomes a matrix product: the weights (channels x depth) times the windows of the
// image (depth x positions), which are read from the image as they are needed. Slabs of eight depths of both lie in a
// ring in shared memory, into which asynchronous copies of single elements bring the next ones. Taps outside of the
// image are zeros.
#pragma once

#include "backends/cuda/conv_gemm.h"
#include "backends/cuda/conv_taps.h"

namespace fulcrum::backends::cuda::conv {

constexpr int kStages = 4;  // slabs in the ring

/// Brings one element, or a zero for `count` 0, when the address is not looked at. Does not wait for it.
__device__ inline void copy_async(float* shared, const float* from, uint32_t count) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(count * 4U));
}
__device__ inline void wait_for_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ inline void close_slab() { asm volatile("cp.async.commit_group;"); }
/// Until the oldest slab of the ring is there.
__device__ inline void wait_for_slab() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
}

/// kChannels x kPositions outputs a CTA of kThreads: how the operands of a slab come into shared memory. kGap: floats
/// between rows there, for the banks that a multiplication reads from.
template <int kChannels, int kPositions, int kThreads, int kGap, class Index>
struct ConvLoader {
  static constexpr int kTapThreads = kThreads / kPositions;  // threads that share a position's depths
  static constexpr int kTaps = kSlab / kTapThreads;          // depths of one of them
  static constexpr int kWeightChannels = kThreads / kSlab;   // whose weights arrive with one copy a thread
  static constexpr int kWeights = kChannels / kWeightChannels;
  static constexpr int kWeightPitch = kChannels + kGap, kWindowPitch = kPositions + kGap;
  static_assert(kTapThreads >= 1 && kTaps * kTapThreads == kSlab && kWeights * kWeightChannels == kChannels);

  struct Shared {
    alignas(16) float weights[kStages][kSlab * kWeightPitch];
    alignas(16) float windows[kStages][kSlab * kWindowPitch];
  };

  const ConvGeometry<Index>& g;
  Shared& shared;
  int64_t first_position;
  Index first_channel;

  // The thread's part: a position and some depths of the windows, a depth and some channels of the weights.
  const float* corner;  // under its window's first tap, which may lie outside of the image
  uint32_t rows_inside = 0, columns_inside = 0;
  Tap<Index> tap;
  const float* weight;
  Index weight_depth, weight_channel;

  __device__ ConvLoader(const ConvGeometry<Index>& geometry, Shared& memory, const float* x, const float* k)
      : g(geometry), shared(memory) {
    const int64_t tile = blockIdx.x;
    first_channel = static_cast<Index>(tile % g.channel_tiles) * kChannels;
    first_position = tile / g.channel_tiles * kPositions;
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t position = first_position + thread % kPositions;
    const int64_t image = position / g.y_plane, inside = position % g.y_plane;
    const Index corner_y = static_cast<Index>(inside / g.y_w) * g.stride_y - g.pad_y;
    const Index corner_x = static_cast<Index>(inside % g.y_w) * g.stride_x - g.pad_x;
    corner = x + image * g.image + int64_t{corner_y} * g.w + corner_x;
    if (position < g.positions) {
      rows_inside = inside_bits<Index>(corner_y, g.h, g.kh);
      columns_inside = inside_bits<Index>(corner_x, g.w, g.kw);
    }
    // With one thread a position all of them are at the same tap, which the compiler can see.
    if constexpr (kTapThreads > 1) {
      for (int i = 0; i < thread / kPositions * kTaps; ++i) tap.step(g);
    }
    weight_depth = thread % kSlab;
    weight_channel = first_channel + thread / kSlab;
    weight = k + int64_t{weight_channel} * g.depth + weight_depth;
  }

  /// Sends for the next slab.
  __device__ void fetch(int stage) {
    const int thread = static_cast<int>(threadIdx.x);
    float* window = shared.windows[stage] + thread % kPositions;
    if constexpr (kTapThreads > 1) window += thread / kPositions * kTaps * kWindowPitch;
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const uint32_t inside = (rows_inside >> tap.row) & (columns_inside >> tap.column) & 1U;
      copy_async(window + i * kWindowPitch, corner + tap.offset, tap.depth < g.depth ? inside : 0);
      tap.step(g);
    }
    if constexpr (kTapThreads > 1) tap.skip(g, kSlab - kTaps);
    float* to = shared.weights[stage] + thread % kSlab * kWeightPitch + thread / kSlab;
#pragma unroll
    for (int i = 0; i < kWeights; ++i) {
      const bool valid = weight_depth < g.depth && weight_channel + i * kWeightChannels < g.out;
      copy_async(to + i * kWeightChannels, weight + int64_t{i * kWeightChannels} * g.depth, valid ? 1 : 0);
    }
    weight_depth += kSlab;
    weight += kSlab;
  }

  /// Walks along all depths; multiply(stage) uses a slab.
  template <class Multiply>
  __device__ void walk(Multiply&& multiply) {
    const int64_t slabs = (int64_t{g.depth} + kSlab - 1) / kSlab;
    for (int stage = 0; stage < kStages - 1; ++stage) {
      fetch(stage);  // behind the last depth it brings zeros
      close_slab();
    }
    int stage = 0;
    for (int64_t slab = 0; slab < slabs; ++slab) {
      wait_for_slab();
      __syncthreads();  // what all threads sent for is there, and the slab before this one is used up
      fetch(stage == 0 ? kStages - 1 : stage - 1);
      close_slab();
      multiply(stage);
      stage = stage == kStages - 1 ? 0 : stage + 1;
    }
    wait_for_all();  // nothing may arrive in memory that is another CTA's by then
  }
};

}  // namespace fulcrum::backends::cuda::conv
