// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dendritic_integration on the device: a warp takes 32 dendrites at a time, of as many neurons as that is. A few lanes
// read each dendrite; their sums then change places so that every lane has one whole sum and bends it. Means are added
// in fp64 as a tree. The order of every sum depends on D and S alone.
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

/// Four neighbours of n; what lies past the end is zero.
template <bool kAligned>
__device__ __forceinline__ float4 load_quad(const float* from, int64_t left) {
  if constexpr (kAligned) {
    return left > 0 ? *reinterpret_cast<const float4*>(from) : make_float4(0, 0, 0, 0);
  } else {
    return make_float4(left > 0 ? from[0] : 0, left > 1 ? from[1] : 0, left > 2 ? from[2] : 0,
                       left > 3 ? from[3] : 0);
  }
}

/// Where this lane reads: dendrite number i of the warp's 32 is read by the lanes i % (32 / kLanes) + 32 / kLanes * g.
struct Place {
  int64_t neuron, dendrite;
  bool exists;

  __device__ Place(const Neurons& p, int64_t neuron0, int64_t dendrite0, int slot)
      : neuron(neuron0 + (slot >> p.slots_log2)),
        dendrite(dendrite0 + (slot & ((1 << p.slots_log2) - 1))),
        exists(neuron < p.neurons && dendrite < p.dendrites) {}
};

/// Sums of 32 dendrites, one a lane: those of slot `lane`.
template <int kLanes, bool kAligned>
__device__ __forceinline__ float sum_dendrites(const Neurons& p, int64_t neuron0, int64_t dendrite0) {
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
        const Place place(p, neuron0, dendrite0, (round + i) * kGroups + group);
        const int64_t at = (place.neuron * p.dendrites + place.dendrite) * p.synapses + first;
        const int64_t left = place.exists ? p.synapses - first : 0;
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
  int rounds = kLanes;
#pragma unroll
  for (int offset = kWarp / 2; offset >= kGroups; offset /= 2) {
    rounds /= 2;
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const float sent = lane & offset ? sum[i] : sum[i + rounds];
      const float kept = lane & offset ? sum[i + rounds] : sum[i];
      sum[i] = kept + __shfl_xor_sync(kEveryLane, sent, offset);
    }
  }
  return sum[0];
}

template <int kLanes, bool kAligned>
__global__ void __launch_bounds__(kMostWarps* kWarp) dendritic_warps(Neurons p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const int64_t neuron0 = warp * (kWarp >> p.slots_log2);
  if (neuron0 >= p.neurons) return;
  streaming::follow();
  double total = 0;
  int64_t neuron = 0;
  for (int64_t dendrite0 = 0; dendrite0 < p.dendrites; dendrite0 += 1 << p.slots_log2) {
    const float sum = sum_dendrites<kLanes, kAligned>(p, neuron0, dendrite0);
    const Place place(p, neuron0, dendrite0, lane);
    neuron = place.neuron;
    if (place.exists) total += bend(sum + 0.5F * p.state[place.neuron], p.type);
  }
  for (int offset = (1 << p.slots_log2) / 2; offset > 0; offset /= 2)
    total += __shfl_xor_sync(kEveryLane, total, offset);
  if ((lane & ((1 << p.slots_log2) - 1)) == 0 && neuron < p.neurons)
    p.out[neuron] = static_cast<float>(total / static_cast<double>(p.dendrites));
}

template <bool kAligned>
auto kernel_for(int64_t synapses) {
  if (synapses <= 4) return dendritic_warps<1, kAligned>;
  if (synapses <= 8) return dendritic_warps<2, kAligned>;
  if (synapses <= 16) return dendritic_warps<4, kAligned>;
  if (synapses <= 32) return dendritic_warps<8, kAligned>;
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
