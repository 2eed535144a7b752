// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of one to ten milliseconds timed by CUDA events, to hold the durations in a trace against: prints the median
// of each in microseconds. Their shapes differ in what limits occupancy.
#include "../truth.h"

constexpr int kCount = 1 << 22, kTimes = 15;

__global__ void wide(float* x, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = truth::churn(0.3f, rounds) + x[i] * 0.5f;
}
__global__ void __launch_bounds__(1024) tall(float* x, int rounds) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = truth::churn(0.4f, rounds) + x[i] * 0.5f;
}
__global__ void shared(float* x, int rounds) {
  extern __shared__ float tile[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = truth::churn(0.5f, rounds);
  __syncthreads();
  x[i] = tile[blockDim.x - 1 - threadIdx.x];
}

/// Keeps the device busy while the host queues what is timed, or events would hold the launch as well.
__global__ void before(float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = truth::churn(0.6f, 2000);
}

struct Case {
  const char* name;
  void (*kernel)(float*, int);
  int threads, shared_bytes, rounds;
};

int main() {
  const Case cases[] = {
      {"wide", wide, 192, 0, 4000}, {"tall", tall, 1024, 0, 12000}, {"shared", shared, 256, 40960, 36000}};
  float* x = truth::device_array<float>(kCount);
  cudaEvent_t from, to;
  CUDA_OK(cudaEventCreate(&from));
  CUDA_OK(cudaEventCreate(&to));
  std::vector<float> times[3];
  for (int i = 0; i < kTimes; ++i) {
    for (int number = 0; number < 3; ++number) {
      const Case& c = cases[number];
      before<<<1024, 256>>>(x);
      CUDA_OK(cudaEventRecord(from));
      c.kernel<<<kCount / c.threads, c.threads, c.shared_bytes>>>(x, c.rounds);
      CUDA_OK(cudaEventRecord(to));
      CUDA_OK(cudaEventSynchronize(to));
      float milliseconds = 0;
      CUDA_OK(cudaEventElapsedTime(&milliseconds, from, to));
      times[number].push_back(milliseconds * 1000);
    }
  }
  std::printf("{\"program\": \"event_times\"");
  for (int number = 0; number < 3; ++number) {
    std::sort(times[number].begin(), times[number].end());
    std::printf(", \"%s\": %.2f", cases[number].name, times[number][kTimes / 2]);
  }
  std::printf("}\n");
  return 0;
}
