// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the second phase of a reduction runs in a single block over half a million partial sums. Twin: in many.
// Further: all three launches are one graph.
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
  explicit Program(bool fixed, int further = 0) : blocks(fixed ? 512 : 1) {
    if (further > 0) {
      CUDA_OK(cudaStreamCreate(&stream));
      graph = truth::captured(stream, [this] { launch(); });
    }
    std::vector<float> ones(kCount, 1.0f);
    CUDA_OK(cudaMemcpy(in, ones.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  }
  void launch() {
    CUDA_OK(cudaMemsetAsync(out, 0, sizeof(float), stream));
    partials<<<kPartials / kThreads, kThreads, 0, stream>>>(in, sums);
    total<<<blocks, kThreads, 0, stream>>>(sums, out);
  }
  void iteration(std::int64_t) {
    if (graph != nullptr)
      CUDA_OK(cudaGraphLaunch(graph, stream));
    else
      launch();
  }
  double sum() { return truth::sum_of(out, 1); }

  int blocks;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  float *in = truth::device_array<float>(kCount), *sums = truth::device_array<float>(kPartials),
        *out = truth::device_array<float>(1);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
