// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: upload, kernel and download of independent chunks stand in one stream, one after the other. Twin: the chunks
// take turns on four streams.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256, kChunks = 8;

__global__ void transform(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(in[i], 1100);
}

struct Program {
  explicit Program(bool fixed) : lanes(fixed ? 4 : 1), streams(lanes), in(lanes), out(lanes) {
    for (int l = 0; l < lanes; ++l) {
      CUDA_OK(cudaStreamCreateWithFlags(&streams[l], cudaStreamNonBlocking));
      in[l] = truth::device_array<float>(kCount), out[l] = truth::device_array<float>(kCount);
    }
  }
  void iteration(std::int64_t i) {
    for (int c = 0; c < kChunks; ++c) {
      const int lane = c % lanes;
      const float* chunk = inputs.fill(i * kChunks + c);
      CUDA_OK(
          cudaMemcpyAsync(in[lane], chunk, kCount * sizeof(float), cudaMemcpyHostToDevice, streams[lane]));
      inputs.sent(streams[lane]);
      transform<<<kCount / kThreads, kThreads, 0, streams[lane]>>>(in[lane], out[lane]);
      CUDA_OK(cudaMemcpyAsync(results + std::size_t{kCount} * c, out[lane], kCount * sizeof(float),
                              cudaMemcpyDeviceToHost, streams[lane]));
    }
  }
  double sum() {
    CUDA_OK(cudaDeviceSynchronize());
    double total = 0;
    for (std::size_t i = 0; i < std::size_t{kCount} * kChunks; ++i) total += results[i];
    return total;
  }

  int lanes;
  truth::Ring inputs{kChunks, kCount, true};
  std::vector<cudaStream_t> streams;
  std::vector<float*> in, out;
  float* results = truth::pinned_array<float>(std::size_t{kCount} * kChunks);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
