// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: forces on a mesh are managed memory; the host writes them for each load case and the kernel faults them in.
// Twin: cudaMemPrefetchAsync before the kernel.
#include "../truth.h"

constexpr int kNodes = 1 << 20, kThreads = 256;

__global__ void solve(const float* forces, float* moves) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  moves[i] = truth::churn(0.1f + 0.5f * forces[i], 6000);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaMallocManaged(&forces, kNodes * sizeof(float)));
    CUDA_OK(cudaStreamCreate(&stream));
  }
  void iteration(std::int64_t number) {
    for (int i = 0; i < kNodes; i += 32) forces[i] = static_cast<float>((number + i) % 1000) / 1000;
    if (fixed) {
      cudaMemLocation place{};
      place.type = cudaMemLocationTypeDevice;
      place.id = 0;
      CUDA_OK(cudaMemPrefetchAsync(forces, kNodes * sizeof(float), place, 0, stream));
    }
    solve<<<kNodes / kThreads, kThreads, 0, stream>>>(forces, moves);
    CUDA_OK(cudaStreamSynchronize(stream));
  }
  double sum() { return truth::sum_of(moves, kNodes); }

  bool fixed;
  cudaStream_t stream;
  float *forces, *moves = truth::device_array<float>(kNodes);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
