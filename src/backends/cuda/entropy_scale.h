// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How the table of entropies is rounded so that the sum of a window fits 16 bits. Arithmetic only: tested without a
// device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#ifdef __CUDACC__
#define FULCRUM_ON_BOTH __host__ __device__
#else
#define FULCRUM_ON_BOTH
#endif

namespace fulcrum::backends::cuda::entropy {

/// How T is rounded to sums of 16 bits: units of a bit, and how far a window's sum may be off, in units a pixel.
struct PairScale {
  double units, off;
};

/// T of a count, in whole units.
FULCRUM_ON_BOTH inline double in_units(std::int64_t entry, double units) {
  return std::rint(static_cast<double>(entry) * (units * 0x1p-32));
}

/// The scale of at most so many units a bit with the smallest error for windows of so many pixels: small counts, which
/// most windows are made of, come out nearly whole.
inline PairScale best_scale(const std::int64_t* table, int pixels, double most) {
  constexpr int kTries = 1024;
  PairScale best{most, 1e9};
  for (int i = 0; i < kTries; ++i) {
    const double units = most * (1 - i * (0.25 / kTries));
    double off = 0;
    for (int c = 2; c <= pixels; ++c) {
      const double exact = static_cast<double>(table[c]) * (units * 0x1p-32);
      off = std::max(off, std::abs(in_units(table[c], units) - exact) / c);
    }
    if (off / units < best.off / best.units) best = PairScale{units, off};
  }
  return best;
}

/// Sums of windows of so many pixels fit 16 bits.
inline PairScale pair_scale(const std::int64_t* table, int pixels) {
  return best_scale(table, pixels, 65535 / (static_cast<double>(table[pixels]) * 0x1p-32));
}

/// Sums need not fit 16 bits, but what a row changes must: one that enters while another leaves, up or down, and two that
/// enter at once, up. Most is changed in a window of one bin.
inline PairScale row_scale(const std::int64_t* table, int window) {
  const int pixels = window * window;
  const auto last_rows = [&](int rows) {
    return static_cast<double>(table[pixels] - table[std::max(0, pixels - rows * window)]) * 0x1p-32;
  };
  // A window's sum is off by up to a quarter of a unit a pixel, before and after.
  const double slack = 1 + pixels * 0.5;
  return best_scale(table, pixels, std::min((32767 - slack) / last_rows(1), (65535 - slack) / last_rows(2)));
}

/// Sums of two windows, followed from row to row by a word that has both: the second's in its upper half, all modulo 2^32.
struct FollowedPair {
  int sum[2] = {0, 0};

  FULCRUM_ON_BOTH std::uint32_t change_to(std::uint32_t word) const {
    return word - (static_cast<std::uint32_t>(sum[0]) + (static_cast<std::uint32_t>(sum[1]) << 16));
  }
  /// A row has entered and another has left.
  FULCRUM_ON_BOTH void slide(std::uint32_t word) {
    const std::uint32_t change = change_to(word);
    const int first = static_cast<std::int16_t>(change & 0xFFFFU);
    sum[0] += first;
    sum[1] += static_cast<int>(change - static_cast<std::uint32_t>(first)) >> 16;
  }
  /// Up to two rows have entered.
  FULCRUM_ON_BOTH void grow(std::uint32_t word) {
    const std::uint32_t change = change_to(word);
    sum[0] += static_cast<int>(change & 0xFFFFU);
    sum[1] += static_cast<int>(change >> 16);
  }
};

/// Counts of a bin in two windows next to each other differ by no more than the pixels of a column, and of one more row
/// while rows come and go. So a pair stands in a narrow table at first + kPairFactor * second, which also keeps most pairs
/// of small counts in banks of their own.
inline constexpr int kPairFactor = 27, kPairApart = 13;
constexpr int pair_entries(int most) { return (kPairFactor + 1) * most + 1; }
/// The largest count of a bin while a row has entered and another has not left yet.
constexpr int most_pixels(int window) { return window * (window + 1); }

/// For all such pairs of counts: what one more pixel adds to the sums of both, as step(count) says, in two words each.
template <class Step>
std::vector<std::uint32_t> pair_table(int window, const Step& step) {
  const int most = most_pixels(window);
  const auto entries =
      static_cast<std::size_t>((pair_entries(most) + 3) / 4 * 4);  // whole groups of 16 bytes
  std::vector<std::uint32_t> words(2 * entries, 0);
  for (int second = 0; second <= most; ++second) {
    const int last = std::min(most, second + kPairApart);
    for (int first = std::max(0, second - kPairApart); first <= last; ++first) {
      const auto at = static_cast<std::size_t>(2 * (first + kPairFactor * second));
      words[at] = step(first);
      words[at + 1] = step(second);
    }
  }
  return words;
}

/// Steps in units of a scale, of both in one word: the first's in its low half.
inline std::vector<std::uint32_t> pair_steps(const std::int64_t* table, int window, double units) {
  const auto both = pair_table(window, [&](int count) {
    return static_cast<std::uint32_t>(in_units(table[count + 1], units) - in_units(table[count], units));
  });
  std::vector<std::uint32_t> steps(both.size() / 2);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = both[2 * i] | both[2 * i + 1] << 16;
  return steps;
}

/// The lowest 32 bits of the exact steps.
inline std::vector<std::uint32_t> pair_lows(const std::int64_t* table, int window) {
  return pair_table(window,
                    [&](int count) { return static_cast<std::uint32_t>(table[count + 1] - table[count]); });
}

/// Labels of windows of so many pixels, by their sums in units: at most `sure` is above a threshold, more than sure + open
/// is not.
struct PairJudge {
  int pixels, sure[3], open[3], unused;

