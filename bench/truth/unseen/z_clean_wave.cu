// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: waves in a volume, a kernel of some hundred microseconds a step; every sixteenth step what receivers heard is fetched.
#include "z.h"

constexpr int kSide = 320, kHalo = 4, kFull = kSide + 2 * kHalo, kReceivers = 4096;
constexpr std::size_t kCells = std::size_t{kFull} * kFull * kFull;

__global__ void advance(const float* __restrict__ now, float* __restrict__ other, float* heard,
                        float source) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, z = blockIdx.z;
  const std::size_t at = (std::size_t(z + kHalo) * kFull + y + kHalo) * kFull + x + kHalo;
  const float w[5] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
  const float c = now[at];
  float sum = 3 * w[0] * c;
#pragma unroll
  for (int d = 1; d <= kHalo; ++d)
    sum += w[d] * (now[at - d] + now[at + d] + now[at - d * kFull] + now[at + d * kFull] +
                   now[at - std::size_t(d) * kFull * kFull] + now[at + std::size_t(d) * kFull * kFull]);
  float value = 2 * c - other[at] + 0.1f * sum;
  if (x == kSide / 2 && y == kSide / 2 && z == kSide / 2) value += source;
  other[at] = value;
  if (y == 20 && x % 5 == 0 && z % 5 == 0) heard[z / 5 * 64 + x / 5] = value;
}

struct Program : z::Base {
  explicit Program(bool) {}
  void reset() {
    OK(cudaDeviceSynchronize());
    for (float* one : u) OK(cudaMemset(one, 0, kCells * sizeof(float)));
    OK(cudaDeviceSynchronize());
  }
  void step(std::int64_t number) {
    const float source = number % 64 < 8 ? sinf(0.8f * static_cast<float>(number % 64)) : 0.0f;
    advance<<<dim3(kSide / 32, kSide / 8, kSide), dim3(32, 8), 0, s>>>(u[number % 2], u[(number + 1) % 2],
                                                                       heard, source);
    if (number % 16 == 15) {
      OK(cudaEventSynchronize(fetched));
      for (int i = 0; i < kReceivers; i += 64) energy += double(trace[i]) * trace[i];
      OK(cudaMemcpyAsync(trace, heard, kReceivers * sizeof(float), cudaMemcpyDeviceToHost, s));
      OK(cudaEventRecord(fetched, s));
    }
  }
  double result() {
    const std::size_t plane = std::size_t{kFull} * kFull;  // nine planes around the source
    const std::vector<float> got = z::fetch(u[0] + (kHalo + kSide / 2 - 4) * plane, 9 * plane);
    double sum = 0;
    for (const float x : got) sum += std::fabs(x);
    z::require(std::isfinite(sum) && sum > 0, "the wave");
    return sum;
  }
  double energy = 0;
  cudaStream_t s = z::stream();
  cudaEvent_t fetched = z::event();
  float *u[2] = {z::device<float>(kCells), z::device<float>(kCells)}, *heard = z::device<float>(kReceivers),
        *trace = z::pinned<float>(kReceivers);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
