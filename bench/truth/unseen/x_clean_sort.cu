// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: passes of a bitonic sort over a large array, memory-bound kernels back to back on the default stream.
#include "../truth.h"

constexpr int kCount = 1 << 23, kThreads = 512;

__global__ void fill(unsigned* keys, unsigned seed) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  keys[i] = (i + seed) * 2654435761u;
}

__global__ void pass(unsigned* keys, unsigned width, unsigned distance) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x, other = i ^ distance;
  if (other < i) return;
  const unsigned a = keys[i], b = keys[other];
  if ((a > b) == ((i & width) == 0)) keys[i] = b, keys[other] = a;
}

__global__ void spread(const unsigned* keys, float* out) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = static_cast<float>(keys[i] >> 20);
}

struct Program {
  explicit Program(bool) {}
  void iteration(std::int64_t number) {
    fill<<<kCount / kThreads, kThreads>>>(keys, static_cast<unsigned>(number));
    for (unsigned width = 2; width <= 4096; width *= 2)
      for (unsigned distance = width / 2; distance > 0; distance /= 2)
        pass<<<kCount / kThreads, kThreads>>>(keys, width, distance);
    spread<<<kCount / kThreads, kThreads>>>(keys, out);
  }
  double sum() { return truth::sum_of(out, kCount); }

  unsigned* keys = truth::device_array<unsigned>(kCount);
  float* out = truth::device_array<float>(kCount);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