  FULCRUM_ON_BOTH bool doubts(int sum) const {
    bool doubt = false;
    for (int i = 0; i < 3; ++i) {
      doubt |= static_cast<unsigned>(sum - sure[i] - 1) < static_cast<unsigned>(open[i]);
    }
    return doubt;
  }
  /// As segment.cuh has labels.
  FULCRUM_ON_BOTH unsigned bit(int sum) const {
    unsigned label = sum <= sure[2] ? 0x1000U : 0x1U;
    if (sum <= sure[1]) label = 0x100U;
    if (sum <= sure[0]) label = 0x10U;
    return label;
  }
};
static_assert(sizeof(PairJudge) % 16 == 0);
constexpr int judge_bytes(int window) { return (window * window + 1) * static_cast<int>(sizeof(PairJudge)); }

/// For every number of pixels up to that of a whole window; thresholds from the highest.
inline std::vector<PairJudge> pair_judges(const std::int64_t* table, int window, const float (&thresholds)[3],
                                          const PairScale& scale) {
  std::vector<PairJudge> judges(static_cast<std::size_t>(window * window + 1));
  for (int pixels = 0; pixels <= window * window; ++pixels) {
    PairJudge& judge = judges[static_cast<std::size_t>(pixels)];
    judge = PairJudge{pixels, {}, {}, 0};
    for (int i = 0; i < 3; ++i) {
      const double part = static_cast<double>(thresholds[i]) * pixels;
      const double limit = (static_cast<double>(table[pixels]) * 0x1p-32 - part) * scale.units;
      // The entropy is rounded to 24 bits.
      const double margin = pixels * scale.off + part * 0x1p-22 * scale.units + 0.5;
      // Thresholds far above any entropy are never reached.
      const auto whole = [](double sum) { return static_cast<int>(std::clamp(sum, -1.0, 1e6)); };
      judge.sure[i] = whole(std::floor(limit - margin));
      judge.open[i] = whole(std::ceil(limit + margin)) - judge.sure[i];
    }
  }
  return judges;
}

/// How an image is cut into strips of teams. Those at its sides take longer a row and have fewer.
struct TeamCut {
  int across;           // strips along a row
  int rows, side_rows;  // of a strip
  int sides, strips;    // strips at the sides, and all

  /// Strips of `own` columns, so many that as many teams run at once, if they can.
  static TeamCut of(std::int64_t h, std::int64_t w, std::int64_t own, std::int64_t teams) {
    constexpr std::int64_t kLeastRows = 2;
    const auto up = [](std::int64_t value, std::int64_t by) { return (value + by - 1) / by; };
    const std::int64_t across = up(w, own), beside = across > 2 ? 2 : 0;
    for (std::int64_t rows = std::clamp(h * across / teams, kLeastRows, std::max(h, kLeastRows));; ++rows) {
      const std::int64_t side_rows = std::max(rows * 4 / 5, kLeastRows);
      const std::int64_t sides = beside * up(h, side_rows), strips = sides + (across - beside) * up(h, rows);
      if (strips > teams && rows < h) continue;
      return TeamCut{static_cast<int>(across), static_cast<int>(rows), static_cast<int>(side_rows),
                     static_cast<int>(sides), static_cast<int>(strips)};
    }
  }

  struct Place {
    int column, first, rows;  // strips before it along a row; its rows
  };
  /// Of strip `number`, those at the sides first.
  FULCRUM_ON_BOTH Place place(int number) const {
    const bool side = number < sides;
    const int in_row = side ? 2 : sides > 0 ? across - 2 : across, mine = side ? number : number - sides;
    const int at = mine % in_row, height = side ? side_rows : rows;
    const int column = side ? at * (across - 1) : sides > 0 ? at + 1 : at;
    return Place{column, mine / in_row * height, height};
  }
};

}  // namespace fulcrum::backends::cuda::entropy

#undef FULCRUM_ON_BOTH
