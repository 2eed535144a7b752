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

/// Lanes of a group whose values are scaled, and those of them that are so small that plain fmas do.
struct Scales {
  std::uint64_t small = 0, tiny = 0;
};

/// The lanes of one vector: those whose sums have to be rounded, and what the sums of the tiny ones begin at.
struct ScaledLanes {
  hn::Mask<Float> rounded, tiny;
  Floats origin;

  void set(Scales scales, std::size_t vector) {
    const Float d;
    HWY_ALIGN float rounds[kLanes], begins[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::size_t lane = vector * kLanes + i;
      const bool is_tiny = scales.tiny >> lane & 1;
      rounds[i] = (scales.small >> lane & 1) && !is_tiny ? 1.0F : 0.0F;
      begins[i] = is_tiny ? kTinyOrigin : 0.0F;
    }
    rounded = hn::Gt(hn::Load(d, rounds), hn::Zero(d));
    origin = hn::Load(d, begins);
    tiny = hn::Gt(origin, hn::Zero(d));
  }
};

/// The tiny lanes of one vector of the step whose lags begin at `row`, with the sign that every zero on the way has.
template <class Coefficient>
HWY_NOINLINE Floats step_signed(Coefficient coefficient, std::size_t order, std::size_t vector,
                                const float* row, Floats origin) {
  const Float d;
  Floats sum = origin, value = hn::Zero(d);
  for (std::size_t lag = order; lag-- > 0; row += kGroup) {
    const auto c = coefficient(lag, vector), y = hn::LoadU(d, row + vector * kLanes);
    sum = fused(c, y, sum);
    value = hn::CopySign(hn::Sub(sum, origin), fused(c, y, value));
  }
  return value;
}

/// A vector of sums less their origin. A zero has the sign of what was rounded to it: that of the last fma, or if that
/// gave nothing of those before.
template <class Coefficient>
HWY_INLINE Floats less_origin(Coefficient coefficient, std::size_t order, std::size_t vector,
                              const float* row, Floats before_last, Floats sum, const ScaledLanes& lanes) {
  const Float d;
  const auto value = hn::Sub(sum, lanes.origin);
  const auto zero = hn::And(lanes.tiny, hn::Eq(value, hn::Zero(d)));
  if (HWY_LIKELY(hn::AllFalse(d, zero))) return value;
  const float* newest = row + (order - 1) * kGroup + vector * kLanes;
  const auto near = fused(coefficient(0, vector), hn::LoadU(d, newest), hn::Sub(before_last, lanes.origin));
  if (hn::AllFalse(d, hn::And(zero, hn::Eq(near, hn::Zero(d)))))
    return hn::IfThenElse(zero, hn::CopySign(value, near), value);
  return hn::IfThenElse(zero, step_signed(coefficient, order, vector, row, lanes.origin), value);
}

/// What the lanes of a group need: nothing, an origin for those that are tiny, or rounding too.
enum class Need { nothing, origin, rounding };

/// Forecasts of the lanes of a group, kVectors vectors wide.
template <std::size_t kVectors, Need kNeed, class Coefficient>
class Lanes {
 public:
  Lanes(Coefficient coefficient, std::size_t order, Scales scales, float* y)
      : coefficient_(coefficient), order_(order), y_(y) {
    if constexpr (kNeed != Need::nothing) {
      for (std::size_t v = 0; v < kVectors; ++v) lanes_[v].set(scales, v);
    }
  }

  /// y[order + t, lane] from the rows above, for all t.
  HWY_INLINE void run(std::size_t steps) const {
    std::size_t t = 0;
    if (kAtOnce > 1 && order_ >= 2 * kAtOnce) {  // order 5 was 6 % slower
      for (; t + kAtOnce <= steps; t += kAtOnce) run_at_once(t);
    }
    for (; t < steps; ++t) {
      Floats sum[kVectors];
      begin(sum);
      finish(t, 0, sum);
    }
  }

