// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The last columns of a product, where they are few and the vectors are wide: a tile of them would be mostly empty. A sum
// is one chain over k, as in a tile. Included once per instruction set.
#include <algorithm>

#include "backends/simd/gemm.h"
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_GEMM_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_GEMM_NARROW_INL_H_
#undef FULCRUM_BACKENDS_SIMD_GEMM_NARROW_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_GEMM_NARROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

#if HWY_TARGET <= HWY_AVX3

// Up to four columns: a vector holds the sums of four rows, which takes two thirds of the instructions of a vector of
// one row each. So many vectors at once hide each other's latency.
constexpr std::size_t kNarrow = 4;
constexpr std::size_t kNarrowVectors = 5;
constexpr std::size_t kNarrowRows = kNarrow * kNarrowVectors;

/// kDepth of k for four rows: the numbers of row i, from `a` on, stand in lanes 4 i and after.
template <std::size_t kDepth>
HWY_INLINE void add_narrow(const float* a, std::size_t stride, const Floats (&b)[kNarrow], Floats& sum) {
  const auto four = [](const float* from) HWY_ATTR {
    return kDepth == kNarrow ? _mm_loadu_ps(from) : _mm_maskz_loadu_ps((1U << kDepth) - 1, from);
  };
  __m512 rows = _mm512_castps128_ps512(four(a));
  rows = _mm512_mask_broadcast_f32x4(rows, 0x00F0, four(a + stride));
  rows = _mm512_mask_broadcast_f32x4(rows, 0x0F00, four(a + 2 * stride));
  rows = _mm512_mask_broadcast_f32x4(rows, 0xF000, four(a + 3 * stride));
  sum = hn::MulAdd(Floats{_mm512_permute_ps(rows, 0x00)}, b[0], sum);
  if constexpr (kDepth > 1) sum = hn::MulAdd(Floats{_mm512_permute_ps(rows, 0x55)}, b[1], sum);
  if constexpr (kDepth > 2) sum = hn::MulAdd(Floats{_mm512_permute_ps(rows, 0xAA)}, b[2], sum);
  if constexpr (kDepth > 3) sum = hn::MulAdd(Floats{_mm512_permute_ps(rows, 0xFF)}, b[3], sum);
}

template <std::size_t kDepth>
HWY_INLINE void add_narrow_step(const float* a, std::size_t stride, Matrix b, __mmask8 columns,
                                Floats (&sum)[kNarrowVectors]) {
  Floats right[kNarrow];
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kDepth; ++i)
    right[i] = Floats{_mm512_broadcast_f32x4(_mm_maskz_loadu_ps(columns, b.data + i * b.stride))};
  HWY_UNROLL(5)
  for (std::size_t v = 0; v < kNarrowVectors; ++v)
    add_narrow<kDepth>(a + v * kNarrow * stride, stride, right, sum[v]);
}

/// Extracting and storing must not become one instruction: that one faults on lanes that it does not write, behind the end
/// of C.
HWY_INLINE void store_narrow(__m128 row, float* to, __mmask8 columns) {
  __asm__("" : "+v"(row));
  _mm_mask_storeu_ps(to, columns, row);
}

/// C[kNarrowRows, columns] = A[kNarrowRows, depth] * B[depth, columns].
HWY_NOINLINE void narrow_tile(Matrix a, Matrix b, float* c, std::size_t stride, __mmask8 columns,
                              std::size_t depth) {
  Floats sum[kNarrowVectors];
  HWY_UNROLL(5)
  for (auto& s : sum) s = hn::Zero(Float());
  std::size_t k = 0;
  const auto step = [&]<std::size_t kDepth>() HWY_ATTR {
    add_narrow_step<kDepth>(a.data + k, a.stride, Matrix{b.data + k * b.stride, b.stride}, columns, sum);
  };
  for (; k + kNarrow <= depth; k += kNarrow) step.template operator()<kNarrow>();
  if (depth - k == 3) step.template operator()<3>();
  if (depth - k == 2) step.template operator()<2>();
  if (depth - k == 1) step.template operator()<1>();
  HWY_UNROLL(5)
  for (const auto& s : sum) {
    store_narrow(_mm512_castps512_ps128(s.raw), c, columns);
    store_narrow(_mm512_extractf32x4_ps(s.raw, 1), c + stride, columns);
    store_narrow(_mm512_extractf32x4_ps(s.raw, 2), c + 2 * stride, columns);
    store_narrow(_mm512_extractf32x4_ps(s.raw, 3), c + 3 * stride, columns);
    c += kNarrow * stride;
  }
}

/// How many last columns of an area multiply_narrow() does: those beyond whole vectors, if they are few.
HWY_INLINE std::size_t narrow_columns(std::size_t rows, std::size_t columns) {
  const std::size_t last = columns % kLanes;
  return last <= kNarrow && columns > kLanes && rows >= kNarrowRows ? last : 0;
}

/// C[rows, columns] = A[rows, depth] * B[depth, columns]. The last tile moves up until it fits, and does some rows again.
inline void multiply_narrow(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t rows,
                            std::size_t columns, std::size_t depth) {
  for (std::size_t i = 0; i < rows; i += kNarrowRows) {
    const std::size_t row = std::min(i, rows - kNarrowRows);
    narrow_tile(Matrix{a.data + row * a.stride, a.stride}, b, c + row * stride, stride,
                static_cast<__mmask8>((1U << columns) - 1), depth);
  }
}

#else

HWY_INLINE std::size_t narrow_columns(std::size_t, std::size_t) { return 0; }
HWY_INLINE void multiply_narrow(Matrix, Matrix, float*, std::size_t, std::size_t, std::size_t, std::size_t) {}

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
