// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast two ways that give the bits of the plain chain. Several series: a lane a series, transposed on the way
// in and out. One series: a lane a step, or the plain chain itself if its order is short. Both look every few steps
// whether a series has become small, and go on with such a one in other units.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/ar_forecast.cpp"
#include <fulcrum/ops/ar_forecast.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <type_traits>

#include "backends/simd/forecast-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/transpose-inl.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

/// Series by lanes: vectors whose chains overlap.
constexpr std::size_t kGroupVectors = 4;
constexpr std::size_t kGroup = kGroupVectors * kLanes;
static_assert(kGroup <= 64);

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

/// y[order + t, lane] from the rows above, kVectors vectors wide; lanes whose bit of `small` is set are scaled.
template <std::size_t kVectors, bool kAnySmall, class Coefficient>
HWY_NOINLINE void forecast_lanes(Coefficient coefficient, std::size_t order, std::size_t steps,
                                 std::uint64_t small, float* y) {
  const Float d;
  hn::Mask<Float> scaled[kVectors];
  if constexpr (kAnySmall) {
    HWY_ALIGN float lanes[kLanes];
    for (auto& mask : scaled) {
      for (float& lane : lanes) lane = static_cast<float>(small & 1), small >>= 1;
      mask = hn::Gt(hn::Load(d, lanes), hn::Zero(d));
    }
  }
  for (std::size_t t = 0; t < steps; ++t) {
    Floats sum[kVectors];
    HWY_UNROLL(4)
    for (auto& vector : sum) vector = hn::Zero(d);
    const float* row = y + t * kGroup;
    for (std::size_t lag = order; lag-- > 0; row += kGroup) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto c = coefficient(lag, v), value = hn::LoadU(d, row + v * kLanes);
        if constexpr (kAnySmall) {
          sum[v] = add_scaled(c, value, sum[v], scaled[v]);
        } else {
          sum[v] = fused(c, value, sum[v]);
        }
      }
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(sum[v], d, y + (order + t) * kGroup + v * kLanes);
    }
  }
}

template <bool kAnySmall, class Coefficient>
void forecast_vectors(std::size_t vectors, Coefficient coefficient, std::size_t order, std::size_t steps,
                      std::uint64_t small, float* y) {
  switch (vectors) {
    case 1:
      return forecast_lanes<1, kAnySmall>(coefficient, order, steps, small, y);
    case 2:
      return forecast_lanes<2, kAnySmall>(coefficient, order, steps, small, y);
    case 3:
      return forecast_lanes<3, kAnySmall>(coefficient, order, steps, small, y);
    default:
      return forecast_lanes<4, kAnySmall>(coefficient, order, steps, small, y);
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
  /// The value of lag l + 1 at step t, once the steps before are in `out`.
  float last(std::size_t series, std::size_t t, std::size_t lag) const {
    return lag < t ? out[series * steps + t - 1 - lag] : recent(series)[order + t - 1 - lag];
  }
};

/// Looks at the lanes of series from `first` on, whose rows end at `end`: `small` becomes those that are scaled. When
/// to look again.
std::size_t look_at_lanes(const Problem& p, std::size_t first, std::size_t count, float* end,
                          std::uint64_t& small) {
  std::size_t again = Small::look(1);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const auto last = [&](std::size_t lag) -> float& { return *(end + lane - (lag + 1) * kGroup); };
    const bool was = small >> lane & 1;
    const bool turns = was ? Small::ends(p.order, last) : Small::begins(p.model(first + lane), p.order, last);
    if (turns) {
      for (std::size_t lag = 0; lag < p.order; ++lag)
        last(lag) = was ? unscaled(last(lag)) : scaled(last(lag));
      small ^= std::uint64_t{1} << lane;
    }
    again = std::min(again, was != turns ? Small::kLook : Small::look(last(0)));
  }
  return again;
}

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
  if (!p.shared) transpose(p.model(first), p.order, count, p.order, c, kGroup);
  const auto go_on = [&](auto any_small, std::size_t steps, std::uint64_t small, float* rows) {
    if (p.shared)
      return forecast_vectors<any_small>(vectors, Shared{p.coefficients}, p.order, steps, small, rows);
    forecast_vectors<any_small>(vectors, Own{c}, p.order, steps, small, rows);
  };
  std::uint64_t small = 0;  // the lanes that are scaled
  std::size_t look = Small::look(1);
  for (std::size_t t = 0; t < p.steps;) {
    const std::size_t steps = std::min(look, p.steps - t);
    float *rows = y + t * kGroup, *out = p.out + first * p.steps + t;
    if (kSubnormalsAreSlow && small != 0) {
      go_on(std::true_type(), steps, small, rows);
    } else {
      go_on(std::false_type(), steps, small, rows);
    }
    transpose(rows + p.order * kGroup, kGroup, steps, count, out, p.steps);
    for (std::uint64_t left = small; left != 0; left &= left - 1) {
      float* line = out + static_cast<std::size_t>(std::countr_zero(left)) * p.steps;
      std::transform(line, line + steps, line, unscaled);
    }
    t += steps;
    if (t < p.steps) look = look_at_lanes(p, first, count, y + (p.order + t) * kGroup, small);
  }
}

