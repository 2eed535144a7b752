// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: a long kernel a step and a small result that is read after each, as simulations do.
#include "../truth.h"

constexpr int kBodies = 32768, kThreads = 128;

__global__ void step(const float4* from, float4* to, float* energy) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 me = from[i];
  float x = 0, y = 0, z = 0;
  for (int k = 0; k < kBodies; ++k) {
    const float4 other = from[k];
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1), pull = other.w * r * r * r;
    x += pull * dx, y += pull * dy, z += pull * dz;
  }
  to[i] = make_float4(me.x + 1e-3f * x, me.y + 1e-3f * y, me.z + 1e-3f * z, me.w);
  if (threadIdx.x == 0) atomicAdd(energy, x * x + y * y + z * z);
}

struct Program {
  explicit Program(bool) {
    std::vector<float4> start(kBodies);
    for (int i = 0; i < kBodies; ++i)
      start[i] = make_float4(static_cast<float>(i % 32), static_cast<float>(i / 32 % 32),
                             static_cast<float>(i / 1024), 1e-3f);
    for (auto* one : bodies)
      CUDA_OK(cudaMemcpy(one, start.data(), kBodies * sizeof(float4), cudaMemcpyHostToDevice));
  }
  void iteration(std::int64_t number) {
    step<<<kBodies / kThreads, kThreads>>>(bodies[number % 2], bodies[1 - number % 2], energy);
    CUDA_OK(cudaMemcpy(&last, energy, sizeof last, cudaMemcpyDeviceToHost));
  }
  double sum() { return last > 0 ? 1 : 0; }

  float4* bodies[2] = {truth::device_array<float4>(kBodies), truth::device_array<float4>(kBodies)};
  float *energy = truth::device_array<float>(1), last = 0;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
