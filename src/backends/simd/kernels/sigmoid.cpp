// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// sigmoid: 1 / (1 + exp(-x)), within 6 ulp on AVX-512 and 3 elsewhere.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/sigmoid.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/streaming-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Map {
  HWY_INLINE Floats operator()(Floats x) const { return sigmoid(x); }
};

void cover_sigmoid(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count,
                   bool stream) {
  map_unary(a, begin, end, count, stream, Map());
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {

HWY_EXPORT(cover_sigmoid);

static void cover(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count,
                  bool stream) {
  (HWY_DYNAMIC_DISPATCH(cover_sigmoid))(a, begin, end, count, stream);
}

namespace kernels {
std::span<const fulcrum_kernel> sigmoid() { return unary_kernels<cover>(1); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
