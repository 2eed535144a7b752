// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Distances of one query to four stored vectors at a time, as integers that order like them: over the fp32 vectors, and
// over their int8 copies. Included once per instruction set: the guard flips with HWY_TARGET_TOGGLE.
#include <fulcrum/ops/hnsw_search.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "backends/simd/sums-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_HNSW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_HNSW_ROWS_INL_H_
#undef FULCRUM_BACKENDS_SIMD_HNSW_ROWS_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_HNSW_ROWS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// Bits of a float such that integers order like the numbers, and the way back. -0 counts as 0.
HWY_INLINE std::uint32_t order_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}
HWY_INLINE float float_of(std::uint32_t order) {
  return std::bit_cast<float>((order >> 31) != 0 ? order & 0x7FFFFFFFU : ~order);
}

constexpr std::int64_t kLineBytes = 64;

HWY_INLINE void prefetch_lines(const void* from, std::int64_t bytes) {
  const auto* at = static_cast<const std::uint8_t*>(from);
  for (std::int64_t line = 0; line < bytes; line += kLineBytes) hwy::Prefetch(at + line);
}

/// The fp32 vectors.
template <ops::HnswMetric kMetric>
struct FloatRows {
  const ops::HnswIndex& index;
  const float* query;  // padded and aligned as the vectors; cosine: of length 1

  HWY_INLINE const float* row(std::int32_t id) const { return index.vectors + id * index.stride; }
  // Hardware follows a row once it is being read: asking for all of a long one would only wait.
  HWY_INLINE void prefetch(std::int32_t id) const {
    prefetch_lines(row(id), std::min<std::int64_t>(index.stride * 4, 1024));
  }

  HWY_INLINE void four(const std::int32_t* ids, std::uint32_t* orders) const {
    const Float d;
    const float* r0 = row(ids[0]);
    const float* r1 = row(ids[1]);
    const float* r2 = row(ids[2]);
    const float* r3 = row(ids[3]);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const auto n = static_cast<std::size_t>(index.stride);
    HWY_UNROLL(2)
    for (std::size_t i = 0; i < n; i += kLanes) {
      const auto q = hn::Load(d, query + i);
      s0 = add(q, hn::Load(d, r0 + i), s0);
      s1 = add(q, hn::Load(d, r1 + i), s1);
      s2 = add(q, hn::Load(d, r2 + i), s2);
      s3 = add(q, hn::Load(d, r3 + i), s3);
    }
    HWY_ALIGN float sums[4];
    store_four_sums(d, s0, s1, s2, s3, sums);
    for (std::size_t i = 0; i < 4; ++i) orders[i] = order_of(finish(sums[i]));
  }

 private:
  static HWY_INLINE Floats add(Floats q, Floats c, Floats sum) {
    if constexpr (kMetric == ops::HnswMetric::l2sq) {
      const auto difference = hn::Sub(q, c);
      return hn::MulAdd(difference, difference, sum);
    }
    return hn::MulAdd(q, c, sum);
  }
  static HWY_INLINE float finish(float sum) {
    if constexpr (kMetric == ops::HnswMetric::l2sq) return sum;
    return kMetric == ops::HnswMetric::ip ? -sum : 1 - sum;
  }
};

/// Their int8 copies: exact integer arithmetic on rounded values, so the order is that of the true distances but for
/// rounding.
template <ops::HnswMetric kMetric>
struct CodeRows {
  const ops::HnswIndex& index;
  const std::int16_t* query;

  HWY_INLINE const std::int8_t* row(std::int32_t id) const { return index.codes + id * index.code_stride; }
  HWY_INLINE void prefetch(std::int32_t id) const {
    prefetch_lines(row(id), std::min<std::int64_t>(index.code_stride, 1024));
  }

  HWY_INLINE void four(const std::int32_t* ids, std::uint32_t* orders) const {
    const hn::ScalableTag<std::int32_t> d;
    const hn::ScalableTag<std::int16_t> wide;
    const hn::Rebind<std::int8_t, decltype(wide)> narrow;
    const std::int8_t* r0 = row(ids[0]);
    const std::int8_t* r1 = row(ids[1]);
    const std::int8_t* r2 = row(ids[2]);
    const std::int8_t* r3 = row(ids[3]);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    auto t0 = s0, t1 = s0, t2 = s0, t3 = s0;
    const auto n = static_cast<std::size_t>(index.code_stride);
    HWY_UNROLL(2)
    for (std::size_t i = 0; i < n; i += hn::Lanes(wide)) {
      const auto q = hn::Load(wide, query + i);
      add(q, hn::PromoteTo(wide, hn::Load(narrow, r0 + i)), s0, t0);
      add(q, hn::PromoteTo(wide, hn::Load(narrow, r1 + i)), s1, t1);
      add(q, hn::PromoteTo(wide, hn::Load(narrow, r2 + i)), s2, t2);
      add(q, hn::PromoteTo(wide, hn::Load(narrow, r3 + i)), s3, t3);
    }
    HWY_ALIGN std::int32_t sums[4];
    store_four_sums(d, hn::Add(s0, t0), hn::Add(s1, t1), hn::Add(s2, t2), hn::Add(s3, t3), sums);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int32_t value = kMetric == ops::HnswMetric::l2sq ? sums[i] : -sums[i];
      orders[i] = static_cast<std::uint32_t>(value) ^ 0x80000000U;
    }
  }

 private:
  template <class V16, class V32>
  static HWY_INLINE void add(V16 q, V16 c, V32& sum, V32& other) {
    const hn::ScalableTag<std::int32_t> d;
    if constexpr (kMetric == ops::HnswMetric::l2sq) {
      const auto difference = hn::Sub(q, c);
      sum = hn::ReorderWidenMulAccumulate(d, difference, difference, sum, other);
    } else {
      sum = hn::ReorderWidenMulAccumulate(d, q, c, sum, other);
    }
  }
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
