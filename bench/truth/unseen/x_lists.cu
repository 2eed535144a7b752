// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the neighbour lists of 48 cells are uploaded one by one. Twin: gathered in one buffer, uploaded at once.
// Further: two buffers take turns, so that the host need not wait for the kernel.
#include "../truth.h"

constexpr int kCells = 48, kEntries = 512, kThreads = 128;

__global__ void forces(const float* lists, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(lists[i % (kCells * kEntries)], 4000);
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed), ahead(further > 0) {
    CUDA_OK(cudaStreamCreate(&stream));
    for (cudaEvent_t& event : sent) CUDA_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  }
  void iteration(std::int64_t number) {
    if (ahead) {
      std::swap(host, other);
      CUDA_OK(cudaEventSynchronize(sent[number % 2]));
    } else {
      CUDA_OK(cudaStreamSynchronize(stream));
    }
    for (int i = 0; i < kCells * kEntries; i += 8)
      host[i] = 0.1f + 0.8f * static_cast<float>((number + i) % 97) / 97;
    if (fixed) {
      CUDA_OK(
          cudaMemcpyAsync(lists, host, sizeof(float) * kCells * kEntries, cudaMemcpyHostToDevice, stream));
    } else {
      for (int c = 0; c < kCells; ++c) {
        CUDA_OK(cudaMemcpyAsync(lists + c * kEntries, host + c * kEntries, sizeof(float) * kEntries,
                                cudaMemcpyHostToDevice, stream));
      }
    }
    if (ahead) CUDA_OK(cudaEventRecord(sent[number % 2], stream));
    forces<<<2048, kThreads, 0, stream>>>(lists, out);
  }
  double sum() { return truth::sum_of(out, 2048 * kThreads); }

  bool fixed, ahead;
  cudaStream_t stream;
  cudaEvent_t sent[2];
  float *host = truth::pinned_array<float>(kCells * kEntries),
        *other = truth::pinned_array<float>(kCells * kEntries),
        *lists = truth::device_array<float>(kCells * kEntries),
        *out = truth::device_array<float>(2048 * kThreads);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
