// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast two ways that give the bits of the plain chain. Several series: a lane a series, transposed on the way
// in and out. One series: a lane a step; all lanes take the value of one time after the other, oldest first, each with
// its own lag's coefficient, and a step that is complete is handed to the steps behind it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/ar_forecast.cpp"
#include <fulcrum/ops/ar_forecast.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/simd/fused-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

/// Series by lanes: vectors whose chains overlap.
constexpr std::size_t kGroupVectors = 4;
constexpr std::size_t kGroup = kGroupVectors * kLanes;
static_assert(ops::kArSeries % kGroup == 0);

/// to[j * to_stride + i] = from[i * from_stride + j] for i < rows, j < columns.
HWY_INLINE void transpose(const float* from, std::size_t from_stride, std::size_t rows, std::size_t columns,
                          float* to, std::size_t to_stride) {
  std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> pairs;
  for (; i + 4 <= rows; i += 4) {
    std::size_t j = 0;
    for (; j + 4 <= columns; j += 4) {
      const float* at = from + i * from_stride + j;
      const auto a = hn::LoadU(d, at), b = hn::LoadU(d, at + from_stride);
      const auto c = hn::LoadU(d, at + 2 * from_stride), e = hn::LoadU(d, at + 3 * from_stride);
      const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
      const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
      const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
      const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
      float* out = to + j * to_stride + i;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, out);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, out + to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, out + 3 * to_stride);
    }
    for (; j < columns; ++j) {
      for (std::size_t r = i; r < i + 4; ++r) to[j * to_stride + r] = from[r * from_stride + j];
    }
  }
#endif
  for (; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
  }
}

/// Coefficients of one lag: the same for all series, or a row of the transposed ones.
struct Shared {
  const float* c;
  HWY_INLINE Floats operator()(std::size_t lag, std::size_t) const { return hn::Set(Float(), c[lag]); }
};
struct Own {
  const float* c;  // [order, kGroup]
  HWY_INLINE Floats operator()(std::size_t lag, std::size_t vector) const {
    return hn::LoadU(Float(), c + lag * kGroup + vector * kLanes);
  }
};

/// y[order + t, lane] from the rows above, kVectors vectors wide.
template <std::size_t kVectors, class Coefficient>
HWY_NOINLINE void forecast_lanes(Coefficient coefficient, std::size_t order, std::size_t steps, float* y) {
  const Float d;
  for (std::size_t t = 0; t < steps; ++t) {
    Floats sum[kVectors];
    HWY_UNROLL(4)
    for (auto& vector : sum) vector = hn::Zero(d);
    const float* row = y + t * kGroup;
    for (std::size_t lag = order; lag-- > 0; row += kGroup) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        sum[v] = fused(coefficient(lag, v), hn::LoadU(d, row + v * kLanes), sum[v]);
      }
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[v], d, y + (order + t) * kGroup + v * kLanes);
    }
  }
}

template <class Coefficient>
void forecast_vectors(std::size_t vectors, Coefficient coefficient, std::size_t order, std::size_t steps,
                      float* y) {
  switch (vectors) {
    case 1:
      return forecast_lanes<1>(coefficient, order, steps, y);
    case 2:
      return forecast_lanes<2>(coefficient, order, steps, y);
    case 3:
      return forecast_lanes<3>(coefficient, order, steps, y);
    default:
      return forecast_lanes<4>(coefficient, order, steps, y);
  }
}

struct Problem {
  const float *history, *coefficients;
  float* out;
  std::size_t length, order, steps;
  bool shared;

  explicit Problem(const fulcrum_args& a)
      : history(a.in<float>(0)),
        coefficients(a.in<float>(1)),
        out(a.out<float>(2)),
        length(static_cast<std::size_t>(a.dim[1])),
        order(static_cast<std::size_t>(a.dim[2])),
        steps(static_cast<std::size_t>(a.dim[3])),
        shared(a.dim[4] == 1) {}

  const float* recent(std::size_t series) const { return history + (series + 1) * length - order; }
  const float* model(std::size_t series) const { return coefficients + (shared ? 0 : series * order); }
};

/// Up to kGroup series from `first` on. `memory` holds order + steps rows, and as many for coefficients as there are
/// lags.
void forecast_group(const Problem& p, std::size_t first, std::size_t count, float* memory) {
  float* y = memory;
  float* c = memory + (p.order + p.steps) * kGroup;
  const std::size_t vectors = (count + kLanes - 1) / kLanes;
  if (count < vectors * kLanes) {  // lanes that no series fills
    std::fill(y, y + p.order * kGroup, 0.0F);
    if (!p.shared) std::fill(c, c + p.order * kGroup, 0.0F);
  }
  transpose(p.recent(first), p.length, count, p.order, y, kGroup);
  if (p.shared) {
    forecast_vectors(vectors, Shared{p.coefficients}, p.order, p.steps, y);
  } else {
    transpose(p.model(first), p.order, count, p.order, c, kGroup);
    forecast_vectors(vectors, Own{c}, p.order, p.steps, y);
  }
  transpose(y + p.order * kGroup, kGroup, p.steps, count, p.out + first * p.steps, p.steps);
}

/// Vectors of steps of one series that are open at once: with four, the fmas of a time overlap.
constexpr std::size_t kOpenVectors = 4;
// From here on lanes over steps beat the plain chain, whose fmas of different steps overlap by themselves; and no
// step of a block has a lag beyond the order within the block itself.
constexpr std::size_t kLongOrder = std::max<std::size_t>(24, kLanes);
constexpr std::size_t kVeryLongOrder = std::max<std::size_t>(64, kOpenVectors* kLanes);

