// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_triad: two loads, one multiply-add, one store.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_triad.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/probe.h"
#include "backends/simd/streaming-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Scaled {
  Floats s;
  HWY_INLINE Floats operator()(Floats x, Floats z) const { return hn::MulAdd(s, z, x); }
};

void sweep_triad(const fulcrum_args& a, std::int64_t begin, std::int64_t end, bool stream) {
  const TwoInputs input{a.in<float>(0) + begin, a.in<float>(1) + begin};
  float* y = a.out<float>(2) + begin;
  const auto n = static_cast<std::size_t>(end - begin);
  const Scaled scaled{hn::Set(Float(), static_cast<float>(a.scalar[1].f))};
  for (std::int64_t pass = 0; pass < a.scalar[0].i; ++pass) {
    stream ? stream_elements(input, y, n, scaled) : map_elements(input, y, n, scaled);
    end_of_call();
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {

HWY_EXPORT(sweep_triad);

static void sweep(const fulcrum_args& a, std::int64_t begin, std::int64_t end, bool stream) {
  HWY_DYNAMIC_DISPATCH(sweep_triad)(a, begin, end, stream);
}

namespace kernels {
std::span<const fulcrum_kernel> probe_triad() { return sweep_kernels<sweep>(); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
