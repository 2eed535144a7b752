// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host writes managed memory in every iteration and the kernel faults its pages in one by one. Twin: the
// host writes pinned memory and copies it. Two buffers take turns in both.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256, kStride = 256;
constexpr std::size_t kBytes = kCount * sizeof(float);

__global__ void advance(const float* field, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(field[i], 5000);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (Lane& lane : lanes) {
      CUDA_OK(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking));
      CUDA_OK(cudaEventCreateWithFlags(&lane.done, cudaEventDisableTiming));
      lane.out = truth::device_array<float>(kCount);
      if (fixed) {
        lane.host = truth::pinned_array<float>(kCount), lane.field = truth::device_array<float>(kCount);
      } else {
        CUDA_OK(cudaMallocManaged(&lane.field, kBytes));
        lane.host = lane.field;
      }
      std::memset(lane.host, 0, kBytes);
    }
  }
  void iteration(std::int64_t turn) {
    const Lane& lane = lanes[turn % 2];
    CUDA_OK(cudaEventSynchronize(lane.done));
    for (int i = 0; i < kCount; i += kStride)
      lane.host[i] = 0.1f + 0.8f * static_cast<float>((turn + i) % 997) / 997;
    if (fixed) CUDA_OK(cudaMemcpyAsync(lane.field, lane.host, kBytes, cudaMemcpyHostToDevice, lane.stream));
    advance<<<kCount / kThreads, kThreads, 0, lane.stream>>>(lane.field, lane.out);
    CUDA_OK(cudaEventRecord(lane.done, lane.stream));
  }
  double sum() { return truth::sum_of(lanes[0].out, kCount); }

  struct Lane {
    cudaStream_t stream;
    cudaEvent_t done;
    float *host, *field, *out;
  };
  bool fixed;
  Lane lanes[2];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
