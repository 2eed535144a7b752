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
    for (Lane& lane : lanes) {
      CUDA_OK(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
      lane.batch = truth::device_array<float>(kCount), lane.scores = truth::device_array<float>(kCount);
    }
  }
  void iteration(std::int64_t i) {
    const Lane& lane = lanes[i % 2];
    const float* batch = loader.fill(i);
    CUDA_OK(cudaMemcpyAsync(lane.batch, batch, kCount * sizeof(float), cudaMemcpyHostToDevice, lane.stream));
    loader.sent(lane.stream);
    score<<<kCount / kThreads, kThreads, 0, lane.stream>>>(lane.batch, lane.scores);
  }
  double sum() { return truth::sum_of(lanes[0].scores, kCount); }

  struct Lane {
    cudaStream_t stream;
    float *batch, *scores;
  };
  Lane lanes[2];
  truth::Ring loader;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
