// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host writes managed memory in every iteration and the kernel faults its pages in one by one. Twin: they
// are prefetched, to the GPU before the kernel and back before the host writes.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256;

__global__ void advance(float* field, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float x = truth::churn(field[i], 2500);
  field[i] = 0.5f * (x + field[i]);
  out[i] = x;
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_OK(cudaMallocManaged(&field, kCount * sizeof(float)));
  }
  void move(cudaMemLocationType type) {
    const cudaMemLocation place{type, 0};
    CUDA_OK(cudaMemPrefetchAsync(field, kCount * sizeof(float), place, 0, stream));
  }
  void iteration(std::int64_t turn) {
    if (fixed) move(cudaMemLocationTypeHost);
    CUDA_OK(cudaStreamSynchronize(stream));
    for (int i = 0; i < kCount; i += 256) field[i] = 0.1f + 0.8f * static_cast<float>((turn + i) % 997) / 997;
    if (fixed) move(cudaMemLocationTypeDevice);
    advance<<<kCount / kThreads, kThreads, 0, stream>>>(field, out);
  }
  double sum() {  // of what the host wrote in iteration 0
    std::vector<float> host(kCount);
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpy(host.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    double total = 0;
    for (int i = 0; i < kCount; i += 256) total += host[i];
    return total;
  }

  bool fixed;
  cudaStream_t stream;
  float *field = nullptr, *out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
