// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host waits for an event behind each of six stages to print its time. Twin: events are read at the end.
#include "../truth.h"

constexpr int kCount = 1 << 18, kThreads = 256, kStages = 6;

__global__ void stage(float* data, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  data[i] = truth::churn(0.1f + 0.5f * data[i], rounds);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreate(&stream));
    for (auto& event : events) CUDA_OK(cudaEventCreate(&event));
  }
  void iteration(std::int64_t number) {
    CUDA_OK(cudaMemsetAsync(data, 0, kCount * sizeof(float), stream));
    CUDA_OK(cudaEventRecord(events[0], stream));
    float ms = 0;
    for (int s = 0; s < kStages; ++s) {
      stage<<<kCount / kThreads, kThreads, 0, stream>>>(data, 1200 + 100 * s);
      CUDA_OK(cudaEventRecord(events[s + 1], stream));
      if (fixed) continue;
      CUDA_OK(cudaEventSynchronize(events[s + 1]));
      CUDA_OK(cudaEventElapsedTime(&ms, events[s], events[s + 1]));
      total_ms += ms;
    }
    if (!fixed || number % 64 != 0) return;
    CUDA_OK(cudaEventSynchronize(events[kStages]));
    for (int s = 0; s < kStages; ++s) {
      CUDA_OK(cudaEventElapsedTime(&ms, events[s], events[s + 1]));
      total_ms += ms;
    }
  }
  double sum() { return truth::sum_of(data, kCount); }

  bool fixed;
  cudaStream_t stream;
  cudaEvent_t events[kStages + 1];
  float* data = truth::device_array<float>(kCount);
  double total_ms = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
