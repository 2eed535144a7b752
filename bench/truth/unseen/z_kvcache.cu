// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A cache of keys lives on the host, one line of 8 layers a token; a layer's rows of 96 tokens are fetched before each
// product with 4096 queries. Planted: row by row. Twin: one copy of two dimensions. Expected: small_copies.
#include "z.h"

constexpr int kRows = 96, kDim = 1024, kLayers = 8, kQueries = 4096, kSlots = 2, kTile = 16;

__global__ void scores(const float* q, const float* k, float* out) {
  __shared__ float a[kTile][kTile], b[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y, column = blockIdx.x * kTile + x;
  float sum = 0;
  for (int d = 0; d < kDim; d += kTile) {
    a[y][x] = q[row * kDim + d + x];
    b[y][x] = k[(blockIdx.x * kTile + y) * kDim + d + x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a[y][i] * b[x][i];
    __syncthreads();
  }
  out[row * kRows + column] = sum;
}

struct Program : z::Base {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    queries.resize(std::size_t{kQueries} * kDim);
    for (std::size_t i = 0; i < queries.size(); ++i)
      queries[i] = static_cast<float>(z::mix(static_cast<std::uint32_t>(i)) % 64) / 64;
    z::send(q, queries);
    for (int k = 0; k < kSlots; ++k) {
      cache[k] = z::pinned<float>(std::size_t{kRows} * kLayers * kDim);
      for (int i = 0; i < kRows * kLayers * kDim; ++i) cache[k][i] = static_cast<float>(i % 97) / 97;
      rows[k] = z::device<float>(kRows * kDim);
      fetched[k] = z::event();
      used[k] = z::event();
    }
    OK(cudaDeviceSynchronize());
  }
  void step(std::int64_t number) {
    const int k = static_cast<int>(number % kSlots), layer = static_cast<int>(number % kLayers);
    OK(cudaEventSynchronize(fetched[k]));
    for (int r = 0; r < kRows; ++r)  // a new word: the row of each token changes
      cache[k][(r * kLayers + layer) * kDim + number % kDim] = static_cast<float>((number + r) % 31) / 31;
    OK(cudaStreamWaitEvent(copies, used[k], 0));
    const float* from = cache[k] + layer * kDim;
    if (fixed) {
      OK(cudaMemcpy2DAsync(rows[k], kDim * sizeof(float), from, kLayers * kDim * sizeof(float),
                           kDim * sizeof(float), kRows, cudaMemcpyHostToDevice, copies));
    } else {
      for (int r = 0; r < kRows; ++r)
        OK(cudaMemcpyAsync(rows[k] + r * kDim, from + r * kLayers * kDim, kDim * sizeof(float),
                           cudaMemcpyHostToDevice, copies));
    }
    OK(cudaEventRecord(fetched[k], copies));
    OK(cudaStreamWaitEvent(work, fetched[k], 0));
    scores<<<dim3(kRows / kTile, kQueries / kTile), dim3(kTile, kTile), 0, work>>>(q, rows[k], out);
    OK(cudaEventRecord(used[k], work));
    last = number;
  }
  void reset() {
    OK(cudaDeviceSynchronize());
    for (auto* one : cache)
      for (int i = 0; i < kRows * kLayers * kDim; ++i) one[i] = static_cast<float>(i % 97) / 97;
  }
  double result() {
    const std::vector<float> got = z::fetch(out, kQueries * kRows);
    const int k = static_cast<int>(last % kSlots), layer = static_cast<int>(last % kLayers);
    for (int i = 3; i < kQueries * kRows; i += 40009) {
      double want = 0;
      for (int d = 0; d < kDim; ++d)
        want += double(queries[std::size_t(i / kRows) * kDim + d]) *
                cache[k][((i % kRows) * kLayers + layer) * kDim + d];
      z::require(std::fabs(want - got[i]) < 1e-3 * want, "a score");
    }
    double sum = 0;
    for (const float x : got) sum += x;
    return sum;
  }

  bool fixed;
  std::int64_t last = 0;
  std::vector<float> queries;
  cudaStream_t copies = z::stream(), work = z::stream();
  cudaEvent_t fetched[kSlots], used[kSlots];
  float *cache[kSlots], *rows[kSlots], *q = z::device<float>(std::size_t{kQueries} * kDim),
                                       *out = z::device<float>(kQueries * kRows);
};

int main(int argc, char** argv) { return z::run<Program>(argc, argv); }
