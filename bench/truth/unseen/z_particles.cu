// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Four million particles in a cell: deposit, field, push. Planted: a step's arrays are objects that take device memory and
// give it back. Twin: they are kept. Expected: alloc_in_loop.
#include "z.h"

constexpr int kParticles = 1 << 22, kSide = 1024, kCells = kSide * kSide;

/// Device memory as long as the object lives.
template <typename T>
struct Array {
  explicit Array(std::size_t n) { OK(cudaMalloc(&data, n * sizeof(T))); }
  ~Array() { OK(cudaFree(data)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  T* data = nullptr;
};

__global__ void scatter(float2* x, float2* v) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  x[i] = make_float2(static_cast<float>(z::mix(2 * i) >> 8) / 16777216.0f,
                     static_cast<float>(z::mix(2 * i + 1) >> 8) / 16777216.0f);
  v[i] = make_float2(0, 0);
}

__global__ void deposit(const float2* x, int* cell, int* density) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float2 at = x[i];
  const int c =
      min(static_cast<int>(at.y * kSide), kSide - 1) * kSide + min(static_cast<int>(at.x * kSide), kSide - 1);
  cell[i] = c;
  atomicAdd(density + c, 1);
}

__global__ void field(const int* density, float2* force) {
  const int c = blockIdx.x * 256 + threadIdx.x, cx = c % kSide, cy = c / kSide;
  float fx = 0, fy = 0;
  for (int d = 1; d <= 6; ++d) {
    fx += static_cast<float>(density[cy * kSide + (cx + kSide - d) % kSide] -
                             density[cy * kSide + (cx + d) % kSide]) /
          d;
    fy += static_cast<float>(density[(cy + kSide - d) % kSide * kSide + cx] -
                             density[(cy + d) % kSide * kSide + cx]) /
          d;
  }
  force[c] = make_float2(fx, fy);
}

__global__ void push(float2* x, float2* v, const int* cell, const float2* force) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  const float2 f = force[cell[i]];
  float2 p = x[i], u = v[i];
  u.x = 0.99f * u.x + 1e-6f * f.x, u.y = 0.99f * u.y + 1e-6f * f.y;
  p.x += u.x, p.y += u.y;
  p.x -= floorf(p.x), p.y -= floorf(p.y);
  x[i] = p, v[i] = u;
}

struct Scratch {
  Array<int> cell{kParticles}, density{kCells};
  Array<float2> force{kCells};
};

struct Program : z::Base {
  explicit Program(bool is_fixed) : kept(is_fixed ? new Scratch : nullptr) {}
  void reset() {
    scatter<<<kParticles / 256, 256, 0, s>>>(x, v);
    OK(cudaStreamSynchronize(s));
  }
  void step(const Scratch& scratch) {
    OK(cudaMemsetAsync(scratch.density.data, 0, kCells * sizeof(int), s));
    deposit<<<kParticles / 256, 256, 0, s>>>(x, scratch.cell.data, scratch.density.data);
    field<<<kCells / 256, 256, 0, s>>>(scratch.density.data, scratch.force.data);
    push<<<kParticles / 256, 256, 0, s>>>(x, v, scratch.cell.data, scratch.force.data);
  }
  void step(std::int64_t) {
    if (kept != nullptr) return step(*kept);
    const Scratch scratch;
    step(scratch);
  }
  double result() {
    const Scratch scratch;
    OK(cudaMemsetAsync(scratch.density.data, 0, kCells * sizeof(int), s));
    deposit<<<kParticles / 256, 256, 0, s>>>(x, scratch.cell.data, scratch.density.data);
    const std::vector<int> n = z::fetch(scratch.density.data, kCells);
    std::int64_t all = 0;
    double sum = 0;
    for (int c = 0; c < kCells; ++c) all += n[c], sum += double(n[c]) * (c % 1009);
    z::require(all == kParticles, "particles were lost");
    return sum;
  }

  Scratch* kept;
  cudaStream_t s = z::stream();
  float2 *x = z::device<float2>(kParticles), *v = z::device<float2>(kParticles);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
