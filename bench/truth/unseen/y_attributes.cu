// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: positions, speeds, colours and ids of four kinds of particles are four times eight uploads. Twin: a structure of
// all of them is one. Further: it is sent from two buffers in turns, without waiting.
#include "../truth.h"

constexpr int kArrays = 32, kEach = 2000, kThreads = 256;

__global__ void move(const float* attributes, float* out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(attributes[i % (kArrays * kEach)], rounds);
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed), ahead(further > 0) {
    if (!ahead) return;
    for (cudaEvent_t& event : sent) CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  void iteration(std::int64_t number) {
    if (ahead) {
      std::swap(host, other);
      CUDA_OK(cudaEventSynchronize(sent[number % 2]));
    }
    for (int i = 0; i < kArrays * kEach; i += 16)
      host[i] = 0.1f + 0.8f * static_cast<float>((number + i) % 89) / 89;
    if (ahead) {
      CUDA_OK(cudaMemcpyAsync(device, host, sizeof(float) * kArrays * kEach, cudaMemcpyHostToDevice));
      CUDA_OK(cudaEventRecord(sent[number % 2]));
    } else if (fixed) {
      CUDA_OK(cudaMemcpy(device, host, sizeof(float) * kArrays * kEach, cudaMemcpyHostToDevice));
    } else {
      for (int a = 0; a < kArrays; ++a)
        CUDA_OK(
            cudaMemcpy(device + a * kEach, host + a * kEach, sizeof(float) * kEach, cudaMemcpyHostToDevice));
    }
    move<<<4096, kThreads>>>(device, out, 2500);
  }
  double sum() { return truth::sum_of(out, 4096 * kThreads); }

  bool fixed, ahead;
  cudaEvent_t sent[2] = {};
  float *host = truth::pinned_array<float>(kArrays * kEach),
        *other = truth::pinned_array<float>(kArrays * kEach),
        *device = truth::device_array<float>(kArrays * kEach),
        *out = truth::device_array<float>(4096 * kThreads);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
