// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a colour table of 24 MB goes up before every picture. Twin: before the first. Pictures are new.
// Further: every other picture has a stream and device arrays of its own, so that it goes up beside the one before.
#include "../truth.h"

constexpr int kTable = 6 << 20, kPicture = 1 << 20, kThreads = 256;

__global__ void grade(const float* table, const float* picture, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  float value = picture[i];
  for (int k = 0; k < 24; ++k) value = 0.5f * value + table[static_cast<int>(value * 6000000) % kTable];
  out[i] = value;
}

struct Program {
  explicit Program(bool is_fixed, int further = 0) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreate(&streams[0]));
    streams[1] = streams[0];
    if (further > 0) {
      CUDA_OK(cudaStreamCreate(&streams[1]));
      picture[1] = truth::device_array<float>(kPicture);
      out[1] = truth::device_array<float>(kPicture);
    }
    for (int i = 0; i < kTable; ++i) host_table[i] = static_cast<float>(i % 1001) / 2200;
    CUDA_OK(cudaMemcpy(table, host_table, sizeof(float) * kTable, cudaMemcpyHostToDevice));
    for (auto& one : pictures) one = truth::pinned_array<float>(kPicture);
    for (auto& one : sent) CUDA_OK(cudaEventCreateWithFlags(&one, cudaEventDisableTiming));
    for (auto* one : pictures) std::fill(one, one + kPicture, 0.25f);
  }
  void iteration(std::int64_t number) {
    const int slot = last = static_cast<int>(number % 2);
    cudaStream_t stream = streams[slot];
    CUDA_OK(cudaEventSynchronize(sent[slot]));
    for (int i = 0; i < kPicture; i += 32) pictures[slot][i] = static_cast<float>((number + i) % 512) / 1024;
    if (!fixed)
      CUDA_OK(cudaMemcpyAsync(table, host_table, sizeof(float) * kTable, cudaMemcpyHostToDevice, stream));
    CUDA_OK(cudaMemcpyAsync(picture[slot], pictures[slot], sizeof(float) * kPicture, cudaMemcpyHostToDevice,
                            stream));
    CUDA_OK(cudaEventRecord(sent[slot], stream));
    for (int pass = 0; pass < 6; ++pass)
      grade<<<kPicture / kThreads, kThreads, 0, stream>>>(table, picture[slot], out[slot]);
  }
  double sum() { return truth::sum_of(out[last], kPicture); }

  bool fixed;
  int last = 0;
  cudaStream_t streams[2];
  cudaEvent_t sent[2];
  float *host_table = truth::pinned_array<float>(kTable), *table = truth::device_array<float>(kTable),
        *one_picture = truth::device_array<float>(kPicture), *one_out = truth::device_array<float>(kPicture),
        *pictures[2], *picture[2] = {one_picture, one_picture}, *out[2] = {one_out, one_out};
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
