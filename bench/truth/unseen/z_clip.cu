// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An optimiser clips the gradient of each of 16 parameter tensors by its norm. Planted: the host waits for every norm and
// hands the factor to the next kernel. Twin: that kernel reads the norm itself. Expected: sync_stall.
#include "z.h"

constexpr int kTensors = 16, kCount = 1 << 20, kBlocks = 264;

__global__ void init(float* p, float* g, float* m, float* v, int tensor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float r = static_cast<float>(z::mix(i + tensor * kCount) >> 8) / 16777216.0f;
  p[i] = 1.0f + r;
  g[i] = (0.2f + 0.01f * tensor) * (r - 0.5f);
  m[i] = v[i] = 0;
}

/// The last block to come adds what the others left, always in the same order.
__global__ void norm(const float* g, float* parts, unsigned* arrived, float* out) {
  __shared__ float sums[8];
  __shared__ bool last;
  const auto block_sum = [&](float s) {
    for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0u, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = s;
    __syncthreads();
    float all = 0;
    for (int i = 0; i < 8; ++i) all += sums[i];
    return all;
  };
  float s = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < kCount; i += gridDim.x * 256) s += g[i] * g[i];
  s = block_sum(s);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = s;
    __threadfence();
    last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  __threadfence();
  float t = 0;
  for (int i = threadIdx.x; i < static_cast<int>(gridDim.x); i += 256) t += __ldcg(parts + i);
  t = block_sum(t);
  if (threadIdx.x == 0) {
    *out = sqrtf(t);
    *arrived = 0;
  }
}

__host__ __device__ inline float factor_of(float norm) { return norm > 20.0f ? 20.0f / norm : 1.0f; }

__global__ void adam(float* p, const float* g, float* m, float* v, const float* norm, float factor) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float f = norm != nullptr ? factor_of(*norm) : factor;
  const float d = f * g[i];
  const float a = 0.9f * m[i] + 0.1f * d, b = 0.999f * v[i] + 0.001f * d * d;
  m[i] = a;
  v[i] = b;
  p[i] -= 1e-4f * a / (sqrtf(b) + 1e-6f);
}

struct Program : z::Base {
  static constexpr bool kGraph = true;
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    OK(cudaHostAlloc(&host_norms, sizeof(float) * kTensors, cudaHostAllocMapped));
    OK(cudaHostGetDevicePointer(&seen_norms, host_norms, 0));
    for (int t = 0; t < kTensors; ++t)
      for (float** a : {&p[t], &g[t], &m[t], &v[t]}) *a = z::device<float>(kCount);
  }
  void reset() {
    for (int t = 0; t < kTensors; ++t) init<<<kCount / 256, 256, 0, s>>>(p[t], g[t], m[t], v[t], t);
    OK(cudaStreamSynchronize(s));
  }
  void step(std::int64_t) {
    for (int t = 0; t < kTensors; ++t) {
      float* out = fixed ? norms + t : seen_norms + t;
      norm<<<kBlocks, 256, 0, s>>>(g[t], parts, arrived, out);
      float factor = 0;
      if (!fixed) {
        OK(cudaStreamSynchronize(s));
        factor = factor_of(static_cast<volatile float*>(host_norms)[t]);
      }
      adam<<<kCount / 256, 256, 0, s>>>(p[t], g[t], m[t], v[t], fixed ? out : nullptr, factor);
    }
  }
  double result() {
    double sum = 0;
    for (int t = 0; t < kTensors; t += 5) {
      const std::vector<float> now = z::fetch(p[t], kCount), slope = z::fetch(g[t], kCount);
      double square = 0;
      for (const float x : slope) square += double(x) * x;
      float seen;
      OK(cudaMemcpy(&seen, fixed ? norms + t : seen_norms + t, sizeof seen, cudaMemcpyDefault));
      z::require(std::fabs(seen - std::sqrt(square)) < 1e-3 * seen, "the norm");
      for (const float x : now) sum += x;
    }
    return sum;
  }

  bool fixed;
  cudaStream_t s = z::stream();
  float *p[kTensors], *g[kTensors], *m[kTensors], *v[kTensors];
  float *host_norms, *seen_norms, *norms = z::device<float>(kTensors), *parts = z::device<float>(kBlocks);
  unsigned* arrived = z::device<unsigned>(1);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
