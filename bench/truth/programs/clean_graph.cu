// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: a graph of sixteen kernels that fill the device, launched again and again and never waited for.
#include "../truth.h"

constexpr int kCount = 4 << 20, kThreads = 256, kStages = 16;

__global__ void stage(const float* from, float* to, int number) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float x = number == 0 ? 0.1f + 0.8f * static_cast<float>(i % 613) / 613 : from[i];
  to[i] = truth::churn(x, 80);
}

struct Program {
  explicit Program(bool) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int s = 0; s < kStages; ++s)
      stage<<<kCount / kThreads, kThreads, 0, stream>>>(buffers[s % 2], buffers[1 - s % 2], s);
    cudaGraph_t graph;
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&executable, graph, 0));
  }
  void iteration(std::int64_t) { CUDA_OK(cudaGraphLaunch(executable, stream)); }
  double sum() { return truth::sum_of(buffers[0], kCount); }

  cudaStream_t stream;
  cudaGraphExec_t executable;
  float* buffers[2] = {truth::device_array<float>(kCount), truth::device_array<float>(kCount)};
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
