// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// ar_forecast: one chain of fmas a step, oldest lag first. Compiled twice on x86: where the CPU has fma the chain is
// made of that instruction, elsewhere of the C library's, which gives the same bits several times slower.
#include <fulcrum/ops/ar_forecast.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kHistory, kCoefficients, kOut };
enum Dim { kSeries, kLength, kOrder, kSteps, kModels };

/// y[t] for t in [0, steps): lags reach into the history until the forecasts have replaced it.
[[gnu::always_inline]] inline void forecast(const float* history_end, const float* c, std::int64_t order,
                                            float* y, std::int64_t steps) {
  for (std::int64_t t = 0; t < steps; ++t) {
    float sum = 0;
    std::int64_t lag = order - 1;
    for (; lag >= t; --lag) sum = std::fma(c[lag], history_end[t - 1 - lag], sum);
    for (; lag >= 0; --lag) sum = std::fma(c[lag], y[t - 1 - lag], sum);
    y[t] = sum;
  }
}

[[gnu::always_inline]] inline void forecast_series(const fulcrum_args& a, std::int64_t first,
                                                   std::int64_t last) {
  const std::int64_t order = a.dim[kOrder], steps = a.dim[kSteps];
  for (std::int64_t s = first; s < last; ++s) {
    const float* c = a.in<float>(kCoefficients) + (a.dim[kModels] == 1 ? 0 : s * order);
    forecast(a.in<float>(kHistory) + (s + 1) * a.dim[kLength], c, order, a.out<float>(kOut) + s * steps,
             steps);
  }
}

using Forecast = void (*)(const fulcrum_args&, std::int64_t, std::int64_t);

void forecast_baseline(const fulcrum_args& a, std::int64_t first, std::int64_t last) {
  forecast_series(a, first, last);
}

#if defined(__x86_64__) && !defined(__FMA__)
[[gnu::target("fma")]] void forecast_fma(const fulcrum_args& a, std::int64_t first, std::int64_t last) {
  forecast_series(a, first, last);
}

Forecast chosen() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("fma") ? forecast_fma : forecast_baseline;
}
#else
Forecast chosen() { return forecast_baseline; }
#endif

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  static const Forecast best = chosen();
  const std::int64_t each = ops::ar_series(*a);
  best(*a, begin * each, std::min(end * each, a->dim[kSeries]));
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) partial(a, 0, 0, ops::ar_pieces(*a), nullptr);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> ar_forecast() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
