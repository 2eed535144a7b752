// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: a network's forward pass of 30 kernels of some tens of microseconds, launched one by one: the host keeps ahead.
#include "../truth.h"

constexpr int kCount = 1 << 21, kThreads = 256, kLayers = 30;

__global__ void layer(const float* in, float* out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(0.1f + 0.6f * in[i], rounds);
}

struct Program {
  explicit Program(bool) {}
  void iteration(std::int64_t number) {
    for (int l = 0; l < kLayers; ++l)
      layer<<<kCount / kThreads, kThreads>>>(activations[l % 2], activations[1 - l % 2], 300 + 20 * (l % 5));
    if (number % 20 == 0) CUDA_OK(cudaMemcpy(&loss, activations[0], sizeof loss, cudaMemcpyDeviceToHost));
  }
  double sum() { return truth::sum_of(activations[0], kCount); }

  float *activations[2] = {truth::device_array<float>(kCount), truth::device_array<float>(kCount)}, loss = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
