// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: each message gets a pinned staging buffer of its own, which is freed when it was sent. Twin: one is kept.
// Further: two are kept, and the next message is written while the GPU works on this one.
#include "../truth.h"

constexpr int kMessage = 256 * 1024, kThreads = 256;

__global__ void decode(const float* message, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(message[i], 5000);
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed), ahead(further > 0) {
    CUDA_OK(cudaStreamCreate(&stream));
    for (int s = 0; s < 2 && ahead; ++s) {
      two[s] = truth::pinned_array<float>(kMessage);
      CUDA_OK(cudaEventCreateWithFlags(&sent[s], cudaEventDisableTiming));
    }
    if (fixed) kept = truth::pinned_array<float>(kMessage);
  }
  void iteration(std::int64_t number) {
    float* staging = ahead ? two[number % 2] : fixed ? kept : truth::pinned_array<float>(kMessage);
    if (ahead) CUDA_OK(cudaEventSynchronize(sent[number % 2]));
    for (int i = 0; i < kMessage; i += 4)
      staging[i] = 0.1f + 0.8f * static_cast<float>((number + i) % 61) / 61;
    for (int i = 0; i < kMessage; ++i)
      if (i % 4) staging[i] = 0.5f;
    CUDA_OK(cudaMemcpyAsync(message, staging, kMessage * sizeof(float), cudaMemcpyHostToDevice, stream));
    if (ahead) CUDA_OK(cudaEventRecord(sent[number % 2], stream));
    decode<<<kMessage / kThreads, kThreads, 0, stream>>>(message, out);
    if (!ahead) CUDA_OK(cudaStreamSynchronize(stream));
    if (!fixed) CUDA_OK(cudaFreeHost(staging));
  }
  double sum() { return truth::sum_of(out, kMessage); }

  bool fixed, ahead;
  cudaStream_t stream;
  cudaEvent_t sent[2];
  float* two[2];
  float *kept = nullptr, *message = truth::device_array<float>(kMessage),
        *out = truth::device_array<float>(kMessage);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
