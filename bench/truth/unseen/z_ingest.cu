// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets of sensor samples arrive in vectors, go up in two streams by turns, and pass a filter of 512 taps.
// Planted: the vectors are ordinary memory. Twin: they are registered (pinned) once. Expected: pageable_copy.
#include "z.h"

constexpr int kSamples = 1 << 20, kTaps = 512, kSlots = 4;

__constant__ float taps[kTaps];

__global__ void filter(const std::int16_t* in, float* out) {
  __shared__ float tile[256 + kTaps];
  const int first = blockIdx.x * 256;
  for (int i = threadIdx.x; i < 256 + kTaps; i += 256)
    tile[i] = first + i < kSamples ? static_cast<float>(in[first + i]) : 0.0f;
  __syncthreads();
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < kTaps; ++k) sum += taps[k] * tile[threadIdx.x + k];
  out[first + threadIdx.x] = sum;
}

struct Program : z::Base {
  explicit Program(bool fixed) {
    for (int k = 0; k < kTaps; ++k) weights[k] = static_cast<float>(std::sin(0.01 * k) / kTaps);
    OK(cudaMemcpyToSymbol(taps, weights, sizeof weights));
    for (int k = 0; k < kSlots; ++k) {
      packet[k].resize(kSamples);
      for (int i = 0; i < kSamples; ++i) packet[k][i] = static_cast<std::int16_t>(z::mix(i) % 2000);
      if (fixed)
        OK(cudaHostRegister(packet[k].data(), kSamples * sizeof(std::int16_t), cudaHostRegisterDefault));
      raw[k] = z::device<std::int16_t>(kSamples);
      out[k] = z::device<float>(kSamples);
      done[k] = z::event();
    }
    for (auto& one : s) one = z::stream();
    OK(cudaDeviceSynchronize());
  }
  void step(std::int64_t number) {
    const int k = static_cast<int>(number % kSlots);
    const cudaStream_t way = s[number % 2];
    OK(cudaEventSynchronize(done[k]));
    for (int i = 0; i < kSamples; i += 2048)
      packet[k][i] = static_cast<std::int16_t>((number + i / 2048) % 1000);
    OK(cudaMemcpyAsync(raw[k], packet[k].data(), kSamples * sizeof(std::int16_t), cudaMemcpyHostToDevice,
                       way));
    filter<<<kSamples / 256, 256, 0, way>>>(raw[k], out[k]);
    OK(cudaEventRecord(done[k], way));
  }
  double result() {
    double sum = 0;
    for (int k = 0; k < kSlots; ++k) {
      const std::vector<float> got = z::fetch(out[k], kSamples);
      for (int i = 5; i + kTaps < kSamples; i += 100003) {
        double want = 0;
        for (int j = 0; j < kTaps; ++j) want += double(weights[j]) * packet[k][i + j];
        z::require(std::fabs(want - got[i]) < 1e-3 * (1 + std::fabs(want)), "the filter");
      }
      for (const float x : got) sum += x;
    }
    return sum;
  }

  float weights[kTaps];
  std::vector<std::int16_t> packet[kSlots];
  std::int16_t* raw[kSlots];
  float* out[kSlots];
  cudaEvent_t done[kSlots];
  cudaStream_t s[2];
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
