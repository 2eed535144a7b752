// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dendritic_integration on the device: a warp takes 32 dendrites at a time, of as many neurons as that is. A few lanes
// read each dendrite; their sums then change places so that every lane has one whole sum and bends it. The order of
// every sum depends on D and S alone.
#include <algorithm>
#include <span>

#include "backends/cuda/functors.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kEveryLane = 0xFFFFFFFFU;
constexpr int kMostWarps = 8;

enum Dim { kNeurons, kDendrites, kSynapses };
enum Type { kSigmoid, kNmda, kActive, kMultiplicative };

struct Neurons {
  const float *in, *weights, *state;
  float* out;
  int64_t neurons, dendrites, synapses;
  int type;
  int slots_log2;  // dendrites of a neuron that are side by side in a warp: a power of two
};

/// The limits at infinity are where a product would be 0 * Inf.
__device__ __forceinline__ float bend(float x, int type) {
  using streaming::Sigmoid, streaming::Tanh;
  switch (type) {
    case kSigmoid:
      return Sigmoid{}(10 * (x - 0.5F));
    case kNmda:
      return x == -INFINITY ? 0 : -x * Sigmoid{}(0.062F * x);
    case kActive:
      if (x == INFINITY) return 0;
      return x > 0.3F ? 2 * (x - 0.3F) * ::expf(-0.5F * x) : 0.1F * x;
    default:
      return Tanh{}(x);
  }
}

/// Four neighbours that pass through the caches once; what lies past the end is zero.
template <bool kAligned>
__device__ __forceinline__ float4 load_quad(const float* from, int64_t left) {
  if constexpr (kAligned) {
    return left > 0 ? __ldcs(reinterpret_cast<const float4*>(from)) : make_float4(0, 0, 0, 0);
  } else {
    return make_float4(left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0,
                       left > 3 ? from[3] : 0);
  }
}

/// The lanes that read a dendrite differ in their high bits: their sums become one, sum i in the lanes of part i.
template <int kCount, int kOffset = kWarp / 2, int kSize>
__device__ __forceinline__ void add_parts(float (&sum)[kSize], int lane) {
  if constexpr (kCount > 1) {
    constexpr int kHalf = kCount / 2;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float sent = lane & kOffset ? sum[i] : sum[i + kHalf];
      const float kept = lane & kOffset ? sum[i + kHalf] : sum[i];
      sum[i] = kept + __shfl_xor_sync(kEveryLane, sent, kOffset);
    }
    add_parts<kHalf, kOffset / 2>(sum, lane);
  }
}

/// The 32 dendrites that a warp has in hand: slot i is dendrite i % slots of neuron i / slots, counted from `first` on.
struct Slots {
  int64_t first;           // dendrite, counted over all neurons
  int neurons, dendrites;  // that are left, 32 at most
  int log2, per_neuron;    // slots, dendrites of a neuron

  __device__ Slots(const Neurons& p, int64_t neuron0, int64_t dendrite0)
      : first(neuron0 * p.dendrites + dendrite0),
        neurons(static_cast<int>(min(p.neurons - neuron0, int64_t{kWarp}))),
        dendrites(static_cast<int>(min(p.dendrites - dendrite0, int64_t{kWarp}))),
        log2(p.slots_log2),
        per_neuron(static_cast<int>(min(p.dendrites, int64_t{kWarp}))) {
  }  // more than that: slots of one neuron

  __device__ int neuron(int slot) const { return slot >> log2; }
  __device__ int dendrite(int slot) const { return slot & ((1 << log2) - 1); }
  __device__ bool exists(int slot) const { return neuron(slot) < neurons && dendrite(slot) < dendrites; }
  __device__ int64_t at(int slot) const { return first + neuron(slot) * per_neuron + dendrite(slot); }
};

