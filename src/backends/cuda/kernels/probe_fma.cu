// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_fma on the device: chains of fma in registers. A thread carries eight where there are enough of them to fill
// the device, so that nothing waits for the fma before it; one where only many threads can.
#include <algorithm>
#include <span>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace streaming;

constexpr int kThreads = 256;

/// `one` and `zero` are parameters because the compiler would drop a multiplication by a 1 it knows, and compute
/// chains once that it knows to start equal.
template <int kChains>
__global__ void __launch_bounds__(kThreads)
    run_chains(float* y, int64_t n, int64_t steps, float one, float zero) {
  follow();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kChains + threadIdx.x;
  float sum[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum[i] = zero * static_cast<float>(i);
  constexpr int kUnroll = 256 / kChains;
  int64_t step = 0;
  for (; step + kUnroll <= steps; step += kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) sum[i] = __fmaf_rn(sum[i], one, one);
    }
  }
#pragma unroll 1
  for (; step < steps; ++step) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) sum[i] = __fmaf_rn(sum[i], one, one);
  }
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    const int64_t at = first + i * kThreads;
    if (at < n) y[at] = sum[i];
  }
}

fulcrum_status run(const fulcrum_args* a, void* stream, int64_t count) {
  constexpr int kMany = 8;
  const int64_t n = a->dim[0];
  if (n == 0) return done();
  const bool many = n >= static_cast<int64_t>(kMany) * device().sms * device().threads_per_sm / 2;
  const int64_t ctas = divide_up(n, kThreads * (many ? kMany : 1));
  return launch(many ? run_chains<kMany> : run_chains<1>, Launch{ctas, kThreads, false}, stream, count,
                a->out<float>(0), n, a->scalar[0].i, 1.0F, 0.0F);
}

}  // namespace

std::span<const fulcrum_kernel> probe_fma() {
  static const fulcrum_kernel kernels[] = {{.variant = "default", .level = 2, .isa = isa, .run = run}};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
