// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: one heavy kernel a frame, a wait behind it, and the next.
#include "../truth.h"

constexpr int kWidth = 1920, kHeight = 1088;

__global__ void render(unsigned* out, int frame) {
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float a = 0, b = 0;
  int n = 0;
  const float cx = -2.0f + 3.0f * static_cast<float>(x + frame % 8) / kWidth,
              cy = -1.0f + 2.0f * static_cast<float>(y) / kHeight;
  for (; n < 400 && a * a + b * b < 4; ++n) {
    const float t = a * a - b * b + cx;
    b = 2 * a * b + cy, a = t;
  }
  out[y * kWidth + x] = static_cast<unsigned>(n);
}

struct Program {
  explicit Program(bool) {}
  void iteration(std::int64_t number) {
    for (int part = 0; part < 4; ++part)
      render<<<dim3(kWidth / 16, kHeight / 16), dim3(16, 16)>>>(picture, static_cast<int>(number) + part);
    CUDA_OK(cudaDeviceSynchronize());
  }
  double sum() { return 1; }

  unsigned* picture = truth::device_array<unsigned>(kWidth * kHeight);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
