// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a function that sums columns takes its workspace by cudaMalloc in every call and frees it. Twin: the workspace
// is a member. Further: the launches are one graph.
#include "../truth.h"

constexpr int kRows = 4096, kColumns = 1024, kParts = 32;

__global__ void partial(const float* in, float* parts) {
  const int column = blockIdx.x * 256 + threadIdx.x, part = blockIdx.y;
  float sum = 0;
  for (int r = part * (kRows / kParts); r < (part + 1) * (kRows / kParts); ++r)
    sum += in[r * kColumns + column];
  parts[part * kColumns + column] = sum;
}

__global__ void finish(const float* parts, float* out) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  float sum = 0;
  for (int p = 0; p < kParts; ++p) sum += parts[p * kColumns + column];
  out[column] = sum;
}

__global__ void scale(float* in, const float* sums) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  const float by = 1000 / (sums[column] + 1);
  for (int r = blockIdx.y * 64; r < (blockIdx.y + 1) * 64; ++r) in[r * kColumns + column] *= by;
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed) {
    std::vector<float> values(std::size_t{kRows} * kColumns, 1.0f);
    CUDA_OK(cudaMemcpy(matrix, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    if (fixed) parts = truth::device_array<float>(kParts * kColumns);
    if (further > 0) {
      CUDA_OK(cudaStreamCreate(&stream));
      graph = truth::captured(stream, [this] { launch(); });
    }
  }
  void sum_columns() {
    float* work = parts;
    if (!fixed) CUDA_OK(cudaMalloc(&work, kParts * kColumns * sizeof(float)));
    partial<<<dim3(kColumns / 256, kParts), 256, 0, stream>>>(matrix, work);
    finish<<<kColumns / 256, 256, 0, stream>>>(work, sums);
    if (!fixed) CUDA_OK(cudaFree(work));
  }
  void launch() {
    for (int k = 0; k < 3; ++k) {
      sum_columns();
      scale<<<dim3(kColumns / 256, kRows / 64), 256, 0, stream>>>(matrix, sums);
    }
  }
  void iteration(std::int64_t) {
    if (graph != nullptr)
      CUDA_OK(cudaGraphLaunch(graph, stream));
    else
      launch();
  }
  double sum() { return truth::sum_of(sums, kColumns); }

  bool fixed;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  float *matrix = truth::device_array<float>(std::size_t{kRows} * kColumns),
        *sums = truth::device_array<float>(kColumns), *parts = nullptr;
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