 private:
  // Chains that overlap. By trial (Zen 5, orders of 34 to 41): one vector is 1.9 times as fast so, two are 1.2 times.
  static constexpr std::size_t kAtOnce = kVectors == 1 ? 4 : kVectors == 2 ? 2 : 1;

  HWY_INLINE const float* row(std::size_t number) const { return y_ + number * kGroup; }
  HWY_INLINE void begin(Floats (&sum)[kVectors]) const {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v)
      sum[v] = kNeed == Need::nothing ? hn::Zero(Float()) : lanes_[v].origin;
  }
  HWY_INLINE Floats add(Floats c, Floats value, Floats sum, std::size_t v) const {
    return kNeed == Need::rounding ? add_scaled(c, value, sum, lanes_[v].rounded) : fused(c, value, sum);
  }

  /// kAtOnce steps: a step needs the one before it for its newest lag alone, so all of them take their older ones together.
  HWY_INLINE void run_at_once(std::size_t t) const {
    Floats sum[kAtOnce][kVectors];
    HWY_UNROLL(4)
    for (auto& one : sum) begin(one);
    std::size_t taken = 0;
    for (; taken + kAtOnce <= order_; ++taken) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        const auto c = coefficient_(order_ - 1 - taken, v);
        HWY_UNROLL(4)
        for (std::size_t j = 0; j < kAtOnce; ++j)
          sum[j][v] = add(c, hn::LoadU(Float(), row(t + j + taken) + v * kLanes), sum[j][v], v);
      }
    }
    for (std::size_t j = 0; j < kAtOnce; ++j) finish(t + j, taken, sum[j]);
  }

  /// Step t, of which so many lags are in the sums.
  HWY_INLINE void finish(std::size_t t, std::size_t taken, Floats (&sum)[kVectors]) const {
    const Float d;
    Floats before[kVectors];
    for (; taken < order_; ++taken) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        if constexpr (kNeed != Need::nothing) before[v] = sum[v];
        sum[v] =
            add(coefficient_(order_ - 1 - taken, v), hn::LoadU(d, row(t + taken) + v * kLanes), sum[v], v);
      }
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      if constexpr (kNeed != Need::nothing)
        sum[v] = less_origin(coefficient_, order_, v, row(t), before[v], sum[v], lanes_[v]);
      hn::StoreU(sum[v], d, y_ + (order_ + t) * kGroup + v * kLanes);
    }
  }

  Coefficient coefficient_;
  std::size_t order_;
  float* y_;
  ScaledLanes lanes_[kVectors];
};

template <std::size_t kVectors, Need kNeed, class Coefficient>
HWY_NOINLINE void forecast_lanes(Coefficient coefficient, std::size_t order, std::size_t steps, Scales scales,
                                 float* y) {
  Lanes<kVectors, kNeed, Coefficient>(coefficient, order, scales, y).run(steps);
}

