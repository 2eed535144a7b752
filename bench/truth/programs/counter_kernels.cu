// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Five kernels of known character, each a millisecond or more: `counter_kernels [repeats] [seconds to wait first]`. What
// counters say about them is held against ncu's, and their durations against CUDA events: one line of JSON a kernel.
#include "../truth.h"

#include <cuda_fp16.h>
#include <unistd.h>

namespace {

constexpr int kThreads = 256;

/// Streams through memory far larger than the caches: as many bytes written as read.
__global__ void copy_dram(const float4* from, float4* to, std::int64_t count, int rounds) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (int round = 0; round < rounds; ++round)
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
         i += stride)
      to[i] = from[i];
}

/// Eight chains of multiply-adds a thread, in registers.
__global__ void fma_compute(float* out, int rounds) {
  float x[8];
  for (int k = 0; k < 8; ++k) x[k] = 0.001f * static_cast<float>(threadIdx.x + k);
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = __fmaf_rn(x[k], 0.999f, 0.001f);
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += x[k];
  out[static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

/// Products of 16 x 8 x 16 halves on the tensor cores, four independent ones a warp.
__global__ void tensor_mma(float* out, int rounds) {
  const unsigned a[4] = {0x2e662e66U, 0x2e662e66U, 0x2e662e66U, 0x2e662e66U},
                 b[2] = {0x2e662e66U, 0x2e662e66U};
  float c[4][4] = {};
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int k = 0; k < 4; ++k)
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%0,%1,%2,%3};"
          : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  float sum = 0;
  for (int k = 0; k < 4; ++k)
    for (int i = 0; i < 4; ++i) sum += c[k][i];
  out[static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

/// One warp an SM, each load waiting for the one before: nothing is busy, everything waits.
__global__ void pointer_chase(const unsigned* next, unsigned* out, int steps) {
  unsigned at = (blockIdx.x * 32 + threadIdx.x) * 9973u;
  for (int step = 0; step < steps; ++step) at = next[at];
  out[blockIdx.x * 32 + threadIdx.x] = at;
}

/// Reads what fits into the second-level cache, again and again.
__global__ void l2_resident(const float4* from, float* out, int count, int rounds) {
  float sum = 0;
  const int stride = static_cast<int>(gridDim.x * blockDim.x);
  for (int round = 0; round < rounds; ++round)
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += stride) {
      const float4 v = __ldcg(from + (i + round * 7919) % count);
      sum += v.x + v.y + v.z + v.w;
    }
  out[static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x] = sum;
}

template <class Launch>
void measure(const char* name, int blocks, int threads, int repeats, const Launch& launch) {
  std::vector<cudaEvent_t> events(static_cast<std::size_t>(repeats) + 1);
  for (cudaEvent_t& event : events) CUDA_OK(cudaEventCreate(&event));
  const auto begin = std::chrono::steady_clock::now().time_since_epoch();
  CUDA_OK(cudaEventRecord(events[0]));
  for (int i = 0; i < repeats; ++i) {
    launch();
    CUDA_OK(cudaEventRecord(events[static_cast<std::size_t>(i) + 1]));
  }
  CUDA_OK(cudaDeviceSynchronize());
  const auto end = std::chrono::steady_clock::now().time_since_epoch();
  std::printf(
      "{\"kernel\": \"%s\", \"blocks\": %d, \"threads\": %d, \"begin_ns\": %lld, \"end_ns\": %lld, "
      "\"event_us\": [",
      name, blocks, threads,
      static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(begin).count()),
      static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(end).count()));
  for (int i = 0; i < repeats; ++i) {
    float ms = 0;
    CUDA_OK(cudaEventElapsedTime(&ms, events[static_cast<std::size_t>(i)],
                                 events[static_cast<std::size_t>(i) + 1]));
    std::printf("%s%.3f", i ? ", " : "", static_cast<double>(ms) * 1e3);
  }
  std::puts("]}");
}

}  // namespace

int main(int count, char** arguments) {
  const int repeats = count > 1 ? std::atoi(arguments[1]) : 20;
  const double wait_seconds = count > 2 ? std::atof(arguments[2]) : 0;
  int sms = 0;
  CUDA_OK(cudaFree(nullptr));
  CUDA_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  usleep(static_cast<useconds_t>(wait_seconds * 1e6));

  const std::int64_t large = std::int64_t{64} << 20;  // of 16 bytes: 1 GiB
  auto* from = truth::device_array<float4>(static_cast<std::size_t>(large));
  auto* to = truth::device_array<float4>(static_cast<std::size_t>(large));
  const int chain = 64 << 20;  // of 4 bytes: 256 MiB
  auto* next = truth::device_array<unsigned>(static_cast<std::size_t>(chain));
  {
    std::vector<unsigned> host(static_cast<std::size_t>(chain));
    for (std::size_t i = 0; i < host.size(); ++i)  // a step that is odd: one ring through all of them
      host[i] = static_cast<unsigned>((i + 40503u * 1024u + 1u) % host.size());
    CUDA_OK(cudaMemcpy(next, host.data(), host.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  }
  auto* out = truth::device_array<float>(static_cast<std::size_t>(sms) * 64 * kThreads);
  const int small = 1 << 20;  // of 16 bytes: 16 MiB

  measure("copy_dram", sms * 8, kThreads, repeats,
          [&] { copy_dram<<<sms * 8, kThreads>>>(from, to, large, 3); });
  measure("fma_compute", sms * 8, kThreads, repeats, [&] { fma_compute<<<sms * 8, kThreads>>>(out, 30000); });
  measure("tensor_mma", sms * 4, kThreads, repeats, [&] { tensor_mma<<<sms * 4, kThreads>>>(out, 16000); });
  measure("pointer_chase", sms, 32, repeats,
          [&] { pointer_chase<<<sms, 32>>>(next, reinterpret_cast<unsigned*>(out), 3000); });
  measure("l2_resident", sms * 8, kThreads, repeats,
          [&] { l2_resident<<<sms * 8, kThreads>>>(from, out, small, 800); });
  return 0;
}
