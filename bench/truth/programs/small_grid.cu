// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: rows are normalised by two blocks, so that two multiprocessors work. Twin: a block a row.
#include "../truth.h"

constexpr int kRows = 264, kColumns = 1024, kThreads = 256;

__global__ void activate(float* rows) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  rows[i] = truth::churn(0.1f + 0.8f * static_cast<float>(i % 999) / 999, 8000);
}

/// Divides each row by its sum.
__global__ void normalise(float* rows) {
  __shared__ float part[kThreads];
  for (int row = blockIdx.x; row < kRows; row += gridDim.x) {
    float x = 0;
    for (int c = threadIdx.x; c < kColumns; c += kThreads) x += rows[row * kColumns + c];
    part[threadIdx.x] = x;
    for (int width = kThreads / 2; width > 0; width /= 2) {
      __syncthreads();
      if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    }
    __syncthreads();
    const float total = part[0];
    for (int c = threadIdx.x; c < kColumns; c += kThreads) rows[row * kColumns + c] /= total;
    __syncthreads();
  }
}

struct Program {
  explicit Program(bool fixed) : blocks(fixed ? kRows : 2) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void iteration(std::int64_t) {
    activate<<<kRows * kColumns / kThreads, kThreads, 0, stream>>>(rows);
    normalise<<<blocks, kThreads, 0, stream>>>(rows);
  }
  double sum() { return truth::sum_of(rows, std::size_t{kRows} * kColumns); }

  int blocks;
  cudaStream_t stream;
  float* rows = truth::device_array<float>(std::size_t{kRows} * kColumns);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
