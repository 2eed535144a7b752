// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See finite.h. 0 * x is NaN for NaN and infinities only, and once NaN a sum stays it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/finite.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/finite.h"
#include "backends/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

bool finite_numbers(const float* x, std::size_t n) {
  constexpr std::size_t kSums = 4;
  const Float d;
  const auto zero = hn::Zero(d);
  Floats sum[kSums] = {zero, zero, zero, zero};
  std::size_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t s = 0; s < kSums; ++s)
      sum[s] = hn::MulAdd(hn::LoadU(d, x + i + s * kLanes), zero, sum[s]);
  }
  for (; i + kLanes <= n; i += kLanes) sum[0] = hn::MulAdd(hn::LoadU(d, x + i), zero, sum[0]);
  if (i < n) sum[1] = hn::MulAdd(load_first(x + i, n - i), zero, sum[1]);
  return hn::AllTrue(d, hn::Eq(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), zero));
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {
HWY_EXPORT(finite_numbers);
}

bool all_finite(const float* x, std::size_t n) { return (HWY_DYNAMIC_DISPATCH(finite_numbers))(x, n); }

}  // namespace fulcrum::backends::simd
#endif
