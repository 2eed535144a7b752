// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the second phase of a reduction runs in a single block over half a million partial sums. Twin: in many.
#include "../truth.h"

constexpr int kCount = 1 << 23, kPartials = 1 << 19, kThreads = 256;

__global__ void partials(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < kCount / kPartials; ++k) sum += in[i + k * kPartials];
  out[i] = sum;
}

__global__ void total(const float* in, float* out) {
  __shared__ float sums[kThreads];
  float sum = 0;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < kPartials; i += gridDim.x * kThreads) sum += in[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (int d = kThreads / 2; d > 0; d /= 2) {
    if (threadIdx.x < d) sums[threadIdx.x] += sums[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, sums[0]);
}

struct Program {
  explicit Program(bool fixed) : blocks(fixed ? 512 : 1) {
    std::vector<float> ones(kCount, 1.0f);
    CUDA_OK(cudaMemcpy(in, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  }
  void iteration(std::int64_t) {
    CUDA_OK(cudaMemsetAsync(out, 0, sizeof(float)));
    partials<<<kPartials / kThreads, kThreads>>>(in, sums);
    total<<<blocks, kThreads>>>(sums, out);
  }
  double sum() { return truth::sum_of(out, 1); }

  int blocks;
  float *in = truth::device_array<float>(kCount), *sums = truth::device_array<float>(kPartials),
        *out = truth::device_array<float>(1);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
