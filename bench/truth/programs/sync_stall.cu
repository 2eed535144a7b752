// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: the host waits for the device after each kernel, so that the GPU is idle until the next launch arrives.
// Twin: it does not. The steps are marked with NVTX.
#include <nvtx3/nvToolsExt.h>

#include "../truth.h"

constexpr int kBodies = 1 << 16, kThreads = 128, kNeighbours = 320, kSubsteps = 8;

__global__ void place(float4* bodies) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  bodies[i] = make_float4(static_cast<float>(i % 64), static_cast<float>(i / 64 % 32),
                          static_cast<float>(i / 2048), 1);
}

/// Each body is drawn by those that follow it.
__global__ void attract(const float4* from, float4* to) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 me = from[i];
  float x = 0, y = 0, z = 0;
  for (int k = 1; k <= kNeighbours; ++k) {
    const float4 other = from[(i + k) % kBodies];
    const float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
    const float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), pull = other.w * r * r * r;
    x += pull * dx, y += pull * dy, z += pull * dz;
  }
  to[i] = make_float4(me.x + 1e-3f * x, me.y + 1e-3f * y, me.z + 1e-3f * z, me.w);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  void done() {
    CUDA_OK(cudaGetLastError());
    if (!fixed) CUDA_OK(cudaDeviceSynchronize());
  }
  void iteration(std::int64_t) {
    nvtxRangePushA("step");
    place<<<kBodies / kThreads, kThreads, 0, stream>>>(bodies[0]);
    done();
    for (int s = 0; s < kSubsteps; ++s) {
      attract<<<kBodies / kThreads, kThreads, 0, stream>>>(bodies[s % 2], bodies[1 - s % 2]);
      done();
    }
    nvtxRangePop();
  }
  double sum() { return truth::sum_of(reinterpret_cast<float*>(bodies[0]), std::size_t{kBodies} * 4); }

  bool fixed;
  cudaStream_t stream;
  float4* bodies[2] = {truth::device_array<float4>(kBodies), truth::device_array<float4>(kBodies)};
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
