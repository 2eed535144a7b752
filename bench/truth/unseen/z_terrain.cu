// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rain carves a height map; in each step the host lifts 32 points. Planted: the map is managed memory and the host writes into
// it. Twin: the points are sent and a kernel sets them. Expected: managed_faults.
#include "z.h"

constexpr int kSide = 2048, kCells = kSide * kSide, kPoints = 32, kSlots = 8;

__host__ __device__ inline int cell_of(int point) { return (point * 64 + 13) * kSide + point * 61 + 5; }

__global__ void flat(float* h) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  h[i] = static_cast<float>(z::mix(i) >> 8) / 16777216.0f;
}

__global__ void lift(float* h, const float* values) { h[cell_of(threadIdx.x)] = values[threadIdx.x]; }

__global__ void erode(const float* in, float* out) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  const float l = in[y * kSide + max(x - 1, 0)], r = in[y * kSide + min(x + 1, kSide - 1)];
  const float u = in[max(y - 1, 0) * kSide + x], d = in[min(y + 1, kSide - 1) * kSide + x];
  float h = in[y * kSide + x], water = 1;
  for (int k = 0; k < 40; ++k) {
    const float gx = 0.5f * (r - l) + 0.01f * h, gy = 0.5f * (d - u) - 0.01f * h;
    const float slope = sqrtf(gx * gx + gy * gy + 1e-4f);
    water *= 0.95f;
    h = h - 0.02f * water * slope + 0.005f * (0.25f * (l + r + u + d) - h);
  }
  out[y * kSide + x] = h;
}

struct Program : z::Base {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (float*& one : h) {
      if (fixed)
        one = z::device<float>(kCells);
      else
        OK(cudaMallocManaged(&one, kCells * sizeof(float)));
    }
    for (auto& one : sent) one = z::event();
  }
  void reset() {
    OK(cudaDeviceSynchronize());
    for (float* one : h) flat<<<kCells / 256, 256, 0, s>>>(one);
    OK(cudaStreamSynchronize(s));
  }
  static float value(std::int64_t number, int point) {
    return 1.0f + static_cast<float>((number + point) % 7) / 7;
  }
  void step(std::int64_t number) {
    if (fixed) {
      const int k = static_cast<int>(number % kSlots);
      OK(cudaEventSynchronize(sent[k]));
      for (int p = 0; p < kPoints; ++p) points[k * kPoints + p] = value(number, p);
      OK(cudaMemcpyAsync(values, points + k * kPoints, kPoints * sizeof(float), cudaMemcpyHostToDevice, s));
      OK(cudaEventRecord(sent[k], s));
      lift<<<1, kPoints, 0, s>>>(h[0], values);
    } else {
      OK(cudaStreamSynchronize(s));
      for (int p = 0; p < kPoints; ++p) h[0][cell_of(p)] = value(number, p);
    }
    for (int i = 0; i < 4; ++i)
      erode<<<dim3(kSide / 32, kSide / 8), dim3(32, 8), 0, s>>>(h[i % 2], h[(i + 1) % 2]);
  }
  double result() {
    const std::vector<float> got = z::fetch(h[0], kCells);
    double sum = 0;
    for (const float x : got) sum += x;
    z::require(std::isfinite(sum) && got[cell_of(3)] != got[cell_of(3) + 7], "the map");
    return sum;
  }

  bool fixed;
  cudaStream_t s = z::stream();
  cudaEvent_t sent[kSlots];
  float *h[2], *points = z::pinned<float>(kSlots * kPoints), *values = z::device<float>(kPoints);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
