// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A vector quantiser finds the nearest of 128 centroids. Planted: a block takes 2048 points, which makes 6 % more blocks than
// run at once, so a second wave is nearly empty. Twin: a block takes 256. Expected: tail.
#include "z.h"

constexpr int kCentroids = 128, kDims = 32, kThreads = 256, kMost = 8;

__global__ void nearest(const float* points, const float* centroids, int* out, int n, int each) {
  __shared__ float4 c[kCentroids * kDims / 4];
  for (int i = threadIdx.x; i < kCentroids * kDims / 4; i += kThreads)
    c[i] = reinterpret_cast<const float4*>(centroids)[i];
  __syncthreads();
  for (int e = 0; e < each; ++e) {
    const int i = (blockIdx.x * each + e) * kThreads + threadIdx.x;
    float p[kDims];
#pragma unroll
    for (int d = 0; d < kDims; ++d) p[d] = points[static_cast<std::size_t>(d) * n + i];
    float best = 1e30f;
    int which = 0;
    for (int k = 0; k < kCentroids; ++k) {
      float s = 0;
#pragma unroll
      for (int d = 0; d < kDims / 4; ++d) {
        const float4 v = c[k * (kDims / 4) + d];
        const float x = p[4 * d] - v.x, y = p[4 * d + 1] - v.y, z = p[4 * d + 2] - v.z,
                    w = p[4 * d + 3] - v.w;
        s += x * x + y * y + z * z + w * w;
      }
      if (s < best) best = s, which = k;
    }
    out[i] = which;
  }
}

__global__ void init(float* points, std::size_t n) {
  const std::size_t i = blockIdx.x * std::size_t{256} + threadIdx.x;
  if (i < n) points[i] = static_cast<float>(z::mix(static_cast<std::uint32_t>(i)) >> 8) / 16777216.0f;
}

struct Program : z::Base {
  explicit Program(bool fixed) : each(fixed ? 1 : kMost) {
    cudaDeviceProp device;
    int resident = 0;
    OK(cudaGetDeviceProperties(&device, 0));
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, nearest, kThreads, 0));
    const int at_once = resident * device.multiProcessorCount;
    n = (at_once + at_once / 16) * kThreads * kMost;
    points = z::device<float>(static_cast<std::size_t>(n) * kDims);
    out = z::device<int>(n);
    table.resize(kCentroids * kDims);
    for (int i = 0; i < kCentroids * kDims; ++i)
      table[i] = static_cast<float>(z::mix(i + 12345) % 1000) / 1000;
    z::send(centroids, table);
    OK(cudaDeviceSynchronize());
    const std::size_t all = static_cast<std::size_t>(n) * kDims;
    init<<<static_cast<unsigned>((all + 255) / 256), 256, 0, s>>>(points, all);
  }
  void step(std::int64_t) {
    nearest<<<n / kThreads / each, kThreads, 0, s>>>(points, centroids, out, n, each);
  }
  double result() {
    const std::vector<int> got = z::fetch(out, n);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += got[i];
    for (int i = 7; i < n; i += n / 20) {
      const auto distance = [&](int k) {
        double s = 0;
        for (int d = 0; d < kDims; ++d) {
          const std::size_t at = static_cast<std::size_t>(d) * n + i;
          const double x = static_cast<float>(z::mix(static_cast<std::uint32_t>(at)) >> 8) / 16777216.0f -
                           table[k * kDims + d];
          s += x * x;
        }
        return s;
      };
      double best = 1e30;
      for (int k = 0; k < kCentroids; ++k) best = std::min(best, distance(k));
      z::require(distance(got[i]) < best + 1e-4, "not the nearest");
    }
    return sum;
  }

  int each, n;
  cudaStream_t s = z::stream();
  std::vector<float> table;
  float *points, *centroids = z::device<float>(kCentroids * kDims);
  int* out;
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
