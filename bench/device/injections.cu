// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See injections.h.
#include "injections.h"

#include <cuda_runtime.h>
#include <time.h>

namespace fulcrum::bench {
namespace {

constexpr int kFloats = 1024;

__device__ unsigned long long timer_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void add_one(float* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += 1.0f;
}

// Bounded by turns as well as by time: a timer that stands still must not hang the device.
__global__ void spin(unsigned long long nanoseconds, unsigned long long* spent) {
  const unsigned long long begin = timer_ns();
  unsigned long long now = begin;
  for (int turn = 0; turn < 10'000'000 && now - begin < nanoseconds; ++turn) now = timer_ns();
  *spent = now - begin;
}

struct State {
  cudaStream_t stream = nullptr;
  float *host_in = nullptr, *host_out = nullptr, *data = nullptr;
  void *copy_from = nullptr, *copy_to = nullptr;
  unsigned long long* spent = nullptr;  // pinned and mapped
};
State g_state;

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

const char* text(cudaError_t error) { return error == cudaSuccess ? nullptr : cudaGetErrorString(error); }

#define TRY(...) \
  if (const char* failed = text(__VA_ARGS__)) return failed

void spin_on_host() {
  const double until = now_seconds() + kSpinSeconds;
  while (now_seconds() < until) {
  }
}

}  // namespace

const char* open_injections() {
  State& s = g_state;
  TRY(cudaStreamCreateWithFlags(&s.stream, cudaStreamNonBlocking));
  TRY(cudaMallocHost(&s.host_in, kFloats * sizeof(float)));
  TRY(cudaMallocHost(&s.host_out, kFloats * sizeof(float)));
  TRY(cudaMalloc(&s.data, kFloats * sizeof(float)));
  TRY(cudaMallocHost(&s.copy_from, kCopyBytes));
  TRY(cudaMalloc(&s.copy_to, kCopyBytes));
  TRY(cudaMallocHost(&s.spent, sizeof(*s.spent)));
  for (int i = 0; i < kFloats; ++i) s.host_in[i] = static_cast<float>(i);
  return nullptr;
}

const char* call_with(Delay delay, Witness& witness) {
  State& s = g_state;
  witness = Witness{};
  void* allocated = nullptr;
  *s.spent = 0;
  witness.begin_seconds = now_seconds();
  if (delay == Delay::allocation) {
    const double before = now_seconds();
    TRY(cudaMalloc(&allocated, kAllocationBytes));
    witness.host_seconds = now_seconds() - before;
  }
  TRY(cudaMemcpyAsync(s.data, s.host_in, kFloats * sizeof(float), cudaMemcpyHostToDevice, s.stream));
  if (delay == Delay::extra_copy) {
    TRY(cudaMemcpyAsync(s.copy_to, s.copy_from, kCopyBytes, cudaMemcpyHostToDevice, s.stream));
  }
  add_one<<<4, 256, 0, s.stream>>>(s.data, kFloats);
  TRY(cudaGetLastError());
  if (delay == Delay::spinning_kernel) {
    spin<<<1, 1, 0, s.stream>>>(static_cast<unsigned long long>(kKernelSeconds * 1e9), s.spent);
    TRY(cudaGetLastError());
  }
  TRY(cudaMemcpyAsync(s.host_out, s.data, kFloats * sizeof(float), cudaMemcpyDeviceToHost, s.stream));
  TRY(cudaStreamSynchronize(s.stream));
  // After the wait: while work is in flight the device's phases would rightly cover the spin.
  if (delay == Delay::host_spin) {
    const double before = now_seconds();
    spin_on_host();
    witness.host_seconds = now_seconds() - before;
  }
  witness.end_seconds = now_seconds();
  witness.kernel_seconds = 1e-9 * static_cast<double>(*s.spent);
  return text(cudaFree(allocated));
}

const char* time_copy(double& seconds) {
  constexpr int kCopies = 20;
  State& s = g_state;
  cudaEvent_t begin = nullptr, end = nullptr;
  TRY(cudaEventCreate(&begin));
  TRY(cudaEventCreate(&end));
  for (int round = 0; round < 2; ++round) {  // the first warms up
    TRY(cudaEventRecord(begin, s.stream));
    for (int i = 0; i < kCopies; ++i) {
      TRY(cudaMemcpyAsync(s.copy_to, s.copy_from, kCopyBytes, cudaMemcpyHostToDevice, s.stream));
    }
    TRY(cudaEventRecord(end, s.stream));
    TRY(cudaStreamSynchronize(s.stream));
  }
  float milliseconds = 0;
  TRY(cudaEventElapsedTime(&milliseconds, begin, end));
  seconds = 1e-3 * milliseconds / kCopies;
  TRY(cudaEventDestroy(begin));
  return text(cudaEventDestroy(end));
}

void close_injections() {
  State& s = g_state;
  cudaFree(s.data);
  cudaFree(s.copy_to);
  cudaFreeHost(s.host_in);
  cudaFreeHost(s.host_out);
  cudaFreeHost(s.copy_from);
  cudaFreeHost(s.spent);
  if (s.stream) cudaStreamDestroy(s.stream);
  s = State{};
}

}  // namespace fulcrum::bench
