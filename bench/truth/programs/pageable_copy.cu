// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: every batch is copied from memory of malloc, which the driver copies once more and waits for. Twin: the
// loader's buffers are pinned, so that the same call returns at once.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256, kRounds = 2500;

__global__ void score(const float* batch, float* scores) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  scores[i] = truth::churn(batch[i], kRounds);
}

struct Program {
  explicit Program(bool fixed) : loader(4, kCount, fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void iteration(std::int64_t i) {
    const float* batch = loader.fill(i);
    CUDA_OK(cudaMemcpyAsync(device, batch, kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
    loader.sent(stream);
    score<<<kCount / kThreads, kThreads, 0, stream>>>(device, scores);
  }
  double sum() { return truth::sum_of(scores, kCount); }

  truth::Ring loader;
  cudaStream_t stream;
  float *device = truth::device_array<float>(kCount), *scores = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
