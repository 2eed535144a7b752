// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: eight cameras have streams of their own, but the last kernel of each was launched without its stream. Twin:
// it has one.
#include "../truth.h"

constexpr int kCameras = 8, kPixels = 16 * 1024, kThreads = 256;

__global__ void detect(const float* in, float* out, int rounds) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(0.2f + 0.6f * in[i], rounds);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    for (int c = 0; c < kCameras; ++c) {
      CUDA_OK(cudaStreamCreate(&streams[c]));
      images[c] = truth::device_array<float>(kPixels);
      features[c] = truth::device_array<float>(kPixels);
      scores[c] = truth::device_array<float>(kPixels);
    }
  }
  void iteration(std::int64_t) {
    for (int c = 0; c < kCameras; ++c) {
      detect<<<kPixels / kThreads, kThreads, 0, streams[c]>>>(images[c], features[c], 3000);
      detect<<<kPixels / kThreads, kThreads, 0, streams[c]>>>(features[c], features[c], 3000);
      if (fixed) {
        detect<<<kPixels / kThreads, kThreads, 0, streams[c]>>>(features[c], scores[c], 1500);
      } else {
        detect<<<kPixels / kThreads, kThreads>>>(features[c], scores[c], 1500);
      }
    }
  }
  double sum() { return truth::sum_of(scores[0], kPixels); }

  bool fixed;
  cudaStream_t streams[kCameras];
  float *images[kCameras], *features[kCameras], *scores[kCameras];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
