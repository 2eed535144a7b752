// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where to measure next on the way to a boundary.
#include <algorithm>
#include <cmath>

#include "model/curves.h"

namespace fulcrum::model {
namespace {

const CurvePoint* at(std::span<const CurvePoint> curve, double n) {
  const auto found = std::find_if(curve.begin(), curve.end(), [&](const CurvePoint& p) { return p.n == n; });
  return found == curve.end() ? nullptr : &*found;
}

// 1, 2, 4 .. 1024, then by fours; always the end of the range.
std::vector<double> ladder(const Search& search) {
  std::vector<double> sizes;
  for (double n = 1; n < search.to; n *= n < 1024 ? 2 : 4) {
    if (n >= search.from) sizes.push_back(n);
  }
  sizes.push_back(search.to);
  return sizes;
}

bool told_apart(const CurvePoint& cpu, const CurvePoint& gpu) {
  return gpu.high < cpu.low || cpu.high < gpu.low;
}

struct Pair {
  double n = 0;
  bool wins = false, clear = false;
};

}  // namespace

std::optional<double> next_size(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu,
                                const Search& search) {
  std::vector<Pair> pairs;
  for (const CurvePoint& c : cpu) {
    const CurvePoint* g = at(gpu, c.n);
    if (g && (c.measured || g->measured)) pairs.push_back({c.n, g->seconds < c.seconds, told_apart(c, *g)});
  }
  if (static_cast<int>(pairs.size()) >= search.most) return std::nullopt;
  Search range = search;
  for (const auto& curve : {cpu, gpu}) {
    const auto predicted = [](const CurvePoint& p) { return !p.measured; };
    if (std::none_of(curve.begin(), curve.end(), predicted)) continue;
    // A predicted curve ends where the op or the device's memory ends: nothing can be measured beyond.
    const auto [least, most] = std::minmax_element(
        curve.begin(), curve.end(), [](const CurvePoint& a, const CurvePoint& b) { return a.n < b.n; });
    range.from = std::max(range.from, least->n);
    range.to = std::min(range.to, most->n);
  }
  for (const double n : ladder(range)) {
    if (std::none_of(pairs.begin(), pairs.end(), [&](const Pair& p) { return p.n == n; })) return n;
  }
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.n < b.n; });
  // The widest open boundary first. Two sizes of which neither is clear lie inside the noise: halving them again would
  // find a point of the noise.
  double widest = search.ratio;
  std::optional<double> next;
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    const Pair &a = pairs[i - 1], &b = pairs[i];
    if (a.wins == b.wins || (!a.clear && !b.clear)) continue;
    const double middle = std::round(std::sqrt(a.n * b.n));
    if (b.n / a.n <= widest || middle <= a.n || middle >= b.n) continue;
    widest = b.n / a.n;
    next = middle;
  }
  return next;
}

}  // namespace fulcrum::model
