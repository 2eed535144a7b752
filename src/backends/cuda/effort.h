// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What calls of kernels take whose times the op's work does not show: waves of CTAs, tiles that are half empty, steps in a
// row, paths for some sizes. Each is the closed form of its kernel, in nanoseconds of a call with its launch, fitted to
// the times of some hundred shapes on an H200; of another GPU they are off by a factor that a calibration finds.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "backends/cuda/lstm_effort.h"

namespace fulcrum::backends::cuda::effort {

inline constexpr double kSms = 132;
inline double tiles_of(double size, double tile) { return std::ceil(size / tile); }

/// ar_forecast: steps in a row, each as long as the sums that a thread has open. The history goes in before them: value by
/// value where a warp has a series, and where the order is below what the thread has room for.
inline double forecast(double series, double order, double steps) {
  constexpr double kCall = 10550, kHistory = 49;
  if (order <= 32) {
    const double step = order <= 4 ? 31 : order <= 8 ? 31.5 : order <= 16 ? 38 : 47;
    return kCall + std::max(1.0, series / (32 * 4 * kSms)) * steps * step + kHistory * order;
  }
  const double step = order <= 256   ? 23.3
                      : order <= 512 ? 27.1
                                     : 38.5,
               known = order <= 256   ? 14.6
                       : order <= 512 ? 24.6
                                      : 34.7;
  return kCall + std::max(1.0, series / (4 * kSms)) *
                     (8 * tiles_of(steps, 8) * step + 32 * tiles_of(order, 32) * known);
}

struct Attention {
  double heads, queries, keys, d;  // heads of all batches
  bool causal;
  double width() const { return d / 64; }
};

/// Warpgroups: what does not run at once waits for a whole CTA.
inline double attention_groups(const Attention& a, double rows, double cluster) {
  const double ctas = tiles_of(a.queries, rows) * a.heads * cluster, per_sm = a.d > 64 ? 1 : 2;
  const double waiting = std::max(0.0, ctas / kSms - per_sm);
  return 12200 + 780 * ctas / kSms + (a.d > 64 ? 3700 : 1450) * waiting + (cluster > 1 ? 1700 : 0) +
         (cluster > 2 ? 330 : 0);
}

/// Rounds of all warps of a cluster, `parts` of them with `step` keys each; `rows` of 16 queries.
inline double attention_split(const Attention& a, double rows, double step, double parts, double cluster) {
  const double round = tiles_of(a.keys, parts * step) * step * a.width(),
               ctas = tiles_of(a.queries, 16 * rows) * a.heads;
  return 10300 + 24 * round + 10.8 * ctas * parts * rows * round / kSms + (cluster > 1 ? 980 : 0);
}
inline double attention_staged(const Attention& a, double rows, double step, double parts) {
  const double round = tiles_of(a.keys, parts * step) * step * a.width(),
               ctas = tiles_of(a.queries, 16 * rows) * a.heads;
  return 11900 + 13.8 * round + 5.3 * ctas * parts * rows * round / kSms;
}

/// A CTA of 64 queries walks along all keys it sees.
inline double attention_flash(const Attention& a) {
  const double ctas = tiles_of(a.queries, 64) * a.heads / kSms,
               seen = a.causal ? a.keys - a.queries / 2 : a.keys;
  return 9900 + 1430 * tiles_of(a.keys, 64) * a.width() + ctas * (1150 + 3.3 * seen * a.width());
}

/// The library's: tiles of 128.
inline double attention_library(const Attention& a) {
  const double walk = tiles_of(a.keys, 128) * a.width();
  return 21400 + 730 * walk + 3690 * tiles_of(a.queries, 128) * a.heads * walk / kSms;
}

struct Search {
  double queries, rows, d, k;
};

/// Rows past a few queries, in warps: few of the best in registers.
inline double stream_few(const Search& s) {
  constexpr double kAtOnce = 8 * kSms, kWarps = 8;  // CTAs on the device, warps of each
  const double beside = s.queries >= 4 ? 4 : 1, groups = tiles_of(s.queries, beside);
  const double chunks = std::max(1.0, std::min(kAtOnce / groups, tiles_of(s.rows, kWarps)));
  const double turns = std::max(1.0, groups * chunks / kAtOnce), rows = s.rows / chunks / kWarps;
  const double loads = tiles_of(s.d, std::fmod(s.d, 4) == 0 ? 128 : 32);
  const double entered =
      rows <= s.k ? rows : s.k * (1 + std::log(rows / s.k));  // of a warp's rows, into its list
  return 10580 + turns * rows * (1485 + beside * (288 + 53 * loads)) +
         turns * beside * entered * (529 + 7.6 * s.k) + chunks * (4.5 + 0.18 * s.k) + 76 * s.k;
}

/// The same with lists in shared memory, which are sorted when they are full.
inline double stream_many(const Search& s) {
  const double capacity = std::max(512.0, 2 * std::exp2(std::ceil(std::log2(s.k))));
  const bool shared = 4 * s.queries * s.rows * s.d > 0x1p28 || 2 * tiles_of(s.queries, 4) >= kSms;
  constexpr double kAtOnce = 8 * kSms, kWarps = 8;
  const double beside = s.queries >= 4 && shared ? 4 : 1, groups = tiles_of(s.queries, beside);
  const double chunks = std::max(1.0, std::min(kAtOnce / groups, tiles_of(s.rows, kWarps)));
  const double turns = std::max(1.0, groups * chunks / kAtOnce), of_chunk = s.rows / chunks;
  const double loads = tiles_of(s.d, std::fmod(s.d, 4) == 0 ? 128 : 32);
  const double depth = std::log2(capacity), sort = depth * depth * tiles_of(capacity, 512);
  const double entered = of_chunk > s.k ? s.k * std::log(of_chunk / s.k) : 0;
  const double sorts = of_chunk > capacity ? entered / (capacity - s.k) : 0;
  return 18900 + turns * beside * (of_chunk / kWarps * (2970 + 315 * loads) + 195 * sorts * sort) +
         chunks * (0.071 * s.k + 1.2 * beside) + 50 * s.k;
}

inline double topk_stream(const Search& s) { return s.k <= 32 ? stream_few(s) : stream_many(s); }

/// Products on tensor cores, then the best of the candidates. Rows that are no whole vectors are read by the float, those
/// that are copied first take their time before.
inline double topk_tensor(const Search& s) {
  const double d = 16 * tiles_of(s.d, 16);
  const bool uneven = std::fmod(s.d, 4) != 0;
  return 22800 + (uneven ? 59 : 18) * d + 14 * s.queries + 41 * s.k +
         s.rows * (0.11 * d + (uneven ? 32 : 0) + 0.3 * s.queries) / kSms + 284 * s.queries * s.k / kSms;
}
inline double topk_packed(const Search& s) {
  const double d = 16 * tiles_of(s.d, 16);
  const bool uneven = std::fmod(s.d, 4) != 0;
  return 24400 + (uneven ? 22 : 7.3) * d + 12 * s.queries +
         s.rows * (28.5 + 0.07 * s.queries + 0.012 * 64 * tiles_of(s.queries, 64) * d) / kSms +
         261 * s.queries * s.k / kSms;
}

struct Sequence {
  double batch, inputs, hidden, steps;
};

/// Steps by clusters of so many CTAs, each with `rows` of the batch.
inline double sequence_clusters(const Sequence& s, double rows, double cluster, double waves) {
  const double inputs = s.inputs <= 64 ? 2 : 8, hidden = s.hidden <= 128 ? 4 : 8;  // 32 of each at a time
  const double step = 665 + inputs * (12.6 + 16.8 * rows) + hidden * (37.8 + 21.9 * rows) +
                      (cluster > 8   ? 87
                       : cluster > 1 ? 0
                                     : -310);
  return 6800 + waves * (3300 + s.steps * step);
}

/// Steps as launches of their own: the host's time for each, or the device's.
inline double sequence_steps(const Sequence& s) {
  constexpr double kCall = 7300, kLaunch = 3400, kLone = 10100;  // what a cell takes that does nothing
  const Cell cell{.batch = s.batch, .inputs = s.inputs, .hidden = s.hidden};
  return kCall + s.steps * std::max(kLaunch, 2000 + cell_fastest(cell) - kLone);
}

/// By clusters where they take the sizes, and for the best way where they pay. How the batch falls into clusters is asked of
/// nobody: so many of each size run at once.
inline double sequence(const Sequence& s, bool best) {
  constexpr double kMost = 256;
  if (s.steps <= 1 || s.inputs > kMost || s.hidden > kMost) return sequence_steps(s);
  const bool wide = s.hidden > 128;
  const double ctas = tiles_of(s.hidden, wide ? 16 : 8), cluster = std::exp2(std::ceil(std::log2(ctas))),
               at_once = std::floor(kSms / cluster), most_rows = wide && s.inputs > 64 ? 2 : 8;
  double rows = 1;
  while (rows < most_rows && tiles_of(s.batch, rows) > at_once) rows *= 2;
  const double waves = tiles_of(tiles_of(s.batch, rows), at_once);
  if (best && (waves > 2 || (wide && rows > 4))) return sequence_steps(s);
  return sequence_clusters(s, rows, cluster, waves);
}

}  // namespace fulcrum::backends::cuda::effort
