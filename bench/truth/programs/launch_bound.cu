// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: forty kernels of two microseconds a step, each launched by the host. Twin: the step is one CUDA graph.
#include "../truth.h"

constexpr int kSide = 256, kSteps = 40, kThreads = 128, kBlocks = kSide * kSide / kThreads;

__global__ void start_field(float* field) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  field[i] = static_cast<float>(i % kSide) / kSide;
}

/// One step of heat flow on a square with fixed borders.
__global__ void relax(const float* from, float* to) {
  const int i = blockIdx.x * kThreads + threadIdx.x, x = i % kSide, y = i / kSide;
  const bool border = x == 0 || y == 0 || x == kSide - 1 || y == kSide - 1;
  to[i] = border ? from[i] : 0.25f * (from[i - 1] + from[i + 1] + from[i - kSide] + from[i + kSide]);
}

struct Program {
  explicit Program(bool fixed) : graph_launches(fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!fixed) return;
    cudaGraph_t graph;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    step();
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&executable, graph, 0));
  }
  void step() {
    start_field<<<kBlocks, kThreads, 0, stream>>>(fields[0]);
    for (int s = 0; s < kSteps; ++s)
      relax<<<kBlocks, kThreads, 0, stream>>>(fields[s % 2], fields[1 - s % 2]);
  }
  void iteration(std::int64_t) {
    if (graph_launches)
      CUDA_OK(cudaGraphLaunch(executable, stream));
    else
      step();
  }
  double sum() { return truth::sum_of(fields[0], kSide * kSide); }

  bool graph_launches;
  cudaStream_t stream;
  cudaGraphExec_t executable = nullptr;
  float* fields[2] = {truth::device_array<float>(kSide * kSide), truth::device_array<float>(kSide* kSide)};
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