/// Lanes [0, n): n may be anything.
HWY_INLINE hn::Mask<Float> first_lanes(std::ptrdiff_t n) {
  return hn::FirstN(Float(), static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(n, 0, kLanes)));
}

HWY_INLINE Floats broadcast(Floats v, std::size_t lane) {
#if HWY_TARGET == HWY_SCALAR
  (void)lane;
  return v;
#else
  const hn::RebindToSigned<Float> di;
  return hn::TableLookupLanes(v, hn::IndicesFromVec(Float(), hn::Set(di, static_cast<std::int32_t>(lane))));
#endif
}

/// The next kVectors * kLanes steps of one series; y[-1], y[-2], ... are the values so far. Lane j of vector v is step
/// v * kLanes + j: a time s reaches it with lag v * kLanes + j - 1 - s. Behind the coefficients there are zeros.
template <std::size_t kVectors>
HWY_NOINLINE void forecast_block(const float* c, std::size_t order, float* y) {
  const Float d;
  const auto p = static_cast<std::ptrdiff_t>(order);
  constexpr auto kBlock = static_cast<std::ptrdiff_t>(kVectors * kLanes);
  Floats sum[kVectors];
  HWY_UNROLL(4)
  for (auto& vector : sum) vector = hn::Zero(d);
  std::ptrdiff_t s = -p;
  for (; s < kBlock - 1 - p; ++s) {  // the oldest times are beyond the last lag of some lanes
    const auto value = hn::Set(d, y[s]);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::ptrdiff_t lag = static_cast<std::ptrdiff_t>(v * kLanes) - 1 - s;
      const auto added = fused(hn::LoadU(d, c + lag), value, sum[v]);
      sum[v] = hn::IfThenElse(first_lanes(p - lag), added, sum[v]);
    }
  }
  for (; s < 0; ++s) {
    const auto value = hn::Set(d, y[s]);
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[v] = fused(hn::LoadU(d, c - s - 1 + v * kLanes), value, sum[v]);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t w = 0; w < kVectors; ++w) {
    // A lane is complete when all before it are, and then goes to all behind it. In front of the coefficients there is
    // room to read, and lanes that got something from there are put back.
    for (std::size_t lane = 0; lane < kLanes; ++lane, ++s) {
      const auto value = broadcast(sum[w], lane);
      const auto added = fused(hn::LoadU(d, c - 1 - lane), value, sum[w]);
      sum[w] = hn::IfThenElse(hn::FirstN(d, lane + 1), sum[w], added);
      HWY_UNROLL(4)
      for (std::size_t v = w + 1; v < kVectors; ++v) {
        sum[v] = fused(hn::LoadU(d, c + (v - w) * kLanes - 1 - lane), value, sum[v]);
      }
    }
    hn::StoreU(sum[w], d, y + w * kLanes);
  }
}

/// A chain a step, in memory of the caller: lags reach into the history until the forecasts have replaced it.
void forecast_plain(const float* history_end, const float* c, std::size_t order, std::size_t steps,
                    float* y) {
  for (std::size_t t = 0; t < steps; ++t) {
    float sum = 0;
    std::size_t lag = order;
    for (; lag > t; --lag) sum = std::fma(c[lag - 1], *(history_end + t - lag), sum);
    for (; lag > 0; --lag) sum = std::fma(c[lag - 1], y[t - lag], sum);
    y[t] = sum;
  }
}

/// Floats that forecast_long() needs.
std::size_t long_floats(const Problem& p) { return 2 * p.order + p.steps + 4 * kGroup; }

void forecast_long(const Problem& p, std::size_t series, float* memory) {
  float* c = memory + kLanes;
  std::fill(memory, c, 0.0F);
  std::copy(p.model(series), p.model(series) + p.order, c);
  std::fill(c + p.order, c + p.order + kGroup, 0.0F);
  float* y = c + p.order + kGroup + p.order;
  std::copy(p.recent(series), p.recent(series) + p.order, y - p.order);
  std::size_t t = 0;
  if (p.order >= kVeryLongOrder) {
    for (; t + kOpenVectors * kLanes <= p.steps; t += kOpenVectors * kLanes) {
      forecast_block<kOpenVectors>(c, p.order, y + t);
    }
  }
  for (; t < p.steps; t += kLanes) forecast_block<1>(c, p.order, y + t);
  std::copy(y, y + p.steps, p.out + series * p.steps);
}

/// The way of one series alone, which needs no memory unless its order is long.
void forecast_one(const Problem& p, std::size_t series) {
  float* memory = p.order >= kLongOrder && kLanes > 1 ? workspace(long_floats(p)) : nullptr;
  if (memory) return forecast_long(p, series, memory);
  forecast_plain(p.recent(series) + p.order, p.model(series), p.order, p.steps, p.out + series * p.steps);
}

void forecast(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const Problem p(a);
  const auto first = static_cast<std::size_t>(begin), last = static_cast<std::size_t>(end);
  for (std::size_t s = first; s < last && p.steps > 0; s += kGroup) {
    const std::size_t count = std::min(kGroup, last - s);
    float* memory = count > 1 ? workspace((2 * p.order + p.steps) * kGroup) : nullptr;
    if (memory) {
      forecast_group(p, s, count, memory);
    } else {
      for (std::size_t one = s; one < s + count; ++one) forecast_one(p, one);
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(forecast);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto all = &(HWY_DYNAMIC_DISPATCH(forecast));
  for (std::int64_t call = 0; call < count; ++call) all(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(forecast))(*a, begin * ops::kArSeries, std::min(end * ops::kArSeries, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> ar_forecast() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
