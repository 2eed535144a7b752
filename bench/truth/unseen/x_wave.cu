// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: blocks of 1024 threads, two to an SM, and eight blocks more than fit at once, so a second wave is nearly empty.
// Twin: blocks of 128 threads.
#include "../truth.h"

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    cudaDeviceProp device;
    CUDA_OK(cudaGetDeviceProperties(&device, 0));
    count = (device.multiProcessorCount * 2 + 8) * 1024;
    out = truth::device_array<float>(static_cast<std::size_t>(count));
  }
  void iteration(std::int64_t);
  double sum() { return truth::sum_of(out, static_cast<std::size_t>(count)); }

  bool fixed;
  int count;
  float* out;
};

__global__ void price(float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = truth::churn(0.1f + 0.8f * static_cast<float>(i % 512) / 512, 30000);
}

void Program::iteration(std::int64_t) {
  const int threads = fixed ? 128 : 1024;
  price<<<(count + threads - 1) / threads, threads>>>(out, count);
}

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
