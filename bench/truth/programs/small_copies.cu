// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the 96 parameter blocks of a model are uploaded one by one. Twin: they lie side by side and go in one copy.
#include "../truth.h"

constexpr int kLayers = 96, kBlock = 512, kCount = 1 << 20, kThreads = 256;

__global__ void apply(const float* parameters, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  float x = 0.5f;
  for (int layer = 0; layer < kLayers; ++layer)
    x = truth::churn(0.5f * x + 0.5f * parameters[layer * kBlock + i % kBlock], 30);
  out[i] = x;
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void iteration(std::int64_t i) {
    const float* host = updates.fill(i);
    if (fixed) {
      CUDA_OK(cudaMemcpyAsync(parameters, host, kLayers * kBlock * sizeof(float), cudaMemcpyHostToDevice,
                              stream));
    } else {
      for (int layer = 0; layer < kLayers; ++layer)
        CUDA_OK(cudaMemcpyAsync(parameters + layer * kBlock, host + layer * kBlock, kBlock * sizeof(float),
                                cudaMemcpyHostToDevice, stream));
    }
    updates.sent(stream);
    apply<<<kCount / kThreads, kThreads, 0, stream>>>(parameters, out);
  }
  double sum() { return truth::sum_of(out, kCount); }

  bool fixed;
  truth::Ring updates{4, std::size_t{kLayers} * kBlock, true};
  cudaStream_t stream;
  float *parameters = truth::device_array<float>(kLayers * kBlock), *out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
