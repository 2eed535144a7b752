// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a service uploads its network's weights for every request. Twin: once. The request itself is new each time.
// Further: the next one is written while the GPU works on this one.
#include "../truth.h"

constexpr int kInputs = 2048, kOutputs = 2048, kBatch = 16;

__global__ void dense(const float* weights, const float* x, float* y) {
  const int output = blockIdx.x, lane = threadIdx.x;
  for (int b = 0; b < kBatch; ++b) {
    float sum = 0;
    for (int i = lane; i < kInputs; i += 32) sum += weights[output * kInputs + i] * x[b * kInputs + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) y[b * kOutputs + output] = sum > 0 ? sum : 0.01f * sum;
  }
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed), ahead(further > 0) {
    for (int i = 0; i < kInputs * kOutputs; ++i) host_weights[i] = static_cast<float>(i % 13 - 6) / 400;
    upload();
  }
  void upload() {
    CUDA_OK(cudaMemcpy(weights, host_weights, sizeof(float) * kInputs * kOutputs, cudaMemcpyHostToDevice));
  }
  static void write(float* to, std::int64_t number) {
    for (int i = 0; i < kBatch * kInputs; ++i) to[i] = static_cast<float>((number + i) % 32) / 32;
  }
  void iteration(std::int64_t number) {
    if (!ahead || written != number) write(request, number);
    if (!fixed) upload();
    CUDA_OK(cudaMemcpy(x, request, sizeof(float) * kBatch * kInputs, cudaMemcpyHostToDevice));
    for (int layer = 0; layer < 8; ++layer)
      dense<<<kOutputs, 32>>>(weights, layer % 2 ? y : x, layer % 2 ? x : y);
    if (ahead) {
      std::swap(request, other);
      write(request, written = number + 1);
    }
    CUDA_OK(cudaMemcpy(answer, x, sizeof(float) * kBatch * kOutputs, cudaMemcpyDeviceToHost));
  }
  double sum() {
    double all = 0;
    for (int i = 0; i < kBatch * kOutputs; ++i) all += answer[i];
    return all;
  }

  bool fixed, ahead;
  std::int64_t written = -1;
  float *host_weights = truth::pinned_array<float>(kInputs * kOutputs),
        *request = truth::pinned_array<float>(kBatch * kInputs),
        *other = truth::pinned_array<float>(kBatch * kInputs),
        *answer = truth::pinned_array<float>(kBatch * kOutputs),
        *weights = truth::device_array<float>(kInputs * kOutputs),
        *x = truth::device_array<float>(kBatch * kInputs), *y = truth::device_array<float>(kBatch * kOutputs);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
