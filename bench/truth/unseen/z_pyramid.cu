// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A picture's pyramid of four levels and a normalisation by columns. Planted: the sums of columns are made by 16 blocks, each of
// which walks down the whole picture. Twin: 64 times as many share the rows. Expected: small_grid.
#include "z.h"

constexpr int kSide = 4096, kLevels = 4;

__global__ void paint(unsigned char* p) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  p[i] = static_cast<unsigned char>(z::mix(i / 3) % 200 + 20);
}

/// A Gauss filter of 5 by 5 and every other pixel.
__global__ void halve(const unsigned char* in, unsigned char* out, int side) {
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, wide = side * 2;
  const int w[5] = {1, 4, 6, 4, 1};
  int sum = 0;
#pragma unroll
  for (int j = -2; j <= 2; ++j) {
    const int row = min(max(2 * y + j, 0), wide - 1) * wide;
#pragma unroll
    for (int i = -2; i <= 2; ++i) sum += w[j + 2] * w[i + 2] * in[row + min(max(2 * x + i, 0), wide - 1)];
  }
  out[y * side + x] = static_cast<unsigned char>((sum + 128) / 256);
}

__global__ void columns(const unsigned char* in, unsigned* sums) {
  const int x = blockIdx.x * 256 + threadIdx.x, rows = kSide / gridDim.y, first = blockIdx.y * rows;
  unsigned sum = 0;
  for (int y = first; y < first + rows; ++y) sum += in[y * kSide + x];
  atomicAdd(sums + x, sum);
}

__global__ void normalise(const unsigned char* in, const unsigned* sums, float* out) {
  const int x = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
  const float mean = static_cast<float>(sums[x]) / kSide;
  out[y * kSide + x] = powf(static_cast<float>(in[y * kSide + x]) / mean, 0.4545f);
}

struct Program : z::Base {
  static constexpr bool kGraph = true;
  explicit Program(bool fixed) : share(fixed ? 64 : 1) {
    for (int l = 0; l <= kLevels; ++l) level[l] = z::device<unsigned char>((kSide >> l) * (kSide >> l));
    paint<<<kSide * kSide / 256, 256, 0, s>>>(level[0]);
    OK(cudaDeviceSynchronize());
  }
  void step(std::int64_t) {
    for (int l = 1; l <= kLevels; ++l)
      halve<<<dim3((kSide >> l) / 32, (kSide >> l) / 8), dim3(32, 8), 0, s>>>(level[l - 1], level[l],
                                                                              kSide >> l);
    OK(cudaMemsetAsync(sums, 0, kSide * sizeof(unsigned), s));
    columns<<<dim3(kSide / 256, share), 256, 0, s>>>(level[0], sums);
    normalise<<<dim3(kSide / 256, kSide), 256, 0, s>>>(level[0], sums, out);
  }
  double result() {
    const std::vector<unsigned char> in = z::fetch(level[0], kSide * kSide),
                                     small =
                                         z::fetch(level[kLevels], (kSide >> kLevels) * (kSide >> kLevels));
    const std::vector<unsigned> got = z::fetch(sums, kSide);
    for (int x = 0; x < kSide; x += 511) {
      unsigned want = 0;
      for (int y = 0; y < kSide; ++y) want += in[y * kSide + x];
      z::require(want == got[x], "the sum of a column");
    }
    double sum = 0;
    for (const unsigned char p : small) sum += p;
    for (const float v : z::fetch(out, kSide * 16)) sum += v;
    for (const unsigned n : got) sum += n;
    return sum;
  }

  int share;
  cudaStream_t s = z::stream();
  unsigned char* level[kLevels + 1];
  unsigned* sums = z::device<unsigned>(kSide);
  float* out = z::device<float>(kSide * kSide);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