template <Need kNeed, class Coefficient>
void forecast_vectors(std::size_t vectors, Coefficient coefficient, std::size_t order, std::size_t steps,
                      Scales scales, float* y) {
  switch (vectors) {
    case 1:
      return forecast_lanes<1, kNeed>(coefficient, order, steps, scales, y);
    case 2:
      return forecast_lanes<2, kNeed>(coefficient, order, steps, scales, y);
    case 3:
      return forecast_lanes<3, kNeed>(coefficient, order, steps, scales, y);
    default:
      return forecast_lanes<4, kNeed>(coefficient, order, steps, scales, y);
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
  void rest_is_zero(std::size_t series, std::size_t t) const {
    std::fill(out + series * steps + t, out + (series + 1) * steps, 0.0F);
  }
};

/// What to do with the steps that follow: when to look again; 0: all of them are zero.
struct Outlook {
  std::size_t look;
  Scales scales;
};

/// The largest size of each lane in the rows since the last look.
void recent_sizes(const float* end, std::size_t order, std::size_t vectors, float* sizes) {
  const Float d;
  for (std::size_t v = 0; v < vectors; ++v) {
    auto largest = hn::Zero(d);
    for (std::size_t lag = 1; lag <= std::min(order, Small::kLook); ++lag)
      largest = hn::Max(largest, hn::Abs(hn::LoadU(d, end - lag * kGroup + v * kLanes)));
    hn::StoreU(largest, d, sizes + v * kLanes);
  }
}

/// Looks at the lanes of series from `first` on, whose rows end at `end`, and scales them as it finds them.
Outlook look_at_lanes(const Problem& p, std::size_t first, std::size_t count, float* end, Scales were) {
  Outlook next{.look = 64, .scales = were};
  float recent[kGroup];
  if (were.small != 0) recent_sizes(end, p.order, (count + kLanes - 1) / kLanes, recent);
  bool all_over = true;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const auto last = [&](std::size_t lag) -> float& { return *(end + lane - (lag + 1) * kGroup); };
    const float* c = p.model(first + lane);
    const std::uint64_t bit = std::uint64_t{1} << lane;
    const bool was = were.small & bit;
    const bool turns = was ? Small::ends(p.order, recent[lane], last) : Small::begins(c, p.order, last);
    if (turns) {
      for (std::size_t lag = 0; lag < p.order; ++lag)
        last(lag) = was ? unscaled(last(lag)) : scaled(last(lag));
      next.scales.small ^= bit;
    }
    const bool is_small = was != turns;
    const bool is_tiny = is_small && (were.tiny & bit ? Small::stays_tiny(recent[lane])
                                                      : Small::becomes_tiny(c, p.order, last));
    next.scales.tiny = is_tiny ? next.scales.tiny | bit : next.scales.tiny & ~bit;
    next.look = std::min(next.look, is_small ? Small::kLook : Small::look(last(0)));
    all_over = all_over && !is_small && Small::is_over(c, p.order, last);
  }
  if (all_over) next.look = 0;
  return next;
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
  const auto go_on = [&]<Need kNeed>(std::size_t steps, Scales scales, float* rows) {
    if (p.shared)
      return forecast_vectors<kNeed>(vectors, Shared{p.coefficients}, p.order, steps, scales, rows);
    forecast_vectors<kNeed>(vectors, Own{c}, p.order, steps, scales, rows);
  };
  Outlook now{.look = Small::look(1), .scales = {}};
  for (std::size_t t = 0; t < p.steps;) {
    const std::size_t steps = std::min(now.look, p.steps - t);
    float *rows = y + t * kGroup, *out = p.out + first * p.steps + t;
    if (!kMayScale || now.scales.small == 0) {
      go_on.template operator()<Need::nothing>(steps, now.scales, rows);
    } else if (now.scales.small == now.scales.tiny) {
      go_on.template operator()<Need::origin>(steps, now.scales, rows);
    } else {
      go_on.template operator()<Need::rounding>(steps, now.scales, rows);
    }
    transpose(rows + p.order * kGroup, kGroup, steps, count, out, p.steps);
    for (std::uint64_t left = now.scales.small; left != 0; left &= left - 1) {
      unscale(out + static_cast<std::size_t>(std::countr_zero(left)) * p.steps, steps);
    }
    t += steps;
    if (t == p.steps) return;
    now = look_at_lanes(p, first, count, y + (p.order + t) * kGroup, now.scales);
    if (now.look > 0) continue;
    for (std::size_t lane = 0; lane < count; ++lane) p.rest_is_zero(first + lane, t);
    return;
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
    if (t < p.steps && Small::is_over(p.model(series), p.order, last)) return p.rest_is_zero(series, t);
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
    if (kMayScale && small) {
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
    std::copy(y + written, y + end, out + written);
    if (small) unscale(out + written, end - written);
    written = end;
    if (small ? Small::ends(p.order, last) : Small::begins(c, p.order, last)) {
      for (std::size_t lag = 0; lag < p.order; ++lag)
        last(lag) = small ? unscaled(last(lag)) : scaled(last(lag));
      small = !small;
    }
    if (t < p.steps && !small && Small::is_over(c, p.order, last)) return p.rest_is_zero(series, t);
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
