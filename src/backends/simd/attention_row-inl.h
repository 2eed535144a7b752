// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention of one query, with the elements of a row in the lanes: keys and values are read as they lie, once. Side by
// side in the lanes, one query takes as long as a block of them. Included once per instruction set.
#include <fulcrum/ops/attention.h>

#include <cmath>
#include <limits>

#include "backends/simd/half-inl.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/sums-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_ATTENTION_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_ATTENTION_ROW_INL_H_
#undef FULCRUM_BACKENDS_SIMD_ATTENTION_ROW_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_ATTENTION_ROW_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// x, or NaN where it is not finite.
HWY_INLINE Floats finite_or_nan(Floats x) { return hn::Add(x, hn::Sub(x, x)); }

/// Keys and values of a head, and a query of it.
struct AttentionRow {
  static constexpr std::size_t kKeys =
      64;  // of a tile, whose values are still near when its weights are known
  static constexpr std::size_t kMostD = ops::kAttentionMostD;
  static_assert(kKeys % kLanes == 0 && kMostD % kLanes == 0);

  const std::uint16_t *query, *keys, *values;
  std::size_t count, pitch;  // of keys; from one to the next
  std::size_t n;             // D
  float scale;
  std::uint16_t* out;
  float* lse;  // or null

  struct Room {
    HWY_ALIGN float q[kMostD];  // times scale; 0 behind element n
    HWY_ALIGN float o[kMostD];  // not yet divided by the sum
    HWY_ALIGN float p[kKeys];   // scores of a tile, then their exp
  };

  /// Elements [at, at + kLanes) of a row; 0 behind its end.
  HWY_INLINE Floats load(const std::uint16_t* row, std::size_t at) const {
    return at + kLanes <= n ? load_halves(row + at) : load_first_halves(row + at, n - at);
  }

  /// p[j] = key `first` + j times the query, NaN for keys that are not finite; -Inf up to a whole vector.
  void score(Room& room, std::size_t first, std::size_t some) const {
    const Float d;
    for (std::size_t j = 0; j < some; j += 4) {
      const std::uint16_t* row[4];
      Floats sum[4];
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < 4; ++r) {
        row[r] = keys + (first + std::min(j + r, some - 1)) * pitch;
        sum[r] = hn::Zero(d);
      }
      std::size_t at = 0;
      for (; at + kLanes <= n; at += kLanes) {
        const auto q = hn::Load(d, room.q + at);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < 4; ++r) sum[r] = hn::MulAdd(load_halves(row[r] + at), q, sum[r]);
      }
      if (at < n) {
        const auto q = hn::Load(d, room.q + at);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < 4; ++r)
          sum[r] = hn::MulAdd(load_first_halves(row[r] + at, n - at), q, sum[r]);
      }
      store_four_sums(d, sum[0], sum[1], sum[2], sum[3], room.p + j);
    }
    for (std::size_t j = 0; j < some; j += kLanes) {
      const auto score = finite_or_nan(hn::Load(d, room.p + j));
      const auto there = hn::FirstN(d, std::min(kLanes, some - j));
      hn::Store(hn::IfThenElse(there, score, set(-std::numeric_limits<float>::infinity())), d, room.p + j);
    }
  }

  /// o = factor * o + the values times their weights, kVectors vectors of each from element `at` on. Two sums each: one
  /// would wait for itself.
  template <std::size_t kVectors, bool kWhole>
  HWY_NOINLINE void add_values(Room& room, std::size_t first, std::size_t some, float factor,
                               std::size_t at) const {
    const Float d;
    Floats sum[2][kVectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[0][v] = hn::Mul(set(factor), hn::Load(d, room.o + at + v * kLanes));
      sum[1][v] = hn::Zero(d);
    }
    const std::uint16_t* row = values + first * pitch;
    const auto add = [&](std::size_t j, Floats(&to)[kVectors]) HWY_ATTR {
      const auto weight = set(room.p[j]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v)
        to[v] = hn::MulAdd(weight,
                           kWhole ? load_halves(row + j * pitch + at + v * kLanes)
                                  : load_first_halves(row + j * pitch + at, n - at),
                           to[v]);
    };
    std::size_t j = 0;
    for (; j + 2 <= some; j += 2) {
      add(j, sum[0]);
      add(j + 1, sum[1]);
    }
    if (j < some) add(j, sum[0]);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::Store(hn::Add(sum[0][v], sum[1][v]), d, room.o + at + v * kLanes);
  }

  void run() const {
    const Float d;
    Room room;
    auto bad = hn::Zero(d);  // NaN: of the query, or of values, whose products show it
    for (std::size_t at = 0; at < n; at += kLanes) {
      const auto q = load(query, at);
      bad = hn::Add(bad, hn::Sub(q, q));
      hn::Store(hn::Mul(q, set(scale)), d, room.q + at);
      hn::Store(hn::Zero(d), d, room.o + at);
    }
    float max = -std::numeric_limits<float>::infinity(), sum = 0;
    for (std::size_t first = 0; first < count; first += kKeys) {
      const std::size_t some = std::min(kKeys, count - first);
      score(room, first, some);
      auto high = set(max);
      for (std::size_t j = 0; j < some; j += kLanes) high = hn::Max(high, hn::Load(d, room.p + j));
      const float before = max;
      max = hn::GetLane(hn::MaxOfLanes(d, high));
      const float factor = hn::GetLane(exp_of_negative(set(before - max)));
      auto sums = hn::Zero(d);
      for (std::size_t j = 0; j < some; j += kLanes) {
        const auto weight = exp_of_negative(hn::Sub(hn::Load(d, room.p + j), set(max)));
        hn::Store(weight, d, room.p + j);
        sums = hn::Add(sums, weight);
      }
      sum = sum * factor + hn::GetLane(hn::SumOfLanes(d, sums));
      std::size_t at = 0;
      for (; at + 4 * kLanes <= n; at += 4 * kLanes) add_values<4, true>(room, first, some, factor, at);
      for (; at + kLanes <= n; at += kLanes) add_values<1, true>(room, first, some, factor, at);
      if (at < n) add_values<1, false>(room, first, some, factor, at);
    }
    for (std::size_t at = 0; at < n; at += kLanes) {
      const auto o = hn::Load(d, room.o + at);
      bad = hn::Add(bad, hn::Sub(o, o));
    }
    const float good = hn::AllFalse(d, hn::IsNaN(bad)) ? 1 : std::numeric_limits<float>::quiet_NaN();
    const auto share = set(good / sum);
    std::size_t at = 0;
    for (; at + kLanes <= n; at += kLanes) store_halves(hn::Mul(hn::Load(d, room.o + at), share), out + at);
    if (at < n) store_first_halves(hn::Mul(hn::Load(d, room.o + at), share), out + at, n - at);
    if (lse) *lse = (max + std::log(sum)) * good;
  }
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
