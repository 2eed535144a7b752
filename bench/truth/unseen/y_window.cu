// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a median of 64 values is sorted in an array of each thread with computed places, which lives in local memory.
// Twin: in shared memory.
#include "../truth.h"

constexpr int kCount = 1 << 20, kThreads = 64, kWindow = 64;

template <bool kShared>
__global__ void median(const float* in, float* out) {
  __shared__ float rows[kShared ? kWindow * kThreads : 1];
  float own[kShared ? 1 : kWindow];
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const auto at = [&](int k) -> float& {
    if constexpr (kShared)
      return rows[k * kThreads + threadIdx.x];
    else
      return own[k];
  };
  for (int k = 0; k < kWindow; ++k) at(k) = in[(i + k * 97) % kCount];
#pragma unroll 1
  for (int gap = kWindow / 2; gap > 0; gap /= 2) {
#pragma unroll 1
    for (int k = gap; k < kWindow; ++k) {
      const float value = at(k);
      int j = k;
      while (j >= gap && at(j - gap) > value) at(j) = at(j - gap), j -= gap;
      at(j) = value;
    }
  }
  out[i] = at(kWindow / 2);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>((std::int64_t{i} * 7919) % 10007);
    CUDA_OK(cudaMemcpy(in, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice));
  }
  void iteration(std::int64_t) {
    if (fixed)
      median<true><<<kCount / kThreads, kThreads>>>(in, out);
    else
      median<false><<<kCount / kThreads, kThreads>>>(in, out);
  }
  double sum() { return truth::sum_of(out, kCount); }

  bool fixed;
  float *in = truth::device_array<float>(kCount), *out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
