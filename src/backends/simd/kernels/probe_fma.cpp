// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains of multiply-adds in registers. An FMA takes 4 cycles and up to 4 start in each, so 16 chains fill every
// CPU with 32 vector registers; with 16 registers there is room for 12 and the constant, and such CPUs start 2.
// The chains are variables and not an array, which g++ would keep on the stack.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_fma.cpp"
#include <fulcrum/ops/probes.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/vectors-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

#if HWY_ARCH_X86 && HWY_TARGET > HWY_AVX3
constexpr std::size_t kChains = 12;
#else
constexpr std::size_t kChains = 16;
#endif
static_assert(ops::kProbeChains % (kChains * kLanes) == 0);

/// One block of kChains * kLanes chains, from what y holds, `steps` steps long.
HWY_INLINE void run_chains(std::int64_t steps, Floats one, float* HWY_RESTRICT y) {
  const Float d;
  const auto load = [d, y](std::size_t chain) HWY_ATTR { return hn::Load(d, y + chain % kChains * kLanes); };
  auto y0 = load(0), y1 = load(1), y2 = load(2), y3 = load(3), y4 = load(4), y5 = load(5), y6 = load(6);
  auto y7 = load(7), y8 = load(8), y9 = load(9), y10 = load(10), y11 = load(11), y12 = load(12);
  auto y13 = load(13), y14 = load(14), y15 = load(15);
  const auto step = [one](Floats& v) HWY_ATTR { v = hn::MulAdd(v, one, one); };
  for (std::int64_t i = 0; i < steps; ++i) {
    step(y0), step(y1), step(y2), step(y3), step(y4), step(y5);
    step(y6), step(y7), step(y8), step(y9), step(y10), step(y11);
    if constexpr (kChains == 16) step(y12), step(y13), step(y14), step(y15);
  }
  const auto store = [d, y](std::size_t chain, Floats v) HWY_ATTR { hn::Store(v, d, y + chain * kLanes); };
  store(0, y0), store(1, y1), store(2, y2), store(3, y3), store(4, y4), store(5, y5);
  store(6, y6), store(7, y7), store(8, y8), store(9, y9), store(10, y10), store(11, y11);
  if constexpr (kChains == 16) store(12, y12), store(13, y13), store(14, y14), store(15, y15);
}

/// The chains [begin, end).
void run_blocks(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  // Hidden from the compiler, which would drop a multiplication by 1 and make one chain of sixteen equal ones.
  float factor = 1;
  __asm__ volatile("" : "+m"(factor));
  const Floats one = hn::Set(Float(), factor);
  constexpr auto block = static_cast<std::int64_t>(kChains * kLanes);
  for (std::int64_t i = begin; i < end; i += block) {
    HWY_ALIGN float y[kChains * kLanes] = {};
    __asm__ volatile("" : : "r"(y) : "memory");
    run_chains(a.scalar[0].i, one, y);
    std::copy_n(y, std::min(block, end - i), a.out<float>(0) + i);
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_blocks);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) HWY_DYNAMIC_DISPATCH(run_blocks)(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  HWY_DYNAMIC_DISPATCH(run_blocks)
  (*a, begin * ops::kProbeChains, std::min(end * ops::kProbeChains, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> probe_fma() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
