// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clean: a pipeline as it should be. Pinned buffers, three streams, events between upload, kernel and download, and the
// host waits only for what it is about to overwrite.
#include "../truth.h"

constexpr int kCount = 2 << 20, kThreads = 256, kSlots = 4;

__global__ void transform(const float* in, float* out) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  out[i] = truth::churn(in[i], 3000);
}

struct Program {
  explicit Program(bool) {
    for (cudaStream_t* s : {&up, &run, &down}) CUDA_OK(cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    for (int s = 0; s < kSlots; ++s) {
      in[s] = truth::device_array<float>(kCount), out[s] = truth::device_array<float>(kCount);
      results[s] = truth::pinned_array<float>(kCount);
      for (cudaEvent_t* e : {&arrived[s], &computed[s], &returned[s]})
        CUDA_OK(cudaEventCreateWithFlags(e, cudaEventDisableTiming));
    }
  }
  void iteration(std::int64_t turn) {
    const int s = static_cast<int>(turn % kSlots);
    const float* batch = loader.fill(turn);
    CUDA_OK(cudaStreamWaitEvent(up, computed[s]));  // the kernel that read this slot
    CUDA_OK(cudaMemcpyAsync(in[s], batch, kCount * sizeof(float), cudaMemcpyHostToDevice, up));
    loader.sent(up);
    CUDA_OK(cudaEventRecord(arrived[s], up));
    CUDA_OK(cudaStreamWaitEvent(run, arrived[s]));
    CUDA_OK(cudaStreamWaitEvent(run, returned[s]));
    transform<<<kCount / kThreads, kThreads, 0, run>>>(in[s], out[s]);
    CUDA_OK(cudaEventRecord(computed[s], run));
    CUDA_OK(cudaStreamWaitEvent(down, computed[s]));
    CUDA_OK(cudaMemcpyAsync(results[s], out[s], kCount * sizeof(float), cudaMemcpyDeviceToHost, down));
    CUDA_OK(cudaEventRecord(returned[s], down));
  }
  double sum() {
    CUDA_OK(cudaDeviceSynchronize());
    double total = 0;
    for (int i = 0; i < kCount; ++i) total += results[0][i];
    return total;
  }

  truth::Ring loader{kSlots, kCount, true};
  cudaStream_t up, run, down;
  float *in[kSlots], *out[kSlots], *results[kSlots];
  cudaEvent_t arrived[kSlots], computed[kSlots], returned[kSlots];
};

int main(int argc, char** argv) { return truth::run<Program>(argc, argv); }
