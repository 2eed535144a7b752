// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: requests of a service are graphs (upload, six layers, download) in two streams with pinned memory of their own; the
// host writes one while the GPU works on the other.
#include "z.h"

constexpr int kIn = 1 << 18, kOut = 1 << 12, kLayers = 6;

__global__ void layer(const float* in, float* out, float gain) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  float x = in[i];
  for (int k = 0; k < 1500; ++k) x = __fmaf_rn(x, gain, 0.01f) * (1.0f - 0.5f * x);
  out[i] = x;
}

__global__ void pool(const float* in, float* out) {
  const int i = blockIdx.x * 64 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < kIn / kOut; ++k) sum += in[k * kOut + i];
  out[i] = sum;
}

struct Program : z::Base {
  explicit Program(bool) {
    for (int k = 0; k < 2; ++k) {
      s[k] = z::stream();
      done[k] = z::event();
      in[k] = z::pinned<float>(kIn);
      out[k] = z::pinned<float>(kOut);
      for (int i = 0; i < kIn; ++i) in[k][i] = static_cast<float>(i % 100) / 100;
      for (auto& one : field[k]) one = z::device<float>(kIn);
      small[k] = z::device<float>(kOut);
      cudaGraph_t graph;
      OK(cudaStreamBeginCapture(s[k], cudaStreamCaptureModeGlobal));
      OK(cudaMemcpyAsync(field[k][0], in[k], kIn * sizeof(float), cudaMemcpyHostToDevice, s[k]));
      for (int l = 0; l < kLayers; ++l)
        layer<<<kIn / 256, 256, 0, s[k]>>>(field[k][l % 2], field[k][(l + 1) % 2], 1.0f + 0.1f * l);
      pool<<<kOut / 64, 64, 0, s[k]>>>(field[k][kLayers % 2], small[k]);
      OK(cudaMemcpyAsync(out[k], small[k], kOut * sizeof(float), cudaMemcpyDeviceToHost, s[k]));
      OK(cudaStreamEndCapture(s[k], &graph));
      OK(cudaGraphInstantiate(&ready[k], graph, 0));
    }
  }
  void step(std::int64_t number) {
    const int k = static_cast<int>(number % 2);
    OK(cudaEventSynchronize(done[k]));
    answers += out[k][number % kOut];
    for (int i = 0; i < kIn; i += 1024) in[k][i] = static_cast<float>((number + i / 1024) % 100) / 100;
    OK(cudaGraphLaunch(ready[k], s[k]));
    OK(cudaEventRecord(done[k], s[k]));
  }
  double result() {
    double sum = 0;
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < kOut; ++i) sum += out[k][i];
    z::require(std::isfinite(sum) && sum > 0 && std::isfinite(answers), "an answer");
    return sum;
  }
  double answers = 0;
  cudaStream_t s[2];
  cudaEvent_t done[2];
  cudaGraphExec_t ready[2];
  float *in[2], *out[2], *field[2][2], *small[2];
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
