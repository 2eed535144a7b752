// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: spectra come back into an array of new[] for a plot. Twin: the array is pinned.
#include "../truth.h"

constexpr int kBins = 4096, kRows = 512, kThreads = 256;
constexpr std::size_t kCount = std::size_t{kBins} * kRows;

__global__ void spectrum(float* out, int frame) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  float re = 0, im = 0;
  for (int k = 0; k < 64; ++k) {
    float s, c;
    __sincosf(1e-3f * static_cast<float>((i % kBins) * k % 6283), &s, &c);
    re += c * static_cast<float>((k + frame) % 7), im += s * static_cast<float>(k % 5);
  }
  out[i] = re * re + im * im;
}

struct Program {
  explicit Program(bool fixed) : plot(fixed ? truth::pinned_array<float>(kCount) : new float[kCount]()) {}
  void iteration(std::int64_t number) {
    spectrum<<<kCount / kThreads, kThreads>>>(power, static_cast<int>(number % 100));
    CUDA_OK(cudaMemcpy(plot, power, kCount * sizeof(float), cudaMemcpyDeviceToHost));
    float peak = 0;
    for (std::size_t i = 0; i < kCount; i += kBins) peak = std::max(peak, plot[i]);
    highest = std::max(highest, peak);
  }
  double sum() { return truth::sum_of(power, kCount); }

  float *plot, *power = truth::device_array<float>(kCount), highest = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
