// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: blocks that stay take tiles of a picture from a counter and march rays through a fractal.
#include "z.h"

constexpr int kWidth = 1920, kHeight = 1088, kTiles = kWidth / 16 * (kHeight / 16);

__device__ float distance(float x, float y, float z) {
  float r = 0, dr = 1, px = x, py = y, pz = z;
  for (int i = 0; i < 6; ++i) {
    r = sqrtf(px * px + py * py + pz * pz);
    if (r > 2) break;
    const float theta = 8 * acosf(pz / fmaxf(r, 1e-6f)), phi = 8 * atan2f(py, px);
    const float r2 = r * r, r7 = r2 * r2 * r2 * r, r8 = r7 * r;
    dr = r7 * 8 * dr + 1;
    px = r8 * sinf(theta) * cosf(phi) + x, py = r8 * sinf(theta) * sinf(phi) + y, pz = r8 * cosf(theta) + z;
  }
  return 0.5f * logf(fmaxf(r, 1e-6f)) * r / dr;
}

__global__ void __launch_bounds__(256) march(float* out, int* next, float shift) {
  __shared__ int tile;
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(next, 1);
    __syncthreads();
    const int t = tile;
    __syncthreads();
    if (t >= kTiles) return;
    const int x = t % (kWidth / 16) * 16 + threadIdx.x % 16, y = t / (kWidth / 16) * 16 + threadIdx.x / 16;
    const float u = (x - kWidth / 2) / 800.0f, v = (y - kHeight / 2) / 800.0f;
    const float norm = rsqrtf(u * u + v * v + 1);
    float at = 1.0f;
    int steps = 0;
    for (; steps < 24; ++steps) {
      const float d = distance(at * u * norm + shift, at * v * norm, at * norm - 2.5f);
      if (d < 1e-3f || at > 5) break;
      at += d;
    }
    out[y * kWidth + x] = static_cast<float>(steps) / 24;
  }
}

struct Program : z::Base {
  explicit Program(bool) {
    cudaDeviceProp device;
    int resident = 0;
    OK(cudaGetDeviceProperties(&device, 0));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, march, 256, 0));
    blocks = resident * device.multiProcessorCount;
  }
  void step(std::int64_t number) {
    OK(cudaMemsetAsync(next, 0, sizeof(int), s));
    march<<<blocks, 256, 0, s>>>(out, next, 0.001f * static_cast<float>(number % 100));
  }
  double result() {
    double sum = 0;
    for (const float x : z::fetch(out, kWidth * kHeight)) sum += x;
    z::require(sum > 0 && sum <= kWidth * kHeight, "the picture");
    return sum;
  }
  int blocks;
  cudaStream_t s = z::stream();
  int* next = z::device<int>(1);
  float* out = z::device<float>(kWidth * kHeight);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
