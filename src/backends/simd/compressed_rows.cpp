// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See compressed_rows.h.
#include "backends/simd/compressed_rows.h"

#include <fulcrum/ops/half.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/simd/plan_memory.h"

namespace fulcrum::backends::simd {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kUp = 1 + 0x1p-20;  // covers what the few operations on a bound lose
constexpr float kAlways = 4;         // no two scores are that far apart: the row is always looked at

/// To the nearest integer, for |x| < 2^51: the sum has no room for a fraction.
double rounded(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

struct Row {
  double square = 0, largest = 0;
};

Row measure(const float* t, std::size_t n) {
  Row row;
  for (std::size_t i = 0; i < n; ++i) {
    row.square += static_cast<double>(t[i]) * t[i];
    row.largest = std::max(row.largest, std::abs(static_cast<double>(t[i])));
  }
  return row;
}

/// The copy of one row as halves of t / scale, scale a power of two that keeps them below 2; the squared error.
double store(const float* t, std::size_t n, double scale, std::uint16_t* to) {
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    to[i] = ops::half_from_float(static_cast<float>(t[i] / scale));
    const double rest = t[i] - scale * ops::float_from_half(to[i]);
    error += rest * rest;
  }
  return error;
}

/// As integers between -127 and 127.
double store(const float* t, std::size_t n, double scale, std::uint8_t* to) {
  double error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = rounded(t[i] / scale);
    to[i] = static_cast<std::uint8_t>(static_cast<int>(value) + kByteZero);
    const double rest = t[i] - scale * value;
    error += rest * rest;
  }
  return error;
}

/// A score has at most this relative error in fp32, whatever the order of its sums: both the copy's and the exact one.
double rounding(std::size_t n) { return (4 * static_cast<double>(n) + 64) * kRoundoff; }

/// 1/|t|, as given, or 1; 0 when the fp32 kernel would not trust it.
double factor_of(const fulcrum_args& a, std::int64_t row, double square) {
  if (!is_filterable(square)) return 0;
  if (a.scalar[0].i == 1) return 1;
  if (const auto* known = a.in<float>(2)) {
    return known[row] >= 0x1p-50F && known[row] <= 0x1p50F ? known[row] : 0;
  }
  return 1 / std::sqrt(square);
}

template <class Element>
void compress_rows(const fulcrum_args& a, Element* to, double largest_element, CompressedRows& rows) {
  const auto n = static_cast<std::size_t>(a.dim[2]);
  for (std::int64_t i = 0; i < a.dim[1]; ++i, to += rows.pitch) {
    const float* t = a.in<float>(1) + i * a.dim[2];
    const Row row = measure(t, n);
    const double factor = factor_of(a, i, row.square);
    if (factor == 0) {  // a row of zeros scores 0; any other that fp32 cannot carry is never left out
      rows.slack[i] = row.square == 0 ? 0 : kAlways;
      continue;
    }
    // A power of two for halves, so that dividing by it is exact.
    const double scale =
        largest_element > 2 ? row.largest / largest_element : std::exp2(std::ilogb(row.largest));
    const double error = std::sqrt(store(t, n, scale, to)) * factor;
    const double reach = (std::sqrt(row.square) * factor + error) * kUp;
    rows.gain[i] = static_cast<float>(scale * factor);
    rows.reach[i] = static_cast<float>(reach * kUp);
    rows.slack[i] = static_cast<float>((error + rounding(n) * reach) * kUp);
  }
}

}  // namespace

bool compress(const fulcrum_args& a, CompressedRows::Kind kind, CompressedRows& rows) {
  const auto n = static_cast<std::size_t>(a.dim[2]), count = static_cast<std::size_t>(a.dim[1]);
  rows.kind = kind;
  rows.gain.assign(count, 0);
  rows.slack.assign(count, 0);
  rows.reach.assign(count, 0);
  if (kind == CompressedRows::Kind::halves) {
    rows.pitch = n;
    rows.halves = plan_memory<std::uint16_t>(count * n);
    if (!rows.halves) return false;
    std::fill_n(rows.halves.get(), count * n, std::uint16_t{0});
    compress_rows(a, rows.halves.get(), 1, rows);
  } else {
    rows.pitch = (n + kByteStep - 1) / kByteStep * kByteStep;
    rows.bytes = plan_memory<std::uint8_t>(count * rows.pitch);
    if (!rows.bytes) return false;
    std::fill_n(rows.bytes.get(), count * rows.pitch, kByteZero);
    compress_rows(a, rows.bytes.get(), 127, rows);
  }
  return true;
}

ByteQuery compress_query(const float* q, std::size_t n, std::size_t pitch, std::int8_t* bytes) {
  const Row row = measure(q, n);
  const double scale = row.largest / 127;
  double error = 0;
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double value = rounded(q[i] / scale);
    bytes[i] = static_cast<std::int8_t>(value);
    sum += bytes[i];
    error += (q[i] - scale * value) * (q[i] - scale * value);
  }
  std::fill(bytes + n, bytes + pitch, std::int8_t{0});
  return ByteQuery{.scale = static_cast<float>(scale),
                   .error = static_cast<float>(std::sqrt(error / row.square) * kUp),
                   .offset = sum * kByteZero};
}

}  // namespace fulcrum::backends::simd
