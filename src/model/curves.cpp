// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See curves.h.
#include "model/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

double pick(const CurvePoint& point, Bound bound) {
  const double value = bound == Bound::low ? point.low : bound == Bound::high ? point.high : point.seconds;
  return value > 0 ? value : point.seconds;
}

}  // namespace

double seconds_at(std::span<const CurvePoint> curve, double n, Bound bound) {
  const auto after =
      std::lower_bound(curve.begin(), curve.end(), n, [](const CurvePoint& p, double x) { return p.n < x; });
  if (after == curve.end()) return pick(curve.back(), bound);
  if (after->n == n || after == curve.begin()) return pick(*after, bound);
  const CurvePoint &a = *(after - 1), &b = *after;
  const double share = std::log(n / a.n) / std::log(b.n / a.n);
  return std::exp((1 - share) * std::log(pick(a, bound)) + share * std::log(pick(b, bound)));
}

std::vector<double> common_sizes(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu) {
  if (cpu.empty() || gpu.empty()) return {};
  const double from = std::max(cpu.front().n, gpu.front().n), to = std::min(cpu.back().n, gpu.back().n);
  std::vector<double> sizes;
  for (const auto& curve : {cpu, gpu}) {
    for (const CurvePoint& p : curve) {
      if (p.n >= from && p.n <= to) sizes.push_back(p.n);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<BreakEven::Window> winning_windows(std::span<const CurvePoint> cpu, Bound cpu_bound,
                                               std::span<const CurvePoint> gpu, Bound gpu_bound) {
  std::vector<BreakEven::Window> windows;
  double before_n = 0, before = 0;
  bool open = false;
  for (const double n : common_sizes(cpu, gpu)) {
    const double margin = std::log(seconds_at(cpu, n, cpu_bound) / seconds_at(gpu, n, gpu_bound));
    const bool wins = margin > 0;
    if (wins != open) {
      double edge = n;
      if (before_n > 0) edge = before_n * std::pow(n / before_n, before / (before - margin));
      if (wins) {
        windows.push_back({edge, edge});
      } else {
        windows.back().to = edge;
      }
      open = wins;
    }
    if (open) windows.back().to = n;
    before_n = n;
    before = margin;
  }
  return windows;
}

std::string size_text(double n) {
  const auto with = [](double value, const char* unit) {
    return value >= 100 ? fmt::format("{:.0f}{}", value, unit) : fmt::format("{:.3g}{}", value, unit);
  };
  if (n >= 999.5e6) return with(n / 1e9, "G");
  if (n >= 999.5e3) return with(n / 1e6, "M");
  if (n >= 10e3) return with(n / 1e3, "K");
  return fmt::format("{:.0f}", n);
}

}  // namespace fulcrum::model
