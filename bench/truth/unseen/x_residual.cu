// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a solver reads its residual back after every sweep. Twin: after every fortieth.
#include "../truth.h"

constexpr int kUnknowns = 1 << 19, kThreads = 256, kSweeps = 40;

__global__ void relax(float* x, float* residual) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float before = x[i];
  const float after = truth::churn(before, 60);
  x[i] = after;
  float change = fabsf(after - before);
  for (int d = 16; d > 0; d /= 2) change += __shfl_down_sync(~0u, change, d);
  if (threadIdx.x % 32 == 0) atomicAdd(residual, change);
}

__global__ void start(float* x) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  x[i] = 0.1f + 0.8f * static_cast<float>(i % 1000) / 1000;
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {}
  void iteration(std::int64_t) {
    start<<<kUnknowns / kThreads, kThreads>>>(x);
    for (int s = 1; s <= kSweeps; ++s) {
      relax<<<kUnknowns / kThreads, kThreads>>>(x, residual);
      if (fixed && s != kSweeps) continue;
      float now = 0;
      CUDA_OK(cudaMemcpy(&now, residual, sizeof now, cudaMemcpyDeviceToHost));
      if (now < 0) break;
    }
  }
  double sum() { return truth::sum_of(x, kUnknowns); }

  bool fixed;
  float *x = truth::device_array<float>(kUnknowns), *residual = truth::device_array<float>(1);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
