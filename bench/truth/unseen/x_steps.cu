// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: an integrator launches one small kernel for every time step. Twin: one kernel that loops over them.
#include "../truth.h"

constexpr int kCells = 40000, kThreads = 256, kSteps = 64;

__global__ void integrate(float* v, int steps) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= kCells) return;
  float x = v[i];
  for (int s = 0; s < steps; ++s) x += 0.01f * (x - x * x * x / 3 - 0.3f);
  v[i] = x;
}

__global__ void begin(float* v) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < kCells) v[i] = static_cast<float>(i % 100) / 100;
}

__global__ void settle(float* v, float* out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < kCells) out[i] = truth::churn(0.1f + 0.5f * fabsf(sinf(v[i])), rounds);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {}
  void iteration(std::int64_t) {
    constexpr int blocks = (kCells + kThreads - 1) / kThreads;
    begin<<<blocks, kThreads>>>(v);
    if (fixed) {
      integrate<<<blocks, kThreads>>>(v, kSteps);
    } else {
      for (int s = 0; s < kSteps; ++s) integrate<<<blocks, kThreads>>>(v, 1);
    }
    settle<<<blocks, kThreads>>>(v, out, 20000);
  }
  double sum() { return truth::sum_of(v, kCells); }

  bool fixed;
  float *v = truth::device_array<float>(kCells), *out = truth::device_array<float>(kCells);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
