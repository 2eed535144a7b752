// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a plate's temperatures go up from and come back into a std::vector in every frame. Twin: pinned memory.
#include "../truth.h"

constexpr int kSide = 1536, kSweeps = 40;
constexpr std::size_t kCells = std::size_t{kSide} * kSide;

__global__ void sweep(const float* from, float* to) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  const int left = x > 0 ? x - 1 : x, right = x < kSide - 1 ? x + 1 : x;
  const int up = y > 0 ? y - 1 : y, down = y < kSide - 1 ? y + 1 : y;
  to[y * kSide + x] = 0.25f * (from[y * kSide + left] + from[y * kSide + right] + from[up * kSide + x] +
                               from[down * kSide + x]);
}

struct Program {
  explicit Program(bool fixed) : pageable(fixed ? 0 : kCells) {
    CUDA_OK(cudaStreamCreate(&stream));
    plate = fixed ? truth::pinned_array<float>(kCells) : pageable.data();
  }
  void iteration(std::int64_t number) {
    for (std::size_t i = 0; i < kCells; i += 16) plate[i] = static_cast<float>((number + i) % 100);
    CUDA_OK(cudaMemcpyAsync(a, plate, kCells * sizeof(float), cudaMemcpyHostToDevice, stream));
    for (int s = 0; s < kSweeps; ++s) {
      sweep<<<dim3(kSide / 32, kSide / 8), dim3(32, 8), 0, stream>>>(s % 2 ? b : a, s % 2 ? a : b);
    }
    CUDA_OK(cudaMemcpyAsync(plate, a, kCells * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_OK(cudaStreamSynchronize(stream));
    if (number == 0) {
      total = 0;
      for (std::size_t i = 0; i < kCells; ++i) total += plate[i];
      // What a frame leaves is not the start of the next in this sample.
      std::fill(plate, plate + kCells, 0.0f);
    }
  }
  double sum() { return total > 0 ? 1 : 0; }

  cudaStream_t stream;
  std::vector<float> pageable;
  float *plate, *a = truth::device_array<float>(kCells), *b = truth::device_array<float>(kCells);
  double total = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