/// A chain a step, for steps [t, end): lags reach into the history until the forecasts have replaced it.
HWY_INLINE void forecast_plain(const float* history_end, const float* c, std::size_t order, std::size_t t,
                               std::size_t end, float* y) {
  for (; t < end; ++t) {
    float sum = 0;
    std::size_t lag = order;
    for (; lag > t; --lag) sum = std::fma(c[lag - 1], *(history_end + t - lag), sum);
    for (; lag > 0; --lag) sum = std::fma(c[lag - 1], y[t - lag], sum);
    y[t] = sum;
  }
}

void forecast_plain(const Problem& p, std::size_t series, std::size_t t, std::size_t end) {
  forecast_plain(p.recent(series) + p.order, p.model(series), p.order, t, end, p.out + series * p.steps);
}

/// Steps from t on of a series that begins to be small there, for as long as it is; where that ends.
std::size_t forecast_small(const Problem& p, std::size_t series, std::size_t t) {
  float y[kLongOrder + Small::kLook];  // scaled
  const float* c = p.model(series);
  float* out = p.out + series * p.steps;
  for (std::size_t i = 0; i < p.order; ++i) y[i] = scaled(p.last(series, t, p.order - 1 - i));
  while (t < p.steps) {
    const std::size_t steps = std::min(Small::kLook, p.steps - t);
    for (std::size_t i = 0; i < steps; ++i) {
      float sum = 0;
      for (std::size_t lag = p.order; lag > 0; --lag) {
        sum = add_scaled(c[lag - 1], y[p.order + i - lag], sum);
      }
      y[p.order + i] = sum;
      out[t + i] = unscaled(sum);
    }
    t += steps;
    std::copy(y + steps, y + steps + p.order, y);
    if (Small::ends(p.order, [&](std::size_t lag) { return y[p.order - 1 - lag]; })) break;
  }
  return t;
}

HWY_NOINLINE void forecast_short(const Problem& p, std::size_t series) {
  for (std::size_t t = 0, look = Small::look(1); t < p.steps; look = Small::look(p.last(series, t, 0))) {
    const std::size_t end = std::min(p.steps, t + look);
    forecast_plain(p, series, t, end);
    t = end;
    if (t == p.steps) return;
    const auto last = [&](std::size_t lag) { return p.last(series, t, lag); };
    if (Small::begins(p.model(series), p.order, last)) t = forecast_small(p, series, t);
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
  bool small = false;
  std::size_t t = 0, written = 0, look = Small::look(1);
  const auto last = [&](std::size_t lag) -> float& { return *(y + t - 1 - lag); };
  while (t < p.steps) {
    if (kSubnormalsAreSlow && small) {
      static_assert(kLanes <= Small::kLook);
      forecast_block<ScaledChain, 1>(c, p.order, y + t);
      t += kLanes;
    } else if (p.order >= kVeryLongOrder && t + kOpenVectors * kLanes <= p.steps) {
      forecast_block<Chain, kOpenVectors>(c, p.order, y + t);
      t += kOpenVectors * kLanes;
    } else {
      forecast_block<Chain, 1>(c, p.order, y + t);
      t += kLanes;
    }
    if (t < look && t < p.steps) continue;
    float* out = p.out + series * p.steps;
    const std::size_t end = std::min(t, p.steps);
    if (small) {
      std::transform(y + written, y + end, out + written, unscaled);
    } else {
      std::copy(y + written, y + end, out + written);
    }
    written = end;
    if (small ? Small::ends(p.order, last) : Small::begins(c, p.order, last)) {
      for (std::size_t lag = 0; lag < p.order; ++lag)
        last(lag) = small ? unscaled(last(lag)) : scaled(last(lag));
      small = !small;
    }
    look = t + (small ? kLanes : Small::look(last(0)));
  }
}

/// The way of one series alone, which needs no memory unless its order is long.
void forecast_one(const Problem& p, std::size_t series) {
  if (p.order < kLongOrder) {
    if (p.steps <= Small::look(1)) return forecast_plain(p, series, 0, p.steps);
    return forecast_short(p, series);
  }
  float* memory = kLanes > 1 ? workspace(long_floats(p)) : nullptr;
  if (memory) return forecast_long(p, series, memory);
  forecast_plain(p, series, 0, p.steps);
}

/// Whether so many series are faster one by one, a lane a step, than together, where each step waits for its whole chain.
/// By trial: on AVX2 together they take as long as 2 of order 24, 5 of 64, 10 of 128, 16 of 256.
bool are_apart(std::size_t order, std::size_t count) {
  return count == 1 || (order >= kLongOrder && count <= 16 && 96 * count <= order * kLanes);
}

void forecast(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const Problem p(a);
  const auto first = static_cast<std::size_t>(begin), last = static_cast<std::size_t>(end);
  for (std::size_t s = first; s < last && p.steps > 0; s += kGroup) {
    const std::size_t count = std::min(kGroup, last - s);
    const bool apart = are_apart(p.order, count);
    float* memory = apart ? nullptr : workspace((2 * p.order + p.steps) * kGroup);
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
  const std::int64_t each = ops::ar_series(*a);
  (HWY_DYNAMIC_DISPATCH(forecast))(*a, begin * each, std::min(end * each, a->dim[0]));
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
