// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: a loader with two pinned buffers and a copy stream keeps ahead of the kernels; a graph would gain nothing.
#include "../truth.h"

constexpr int kBatch = 1 << 20, kThreads = 256, kBuffers = 2;

__global__ void train(const float* batch, float* state, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  state[i] = truth::churn(0.5f * batch[i] + 0.2f, rounds);
}

struct Program {
  explicit Program(bool) {
    CUDA_OK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking));
    for (int b = 0; b < kBuffers; ++b) {
      host[b] = truth::pinned_array<float>(kBatch);
      device[b] = truth::device_array<float>(kBatch);
      CUDA_OK(cudaEventCreateWithFlags(&filled[b], cudaEventDisableTiming));
      CUDA_OK(cudaEventCreateWithFlags(&used[b], cudaEventDisableTiming));
    }
  }
  void iteration(std::int64_t number) {
    const int b = static_cast<int>(number % kBuffers);
    CUDA_OK(cudaEventSynchronize(filled[b]));
    for (int i = 0; i < kBatch; i += 64) host[b][i] = static_cast<float>((number + i) % 1000) / 1000;
    CUDA_OK(cudaStreamWaitEvent(copies, used[b], 0));
    CUDA_OK(cudaMemcpyAsync(device[b], host[b], kBatch * sizeof(float), cudaMemcpyHostToDevice, copies));
    CUDA_OK(cudaEventRecord(filled[b], copies));
    CUDA_OK(cudaStreamWaitEvent(kernels, filled[b], 0));
    for (int k = 0; k < 6; ++k) train<<<kBatch / kThreads, kThreads, 0, kernels>>>(device[b], state, 1500);
    CUDA_OK(cudaEventRecord(used[b], kernels));
  }
  double sum() { return truth::sum_of(state, kBatch); }

  cudaStream_t copies, kernels;
  cudaEvent_t filled[kBuffers], used[kBuffers];
  float *host[kBuffers], *device[kBuffers], *state = truth::device_array<float>(kBatch);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
