// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a plate's temperatures go up from and come back into a std::vector in every frame. Twin: pinned memory.
// Further: the next frame is written while the GPU works on this one. Furthest: it also has a stream and arrays of its own.
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
  explicit Program(bool fixed, int further = 0) : pageable(fixed ? 0 : kCells), is_ahead(further > 0) {
    CUDA_OK(cudaStreamCreate(&stream));
    plate = fixed ? truth::pinned_array<float>(kCells) : pageable.data();
    if (!is_ahead) return;
    next = {stream, truth::pinned_array<float>(kCells), a, b, nullptr};
    CUDA_OK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CUDA_OK(cudaEventCreateWithFlags(&next.done, cudaEventDisableTiming));
    if (further < 2) return;
    CUDA_OK(cudaStreamCreate(&next.stream));
    next.a = truth::device_array<float>(kCells);
    next.b = truth::device_array<float>(kCells);
  }
  void iteration(std::int64_t number) {
    if (is_ahead) {
      std::swap(stream, next.stream);
      std::swap(plate, next.plate);
      std::swap(a, next.a);
      std::swap(b, next.b);
      std::swap(done, next.done);
      CUDA_OK(cudaEventSynchronize(done));
    }
    for (std::size_t i = 0; i < kCells; i += 16) plate[i] = static_cast<float>((number + i) % 100);
    CUDA_OK(cudaMemcpyAsync(a, plate, kCells * sizeof(float), cudaMemcpyHostToDevice, stream));
    for (int s = 0; s < kSweeps; ++s) {
      sweep<<<dim3(kSide / 32, kSide / 8), dim3(32, 8), 0, stream>>>(s % 2 ? b : a, s % 2 ? a : b);
    }
    CUDA_OK(cudaMemcpyAsync(plate, a, kCells * sizeof(float), cudaMemcpyDeviceToHost, stream));
    if (is_ahead) CUDA_OK(cudaEventRecord(done, stream));
    if (!is_ahead || number == 0) CUDA_OK(cudaStreamSynchronize(stream));
    if (number == 0) {
      total = 0;
      for (std::size_t i = 0; i < kCells; ++i) total += plate[i];
      // What a frame leaves is not the start of the next in this sample.
      std::fill(plate, plate + kCells, 0.0f);
    }
  }
  double sum() { return total > 0 ? 1 : 0; }

  struct Frame {
    cudaStream_t stream;
    float *plate, *a, *b;
    cudaEvent_t done;
  };
  cudaStream_t stream;
  cudaEvent_t done = nullptr;
  std::vector<float> pageable;
  bool is_ahead;
  Frame next = {};
  float *plate, *a = truth::device_array<float>(kCells), *b = truth::device_array<float>(kCells);
  double total = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
