// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_fma: twelve chains of a multiplication and an addition each, as many as 16 registers hold. Every baseline
// has these two; a fused one would be a call to the library on x86-64.
#include <fulcrum/ops/probes.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

constexpr std::int64_t kChains = 12;
static_assert(ops::kProbeChains % kChains == 0);

void run_chains(std::int64_t steps, float one, float* y) {
  float y0 = y[0], y1 = y[1], y2 = y[2], y3 = y[3], y4 = y[4], y5 = y[5];
  float y6 = y[6], y7 = y[7], y8 = y[8], y9 = y[9], y10 = y[10], y11 = y[11];
  const auto step = [one](float& v) { v = v * one + one; };
  for (std::int64_t i = 0; i < steps; ++i) {
    step(y0), step(y1), step(y2), step(y3), step(y4), step(y5);
    step(y6), step(y7), step(y8), step(y9), step(y10), step(y11);
  }
  y[0] = y0, y[1] = y1, y[2] = y2, y[3] = y3, y[4] = y4, y[5] = y5;
  y[6] = y6, y[7] = y7, y[8] = y8, y[9] = y9, y[10] = y10, y[11] = y11;
}

/// The chains [begin, end).
void run_blocks(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  // Hidden from the compiler, which would drop a multiplication by 1 and make one chain of twelve equal ones.
  float one = 1;
  __asm__ volatile("" : "+m"(one));
  for (std::int64_t i = begin; i < end; i += kChains) {
    float y[kChains] = {};
    __asm__ volatile("" : : "r"(y) : "memory");
    run_chains(a.scalar[0].i, one, y);
    std::copy_n(y, std::min(kChains, end - i), a.out<float>(0) + i);
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) run_blocks(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  run_blocks(*a, begin * ops::kProbeChains, std::min(end * ops::kProbeChains, a->dim[0]));
}

}  // namespace

std::span<const fulcrum_kernel> probe_fma() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
