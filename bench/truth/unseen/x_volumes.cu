// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: slices of a volume are uploaded, filtered and downloaded one after the other. Twin: three buffers and streams.
#include "../truth.h"

constexpr int kSlices = 12, kSlice = 768 * 1024, kThreads = 256, kMost = 3;

__global__ void filter(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(in[i], 700);
}

struct Program {
  explicit Program(bool fixed) : lanes(fixed ? kMost : 1) {
    for (int l = 0; l < lanes; ++l) {
      CUDA_OK(cudaStreamCreate(&streams[l]));
      in[l] = truth::device_array<float>(kSlice);
      out[l] = truth::device_array<float>(kSlice);
    }
    for (std::size_t i = 0; i < std::size_t{kSlices} * kSlice; ++i)
      volume[i] = static_cast<float>(i % 1000) / 1000;
  }
  void iteration(std::int64_t) {
    for (int s = 0; s < kSlices; ++s) {
      const int l = s % lanes;
      CUDA_OK(cudaMemcpyAsync(in[l], volume + std::size_t(s) * kSlice, kSlice * 4, cudaMemcpyHostToDevice,
                              streams[l]));
      filter<<<kSlice / kThreads, kThreads, 0, streams[l]>>>(in[l], out[l]);
      CUDA_OK(cudaMemcpyAsync(result + std::size_t(s) * kSlice, out[l], kSlice * 4, cudaMemcpyDeviceToHost,
                              streams[l]));
    }
    CUDA_OK(cudaDeviceSynchronize());
  }
  double sum() {
    double all = 0;
    for (std::size_t i = 0; i < std::size_t{kSlices} * kSlice; ++i) all += result[i];
    return all;
  }

  int lanes;
  cudaStream_t streams[kMost];
  float *volume = truth::pinned_array<float>(std::size_t{kSlices} * kSlice),
        *result = truth::pinned_array<float>(std::size_t{kSlices} * kSlice), *in[kMost], *out[kMost];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
