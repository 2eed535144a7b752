// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: scratch memory is allocated and freed in every iteration, and cudaFree waits for the device. Twin: it is
// allocated once.
#include "../truth.h"

constexpr int kCount = 8 << 20, kThreads = 256;

__global__ void expand(float* scratch, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  scratch[i] = truth::churn(0.1f + 0.8f * static_cast<float>(i % 4096) / 4096, rounds);
}

/// Sums of 256 neighbours.
__global__ void contract(const float* scratch, float* sums) {
  __shared__ float part[kThreads];
  part[threadIdx.x] = scratch[blockIdx.x * kThreads + threadIdx.x];
  for (int width = kThreads / 2; width > 0; width /= 2) {
    __syncthreads();
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (fixed) CUDA_OK(cudaMalloc(&scratch, kCount * sizeof(float)));
  }
  void iteration(std::int64_t) {
    if (!fixed) CUDA_OK(cudaMalloc(&scratch, kCount * sizeof(float)));
    expand<<<kCount / kThreads, kThreads, 0, stream>>>(scratch, 300);
    contract<<<kCount / kThreads, kThreads, 0, stream>>>(scratch, sums);
    if (!fixed) CUDA_OK(cudaFree(scratch));
  }
  double sum() { return truth::sum_of(sums, kCount / kThreads); }

  bool fixed;
  cudaStream_t stream;
  float *scratch = nullptr, *sums = truth::device_array<float>(kCount / kThreads);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
