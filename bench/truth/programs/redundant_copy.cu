// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a table that never changes is uploaded in every iteration. Twin: once.
#include "../truth.h"

constexpr int kTable = 4 << 20, kCount = 1 << 20, kThreads = 256, kLookups = 48;

/// Each thread follows a pseudo-random path through the table.
__global__ void look_up(const float* table, float* out) {
  const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  std::uint32_t at = i * 2654435761u;
  float x = 0;
  for (int k = 0; k < kLookups; ++k) {
    at = at * 1664525u + 1013904223u;
    x += table[at % kTable];
  }
  out[i] = x;
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < kTable; ++i) table[i] = static_cast<float>(i % 1000) / 1000;
    if (fixed) upload();
  }
  void upload() {
    CUDA_OK(cudaMemcpyAsync(device, table, kTable * sizeof(float), cudaMemcpyHostToDevice, stream));
  }
  void iteration(std::int64_t) {
    if (!fixed) upload();
    look_up<<<kCount / kThreads, kThreads, 0, stream>>>(device, out);
  }
  double sum() { return truth::sum_of(out, kCount); }

  bool fixed;
  cudaStream_t stream;
  float *table = truth::pinned_array<float>(kTable), *device = truth::device_array<float>(kTable);
  float* out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
