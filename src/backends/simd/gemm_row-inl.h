// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One row times a matrix. Each number of the matrix is used once, so what counts is that it is read in sequence: some rows
// at a time, along their length, beside sums that stay near. A sum is one chain over k, as in a tile. Included once per
// instruction set.
#include <cstddef>

#include "backends/simd/gemm.h"
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_GEMM_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_GEMM_ROW_INL_H_
#undef FULCRUM_BACKENDS_SIMD_GEMM_ROW_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_GEMM_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// c = (first ? 0 : c) + a[kDeep] * B[kDeep, columns].
template <std::size_t kDeep>
HWY_NOINLINE void add_row(const float* a, Matrix b, float* c, std::size_t columns, bool first) {
  const Float d;
  Floats left[kDeep];
  HWY_UNROLL(12)
  for (std::size_t k = 0; k < kDeep; ++k) left[k] = hn::Set(d, a[k]);
  std::size_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) {
    auto sum = first ? hn::Zero(d) : hn::LoadU(d, c + j);
    HWY_UNROLL(12)
    for (std::size_t k = 0; k < kDeep; ++k)
      sum = hn::MulAdd(left[k], hn::LoadU(d, b.data + k * b.stride + j), sum);
    hn::StoreU(sum, d, c + j);
  }
  if (j == columns) return;
  auto sum = first ? hn::Zero(d) : load_first(c + j, columns - j);
  for (std::size_t k = 0; k < kDeep; ++k)
    sum = hn::MulAdd(left[k], load_first(b.data + k * b.stride + j, columns - j), sum);
  store_first(sum, c + j, columns - j);
}

/// c[columns] = a[depth] * B[depth, columns].
inline void multiply_row(const float* a, Matrix b, float* c, std::size_t columns, std::size_t depth) {
  constexpr std::size_t kDeep = HWY_TARGET <= HWY_AVX3 ? 12 : 8;  // registers for a, and some more
  std::size_t k = 0;
  const auto add = [&]<std::size_t kCount>() {
    for (; k + kCount <= depth; k += kCount)
      add_row<kCount>(a + k, Matrix{b.data + k * b.stride, b.stride}, c, columns, k == 0);
  };
  add.template operator()<kDeep>();
  add.template operator()<4>();
  add.template operator()<1>();
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
