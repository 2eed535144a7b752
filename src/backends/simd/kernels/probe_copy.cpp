// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy: the loop of every element-wise kernel with nothing to compute.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_copy.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/probe.h"
#include "backends/simd/streaming-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Same {
  HWY_INLINE Floats operator()(Floats x) const { return x; }
};

void sweep_copy(const fulcrum_args& a, std::int64_t begin, std::int64_t end, bool stream) {
  const OneInput input{a.in<float>(0) + begin};
  float* y = a.out<float>(1) + begin;
  const auto n = static_cast<std::size_t>(end - begin);
  for (std::int64_t pass = 0; pass < a.scalar[0].i; ++pass) {
    stream ? stream_elements(input, y, n, Same()) : map_elements(input, y, n, Same());
    end_of_call();
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {

HWY_EXPORT(sweep_copy);

static void sweep(const fulcrum_args& a, std::int64_t begin, std::int64_t end, bool stream) {
  HWY_DYNAMIC_DISPATCH(sweep_copy)(a, begin, end, stream);
}

namespace kernels {
std::span<const fulcrum_kernel> probe_copy() { return sweep_kernels<sweep>(); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
