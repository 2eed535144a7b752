// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: every block asks for 100 KB of shared memory, of which it uses two, so two blocks of 64 threads fit an SM.
// Twin: it asks for what it uses.
#include "../truth.h"

constexpr int kPoints = 1 << 20, kThreads = 64, kHops = 24;
constexpr int kUsed = 2048, kAsked = 100 * 1024;

__global__ void follow(const int* next, float* out) {
  extern __shared__ float local[];
  int at = blockIdx.x * kThreads + threadIdx.x;
  const int me = at;
  float sum = 0;
  for (int h = 0; h < kHops; ++h) {
    at = next[at];
    sum += static_cast<float>(at & 15);
    local[threadIdx.x] = sum;
  }
  out[me] = local[threadIdx.x];
}

struct Program {
  explicit Program(bool fixed) : bytes(fixed ? kUsed : kAsked) {
    CUDA_OK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, kAsked));
    std::vector<int> links(kPoints);
    for (int i = 0; i < kPoints; ++i)
      links[i] = static_cast<int>((std::int64_t{i} * 1103515245 + 12345) & (kPoints - 1));
    CUDA_OK(cudaMemcpy(next, links.data(), kPoints * sizeof(int), cudaMemcpyHostToDevice));
  }
  void iteration(std::int64_t) { follow<<<kPoints / kThreads, kThreads, bytes>>>(next, out); }
  double sum() { return truth::sum_of(out, kPoints); }

  int bytes;
  int* next = truth::device_array<int>(kPoints);
  float* out = truth::device_array<float>(kPoints);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
