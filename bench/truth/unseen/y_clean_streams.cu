// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: four streams, each with chunks of its own from pinned memory; everything overlaps.
#include "../truth.h"

constexpr int kStreams = 4, kChunk = 1 << 19, kThreads = 256;

__global__ void work(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(0.1f + 0.7f * in[i], 5000);
}

struct Program {
  explicit Program(bool) {
    for (int s = 0; s < kStreams; ++s) {
      CUDA_OK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
      in[s] = truth::device_array<float>(kChunk);
      out[s] = truth::device_array<float>(kChunk);
      host[s] = truth::pinned_array<float>(kChunk);
      result[s] = truth::pinned_array<float>(kChunk);
      CUDA_OK(cudaEventCreateWithFlags(&done[s], cudaEventDisableTiming));
      std::fill(host[s], host[s] + kChunk, 0.25f);
    }
  }
  void iteration(std::int64_t number) {
    for (int s = 0; s < kStreams; ++s) {
      CUDA_OK(cudaEventSynchronize(done[s]));
      for (int i = 0; i < kChunk; i += 256) host[s][i] = static_cast<float>((number + i) % 100) / 100;
      CUDA_OK(cudaMemcpyAsync(in[s], host[s], kChunk * sizeof(float), cudaMemcpyHostToDevice, streams[s]));
      work<<<kChunk / kThreads, kThreads, 0, streams[s]>>>(in[s], out[s]);
      CUDA_OK(cudaMemcpyAsync(result[s], out[s], kChunk * sizeof(float), cudaMemcpyDeviceToHost, streams[s]));
      CUDA_OK(cudaEventRecord(done[s], streams[s]));
    }
  }
  double sum() { return truth::sum_of(out[0], kChunk); }

  cudaStream_t streams[kStreams];
  cudaEvent_t done[kStreams];
  float *in[kStreams], *out[kStreams], *host[kStreams], *result[kStreams];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
