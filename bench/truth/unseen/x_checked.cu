// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a debugging macro behind every launch waits for the device. Twin: it asks for launch errors alone. Both wait
// once an image, as a camera's loop does.
#include "../truth.h"

constexpr int kWidth = 1280, kHeight = 720, kStages = 12;
constexpr int kPixels = kWidth * kHeight;

__global__ void blur(const float* in, float* out, int radius) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float sum = 0;
  for (int d = -radius; d <= radius; ++d) sum += in[y * kWidth + min(max(x + d, 0), kWidth - 1)];
  out[y * kWidth + x] = sum / static_cast<float>(2 * radius + 1);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    std::vector<float> image(kPixels);
    for (int i = 0; i < kPixels; ++i) image[i] = static_cast<float>(i % 255);
    CUDA_OK(cudaMemcpy(source, image.data(), kPixels * sizeof(float), cudaMemcpyHostToDevice));
  }
  void check() {
    CUDA_OK(cudaGetLastError());
    if (!fixed) CUDA_OK(cudaDeviceSynchronize());
  }
  void iteration(std::int64_t) {
    const float* from = source;
    for (int s = 0; s < kStages; ++s) {
      blur<<<dim3(kWidth / 32, kHeight / 8), dim3(32, 8)>>>(from, images[s % 2], 6 + s);
      check();
      from = images[s % 2];
    }
    CUDA_OK(cudaDeviceSynchronize());
  }
  double sum() { return truth::sum_of(images[1], kPixels); }

  bool fixed;
  float *source = truth::device_array<float>(kPixels),
        *images[2] = {truth::device_array<float>(kPixels), truth::device_array<float>(kPixels)};
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
