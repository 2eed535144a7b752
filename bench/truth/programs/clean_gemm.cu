// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: products of large matrices back to back.
#include "../truth.h"

constexpr int kSize = 2048, kTile = 64, kDepth = 16, kPer = 4, kThreads = 256;

__global__ void fill(float* matrix, int seed) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  matrix[i] = static_cast<float>((i * 7 + seed) % 101) / 101;
}

/// C = A * B: a block makes 64 x 64 outputs, a thread 4 x 4 of them.
__global__ void gemm(const float* a, const float* b, float* c) {
  __shared__ float rows[kDepth][kTile + 4], columns[kDepth][kTile];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16, row = blockIdx.y * kTile,
            column = blockIdx.x * kTile;
  float sums[kPer][kPer] = {};
  for (int k = 0; k < kSize; k += kDepth) {
    for (int i = threadIdx.x; i < kTile * kDepth; i += kThreads) {
      rows[i % kDepth][i / kDepth] = a[(row + i / kDepth) * kSize + k + i % kDepth];
      columns[i / kTile][i % kTile] = b[(k + i / kTile) * kSize + column + i % kTile];
    }
    __syncthreads();
    for (int d = 0; d < kDepth; ++d)
      for (int y = 0; y < kPer; ++y)
        for (int x = 0; x < kPer; ++x) sums[y][x] += rows[d][ty * kPer + y] * columns[d][tx * kPer + x];
    __syncthreads();
  }
  for (int y = 0; y < kPer; ++y)
    for (int x = 0; x < kPer; ++x) c[(row + ty * kPer + y) * kSize + column + tx * kPer + x] = sums[y][x];
}

struct Program {
  explicit Program(bool) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    fill<<<kSize * kSize / kThreads, kThreads, 0, stream>>>(a, 1);
    fill<<<kSize * kSize / kThreads, kThreads, 0, stream>>>(b, 2);
  }
  void iteration(std::int64_t) {
    gemm<<<dim3(kSize / kTile, kSize / kTile), kThreads, 0, stream>>>(a, b, c);
    gemm<<<dim3(kSize / kTile, kSize / kTile), kThreads, 0, stream>>>(a, c, d);
  }
  double sum() { return truth::sum_of(d, std::size_t{kSize} * kSize); }

  cudaStream_t stream;
  float *a = make(), *b = make(), *c = make(), *d = make();
  static float* make() { return truth::device_array<float>(std::size_t{kSize} * kSize); }
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
