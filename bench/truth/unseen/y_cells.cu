// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Planted: a recurrent network launches three small kernels for each of 24 symbols. Twin: the same as a graph.
#include "../truth.h"

constexpr int kWidth = 512, kSymbols = 24;

__global__ void gates(const float* state, float* gate) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 32; ++k) sum += state[(i * 7 + k * 13) % kWidth] * 0.03f;
  gate[i] = 1 / (1 + __expf(-sum));
}
__global__ void mix(const float* gate, float* state) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  state[i] = gate[i] * state[i] + (1 - gate[i]) * 0.5f;
}
__global__ void emit(const float* state, float* out, int symbol) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  out[symbol * kWidth + i] = tanhf(state[i]);
}

struct Program {
  explicit Program(bool is_fixed) : fixed(is_fixed) {
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!fixed) return;
    CUDA_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    launch();
    CUDA_OK(cudaStreamEndCapture(stream, &graph));
    CUDA_OK(cudaGraphInstantiate(&instance, graph, 0));
  }
  void launch() {
    CUDA_OK(cudaMemsetAsync(state, 0, kWidth * sizeof(float), stream));
    for (int s = 0; s < kSymbols; ++s) {
      gates<<<kWidth / 128, 128, 0, stream>>>(state, gate);
      mix<<<kWidth / 128, 128, 0, stream>>>(gate, state);
      emit<<<kWidth / 128, 128, 0, stream>>>(state, out, s);
    }
  }
  void iteration(std::int64_t) {
    if (fixed)
      CUDA_OK(cudaGraphLaunch(instance, stream));
    else
      launch();
  }
  double sum() { return truth::sum_of(out, kSymbols * kWidth); }

  bool fixed;
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t instance = nullptr;
  float *state = truth::device_array<float>(kWidth), *gate = truth::device_array<float>(kWidth),
        *out = truth::device_array<float>(kSymbols * kWidth);
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