/// Sums of 32 dendrites, one a lane: that of slot `lane`. Slot i is read by the lanes i % (32 / kLanes) + 32 / kLanes * g.
template <int kLanes, bool kAligned>
__device__ __forceinline__ float sum_dendrites(const Neurons& p, const Slots& slots) {
  constexpr int kGroups = kWarp / kLanes;
  constexpr int kAtOnce = kLanes < 4 ? kLanes : 4;  // dendrites whose synapses are on their way
  const int lane = threadIdx.x % kWarp, part = lane / kGroups, group = lane % kGroups;
  float sum[kLanes] = {};
  for (int64_t first = 4 * part; first - 4 * part < p.synapses; first += 4 * kLanes) {
#pragma unroll
    for (int round = 0; round < kLanes; round += kAtOnce) {
      float4 in[kAtOnce], weights[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int slot = (round + i) * kGroups + group;
        const int64_t at = slots.at(slot) * p.synapses + first;
        const int64_t left = slots.exists(slot) ? p.synapses - first : 0;
        in[i] = load_quad<kAligned>(p.in + at, left);
        weights[i] = load_quad<kAligned>(p.weights + at, left);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        float& to = sum[round + i];
        to = __fmaf_rn(in[i].x, weights[i].x, to);
        to = __fmaf_rn(in[i].y, weights[i].y, to);
        to = __fmaf_rn(in[i].z, weights[i].z, to);
        to = __fmaf_rn(in[i].w, weights[i].w, to);
      }
    }
  }
  add_parts<kLanes>(sum, lane);
  return sum[0];
}

/// A mean is added in fp64 over passes of 32 dendrites, so that its error does not grow with their number, then as a tree.
template <int kLanes, bool kAligned>
__global__ void __launch_bounds__(kMostWarps* kWarp, kLanes <= 4 ? 4 : 0) dendritic_warps(Neurons p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const int64_t neuron0 = warp * (kWarp >> p.slots_log2);
  if (neuron0 >= p.neurons) return;
  streaming::follow();
  const int64_t neuron = neuron0 + (lane >> p.slots_log2);
  const float half_state = neuron < p.neurons ? 0.5F * p.state[neuron] : 0;
  double passes = 0;
  for (int64_t dendrite0 = 0; dendrite0 < p.dendrites; dendrite0 += 1 << p.slots_log2) {
    const Slots slots(p, neuron0, dendrite0);
    const float sum = sum_dendrites<kLanes, kAligned>(p, slots);
    if (slots.exists(lane)) passes += bend(sum + half_state, p.type);
  }
  auto total = static_cast<float>(passes);
  for (int offset = (1 << p.slots_log2) / 2; offset > 0; offset /= 2)
    total += __shfl_xor_sync(kEveryLane, total, offset);
  if ((lane & ((1 << p.slots_log2) - 1)) == 0 && neuron < p.neurons)
    p.out[neuron] = total / static_cast<float>(p.dendrites);
}

template <bool kAligned>
auto kernel_for(int64_t synapses) {
  if (synapses <= 4) return dendritic_warps<1, kAligned>;
  if (synapses <= 8) return dendritic_warps<2, kAligned>;
  if (synapses <= 16) return dendritic_warps<4, kAligned>;
  return dendritic_warps<16, kAligned>;
}

fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  Neurons p{.in = a->in<float>(0),
            .weights = a->in<float>(1),
            .state = a->in<float>(2),
            .out = a->out<float>(3),
            .neurons = a->dim[kNeurons],
            .dendrites = a->dim[kDendrites],
            .synapses = a->dim[kSynapses],
            .type = static_cast<int>(a->scalar[0].i),
            .slots_log2 = 0};
  if (p.neurons == 0) return done();
  while (p.slots_log2 < 5 && (int64_t{1} << p.slots_log2) < p.dendrites) ++p.slots_log2;
  const int64_t all_warps = streaming::divide_up(p.neurons, kWarp >> p.slots_log2);
  const auto warps = static_cast<int>(std::clamp<int64_t>(all_warps / device().sms, 1, kMostWarps));
  const auto bits = reinterpret_cast<uintptr_t>(p.in) | reinterpret_cast<uintptr_t>(p.weights);
  const bool aligned = bits % sizeof(float4) == 0 && p.synapses % 4 == 0;
  return streaming::launch(
      aligned ? kernel_for<true>(p.synapses) : kernel_for<false>(p.synapses),
      streaming::Launch{streaming::divide_up(all_warps, warps), warps * kWarp, streaming::can_follow(a) != 0},
      stream, count, p);
}

}  // namespace

std::span<const fulcrum_kernel> dendritic_integration() {
  static const fulcrum_kernel kernels[] = {
      fulcrum_kernel{.variant = "default", .level = 1, .isa = streaming::isa, .run = run}};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
