// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host writes managed memory in every iteration and the kernel faults its pages in one by one. Twin: they
// are prefetched, to the GPU before the kernel and back before the host writes. Two buffers take turns in both.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256, kStride = 256;
constexpr std::size_t kBytes = kCount * sizeof(float);

__global__ void advance(float* field, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float x = truth::churn(field[i], 5000);
  field[i] = 0.5f * (x + field[i]);
  out[i] = x;
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (cudaStream_t* s : {&run, &move}) CUDA_OK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (int b = 0; b < 2; ++b) {
      CUDA_OK(cudaMallocManaged(&fields[b], kBytes));
      std::memset(fields[b], 0, kBytes);
      CUDA_OK(cudaEventCreateWithFlags(&done[b], cudaEventDisableTiming));
    }
    CUDA_OK(cudaEventCreateWithFlags(&moved, cudaEventDisableTiming));
  }
  void prefetch(float* field, cudaMemLocationType place) {
    CUDA_OK(cudaMemPrefetchAsync(field, kBytes, cudaMemLocation{place, 0}, 0, move));
  }
  void iteration(std::int64_t turn) {
    const int b = static_cast<int>(turn % 2);
    CUDA_OK(cudaEventSynchronize(done[b]));
    if (fixed) {
      prefetch(fields[b], cudaMemLocationTypeHost);
      CUDA_OK(cudaStreamSynchronize(move));
    }
    for (int i = 0; i < kCount; i += kStride)
      fields[b][i] = 0.1f + 0.8f * static_cast<float>((turn + i) % 997) / 997;
    if (fixed) {
      prefetch(fields[b], cudaMemLocationTypeDevice);
      CUDA_OK(cudaEventRecord(moved, move));
      CUDA_OK(cudaStreamWaitEvent(run, moved));
    }
    advance<<<kCount / kThreads, kThreads, 0, run>>>(fields[b], out);
    CUDA_OK(cudaEventRecord(done[b], run));
  }
  double sum() {  // of what became of the values that the host wrote
    std::vector<float> host(kCount);
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaMemcpy(host.data(), out, kBytes, cudaMemcpyDeviceToHost));
    double total = 0;
    for (int i = 0; i < kCount; i += kStride) total += host[i];
    return total;
  }

  bool fixed;
  cudaStream_t run, move;
  cudaEvent_t done[2], moved;
  float *fields[2], *out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
