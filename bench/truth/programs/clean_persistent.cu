// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: one block a multiprocessor that takes tiles from a counter until none is left. Its grid and its occupancy are
// small by design.
#include "../truth.h"

constexpr int kTiles = 4096, kTile = 1024, kThreads = 512;

__global__ void __launch_bounds__(kThreads, 1) drain(unsigned* next, float* out) {
  extern __shared__ float tile[];
  __shared__ unsigned mine;
  while (true) {
    if (threadIdx.x == 0) mine = atomicAdd(next, 1);
    __syncthreads();
    const unsigned number = mine;
    if (number >= kTiles) return;
    for (int i = threadIdx.x; i < kTile; i += kThreads)
      tile[i] = truth::churn(0.1f + 0.8f * static_cast<float>((number + i) % 509) / 509, 3000);
    __syncthreads();
    for (int i = threadIdx.x; i < kTile; i += kThreads) out[number * kTile + i] = tile[kTile - 1 - i];
    __syncthreads();
  }
}

struct Program {
  explicit Program(bool) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    CUDA_OK(cudaFuncSetAttribute(drain, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  }
  void iteration(std::int64_t) {
    CUDA_OK(cudaMemsetAsync(next, 0, sizeof(unsigned), stream));
    drain<<<multiprocessors, kThreads, kShared, stream>>>(next, out);
  }
  double sum() { return truth::sum_of(out, std::size_t{kTiles} * kTile); }

  static constexpr int kShared = 128 << 10;  // as much as a pipeline of tiles would take
  int multiprocessors = 0;
  cudaStream_t stream;
  unsigned* next = truth::device_array<unsigned>(1);
  float* out = truth::device_array<float>(std::size_t{kTiles} * kTile);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
