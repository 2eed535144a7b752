// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How the table of entropies is rounded so that the sum of a window fits 16 bits. Arithmetic only: tested without a
// device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

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

/// The scale with the smallest error for windows of so many pixels: small counts, which most windows are made of, come
/// out nearly whole.
inline PairScale pair_scale(const std::int64_t* table, int pixels) {
  constexpr int kTries = 1024;
  const double most = 65535 / (static_cast<double>(table[pixels]) * 0x1p-32);
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

}  // namespace fulcrum::backends::cuda::entropy

#undef FULCRUM_ON_BOTH
