// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Asian options by Monte Carlo; the payoffs' histogram is gathered in shared memory. Planted: each warp has a histogram of
// its own, so that two blocks fit a multiprocessor. Twin: one a block. Expected: low_occupancy (shared memory).
#include "z.h"

constexpr int kBins = 6144, kThreads = 128, kPaths = 4, kSteps = 32, kBlocks = 9504;

__global__ void price(unsigned* histogram, int copies, unsigned seed) {
  extern __shared__ unsigned bins[];
  for (int i = threadIdx.x; i < kBins * copies; i += kThreads) bins[i] = 0;
  __syncthreads();
  unsigned* mine = bins + (threadIdx.x / 32) % copies * kBins;
  unsigned state = z::mix(seed + blockIdx.x * kThreads + threadIdx.x) | 1u;
  for (int path = 0; path < kPaths; ++path) {
    float value = 1, total = 0;
    for (int t = 0; t < kSteps; ++t) {
      state ^= state << 13, state ^= state >> 17, state ^= state << 5;
      const float u = (static_cast<float>(state >> 8) + 0.5f) / 16777216.0f;
      state ^= state << 13, state ^= state >> 17, state ^= state << 5;
      const float w = static_cast<float>(state >> 8) / 16777216.0f;
      const float normal = sqrtf(-2.0f * __logf(u)) * __cosf(6.2831853f * w);
      value *= __expf(0.0005f + 0.03f * normal);
      total += value;
    }
    const float payoff = fmaxf(total / kSteps - 0.9f, 0.0f);
    atomicAdd(mine + min(static_cast<int>(payoff * 8192.0f), kBins - 1), 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kBins; i += kThreads) {
    unsigned n = 0;
    for (int c = 0; c < copies; ++c) n += bins[c * kBins + i];
    if (n != 0) atomicAdd(histogram + i, n);
  }
}

struct Program : z::Base {
  explicit Program(bool fixed) : copies(fixed ? 1 : kThreads / 32) {
    OK(cudaFuncSetAttribute(price, cudaFuncAttributeMaxDynamicSharedMemorySize, kBins * kThreads / 32 * 4));
  }
  void step(std::int64_t number) {
    OK(cudaMemsetAsync(histogram, 0, kBins * sizeof(unsigned), s));
    price<<<kBlocks, kThreads, kBins * copies * sizeof(unsigned), s>>>(histogram, copies,
                                                                       static_cast<unsigned>(number) * 7919u);
  }
  double result() {
    const std::vector<unsigned> h = z::fetch(histogram, kBins);
    double count = 0, sum = 0;
    for (int i = 0; i < kBins; ++i) count += h[i], sum += double(h[i]) * i;
    z::require(count == double(kBlocks) * kThreads * kPaths, "a path is missing");
    return sum;
  }

  int copies;
  cudaStream_t s = z::stream();
  unsigned* histogram = z::device<unsigned>(kBins);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
