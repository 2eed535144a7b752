// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Four populations of neurons, each in a stream of its own and a quarter of the GPU. Planted: parameters go to constant memory
// without a stream, that is in the default one, between all others. Twin: in the population's. Expected: default_stream.
#include "z.h"

constexpr int kPopulations = 4, kNeurons = 32 * 256, kSteps = 5000, kSlots = 4;

struct alignas(256) Parameters {
  float a, b, c, d, current;
};
__constant__ Parameters parameters[kPopulations];

/// Izhikevich's model, half a millisecond a step.
__global__ void integrate(float2* state, unsigned* spikes, int population) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const Parameters p = parameters[population];
  float v = state[i].x, u = state[i].y;
  unsigned count = 0, noise = z::mix(i + 1);
  for (int t = 0; t < kSteps; ++t) {
    noise = noise * 1664525u + 1013904223u;
    const float in = p.current + static_cast<float>(noise >> 28) * 0.2f;
    v += 0.5f * (0.04f * v * v + 5.0f * v + 140.0f - u + in);
    u += 0.5f * p.a * (p.b * v - u);
    if (v >= 30.0f) v = p.c, u += p.d, ++count;
  }
  state[i] = make_float2(v, u);
  spikes[i] += count;
}

struct Program : z::Base {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (int k = 0; k < kPopulations; ++k) {
      OK(cudaStreamCreate(&s[k]));
      state[k] = z::device<float2>(kNeurons);
      spikes[k] = z::device<unsigned>(kNeurons);
      for (auto& slot : sent) slot[k] = z::event();
    }
  }
  void reset() {
    OK(cudaDeviceSynchronize());
    for (int k = 0; k < kPopulations; ++k) {
      z::send(state[k], std::vector<float2>(kNeurons, make_float2(-65, -13)));
      z::send(spikes[k], std::vector<unsigned>(kNeurons, 0));
    }
  }
  void step(std::int64_t number) {
    const int slot = static_cast<int>(number % kSlots);
    for (int k = 0; k < kPopulations; ++k) {
      OK(cudaEventSynchronize(sent[slot][k]));
      Parameters& p = host[slot * kPopulations + k];
      p = {0.02f + 0.002f * k, 0.2f, -65.0f + 2 * k, 8.0f - k, 4.0f + static_cast<float>((number + k) % 5)};
      if (fixed)
        OK(cudaMemcpyToSymbolAsync(parameters, &p, sizeof p, k * sizeof p, cudaMemcpyHostToDevice, s[k]));
      else
        OK(cudaMemcpyToSymbolAsync(parameters, &p, sizeof p, k * sizeof p, cudaMemcpyHostToDevice));
      integrate<<<kNeurons / 256, 256, 0, s[k]>>>(state[k], spikes[k], k);
      OK(cudaEventRecord(sent[slot][k], s[k]));
    }
  }
  double result() {
    double sum = 0;
    for (int k = 0; k < kPopulations; ++k) {
      unsigned long long all = 0;
      for (const unsigned n : z::fetch(spikes[k], kNeurons)) all += n;
      z::require(all > 0, "no neuron fires");
      for (const float2 one : z::fetch(state[k], kNeurons)) sum += one.x;
      sum -= static_cast<double>(all) * (k + 1);
    }
    z::require(std::isfinite(sum), "not finite");
    return sum;
  }

  bool fixed;
  cudaStream_t s[kPopulations];
  cudaEvent_t sent[kSlots][kPopulations];
  Parameters* host = z::pinned<Parameters>(kSlots * kPopulations);
  float2* state[kPopulations];
  unsigned* spikes[kPopulations];
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
