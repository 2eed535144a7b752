// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: four independent requests have streams of their own, but the second kernel of each goes to the default
// stream, which waits for all others and they for it. Twin: it goes to the request's stream, and these do not block.
#include "../truth.h"

constexpr int kRequests = 4, kThreads = 64, kBlocks = 264, kCount = kThreads * kBlocks;

__global__ void encode(float* state, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  state[i] = truth::churn(0.1f + 0.8f * static_cast<float>(i % 777) / 777, rounds);
}
__global__ void decode(const float* state, float* out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(state[i], rounds);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (int r = 0; r < kRequests; ++r) {
      CUDA_OK(cudaStreamCreateWithFlags(&streams[r], fixed ? cudaStreamNonBlocking : cudaStreamDefault));
      state[r] = truth::device_array<float>(kCount), out[r] = truth::device_array<float>(kCount);
    }
  }
  void iteration(std::int64_t) {
    for (int r = 0; r < kRequests; ++r) {
      encode<<<kBlocks, kThreads, 0, streams[r]>>>(state[r], 15000);
      decode<<<kBlocks, kThreads, 0, fixed ? streams[r] : nullptr>>>(state[r], out[r], 5000);
    }
  }
  double sum() {
    double total = 0;
    for (float* o : out) total += truth::sum_of(o, kCount);
    return total;
  }

  bool fixed;
  cudaStream_t streams[kRequests];
  float *state[kRequests], *out[kRequests];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
