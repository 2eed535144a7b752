// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: tiles of a map are sent, shaded and fetched in one stream. Twin: tiles take turns in four streams.
#include "../truth.h"

constexpr int kTiles = 16, kTile = 512 * 1024, kThreads = 256, kMost = 4;

__global__ void shade(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(0.1f + 0.7f * in[i], 1100);
}

struct Program {
  explicit Program(bool fixed) : lanes(fixed ? kMost : 1) {
    for (int l = 0; l < kMost; ++l) CUDA_OK(cudaStreamCreateWithFlags(&streams[l], cudaStreamNonBlocking));
    for (std::size_t i = 0; i < kAll; ++i) map[i] = static_cast<float>(i % 500) / 500;
  }
  void iteration(std::int64_t) {
    for (int t = 0; t < kTiles; ++t) {
      cudaStream_t stream = streams[t % lanes];
      const std::size_t at = std::size_t(t) * kTile;
      CUDA_OK(cudaMemcpyAsync(in + at, map + at, kTile * sizeof(float), cudaMemcpyHostToDevice, stream));
      shade<<<kTile / kThreads, kThreads, 0, stream>>>(in + at, out + at);
      CUDA_OK(cudaMemcpyAsync(shaded + at, out + at, kTile * sizeof(float), cudaMemcpyDeviceToHost, stream));
    }
    for (int l = 0; l < lanes; ++l) CUDA_OK(cudaStreamSynchronize(streams[l]));
  }
  double sum() { return truth::sum_of(out, kAll); }

  static constexpr std::size_t kAll = std::size_t{kTiles} * kTile;
  int lanes;
  cudaStream_t streams[kMost];
  float *map = truth::pinned_array<float>(kAll), *shaded = truth::pinned_array<float>(kAll),
        *in = truth::device_array<float>(kAll), *out = truth::device_array<float>(kAll);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
