// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the field is managed memory that the kernel writes and the host reads in every step. Twin: device memory, copied
// into a pinned buffer. Further: the next step is launched before the host reads what the last one left.
#include "../truth.h"

constexpr int kCount = 1 << 20, kThreads = 256;

__global__ void advance(float* field, int step) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  field[i] = truth::churn(0.1f + 0.8f * static_cast<float>((i + step) % 777) / 777, 8000);
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed), ahead(further > 0) {
    if (fixed) {
      field = truth::device_array<float>(kCount);
      seen = truth::pinned_array<float>(kCount);
    } else {
      CUDA_OK(cudaMallocManaged(&field, kCount * sizeof(float)));
      seen = field;
    }
  }
  void iteration(std::int64_t number) {
    if (!ahead || launched != number)
      advance<<<kCount / kThreads, kThreads>>>(field, static_cast<int>(number));
    if (fixed)
      CUDA_OK(cudaMemcpy(seen, field, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    else
      CUDA_OK(cudaDeviceSynchronize());
    if (ahead) {
      launched = number + 1;
      advance<<<kCount / kThreads, kThreads>>>(field, static_cast<int>(launched));
    }
    double now = 0;
    for (int i = 0; i < kCount; i += 128) now += seen[i];
    mean = now / (kCount / 128);
  }
  double sum() { return mean; }

  bool fixed, ahead;
  std::int64_t launched = -1;
  float *field = nullptr, *seen = nullptr;
  double mean = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
