// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention, a row at a time: scores of all visible keys, softmax, the weighted sum of the values.
#include <fulcrum/ops/attention.h>
#include <fulcrum/ops/half.h>

#include <limits>
#include <vector>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Rows of one head as floats.
std::vector<float> widen(const ops::Attention& a, const std::uint16_t* from, std::int64_t pair) {
  std::vector<float> rows(static_cast<std::size_t>(a.keys * a.d));
  for (std::int64_t s = 0; s < a.keys; ++s) {
    const std::uint16_t* row = from + a.row(pair, a.keys, s);
    for (std::int64_t i = 0; i < a.d; ++i) rows[s * a.d + i] = ops::float_from_half(row[i]);
  }
  return rows;
}

bool is_finite(const float* row, std::int64_t d) {
  return std::all_of(row, row + d, [](float value) { return std::isfinite(value); });
}

/// One head: what its rows share, and room for one of them.
struct Head {
  const ops::Attention& a;
  std::vector<float> k, v, p, sum;

  Head(const ops::Attention& attention, const fulcrum_args& args, std::int64_t pair)
      : a(attention),
        k(widen(a, args.in<std::uint16_t>(kK), pair)),
        v(widen(a, args.in<std::uint16_t>(kV), pair)),
        p(static_cast<std::size_t>(a.keys)),
        sum(static_cast<std::size_t>(a.d)) {}

  /// Scores of the visible keys; returns their maximum, or NaN where the row sees something that is not finite.
  float scores(const float* q, std::int64_t visible) {
    const auto scale = static_cast<float>(a.scale);
    bool finite = is_finite(q, a.d);
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < visible; ++j) {
      finite = finite && is_finite(&k[j * a.d], a.d) && is_finite(&v[j * a.d], a.d);
      p[j] = scale * dot_product(q, &k[j * a.d], a.d);
      max = std::max(max, p[j]);
    }
    return finite ? max : kNan;
  }

  /// Output row in `sum`; returns the logarithm of the sum of exp.
  float row(const float* q, std::int64_t visible) {
    const float max = scores(q, visible);
    std::fill(sum.begin(), sum.end(), 0.0F);
    double total = 0;
    for (std::int64_t j = 0; j < visible; ++j) {
      const float weight = std::exp(p[j] - max);
      total += weight;
      for (std::int64_t i = 0; i < a.d; ++i) sum[i] += weight * v[j * a.d + i];
    }
    const auto factor = static_cast<float>(1 / total);
    for (float& value : sum) value *= factor;
    return static_cast<float>(max + std::log(total));
  }
};

void partial(const fulcrum_args* args, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const ops::Attention a(*args);
  float q[ops::kAttentionMostD];
  while (begin < end) {
    const std::int64_t pair = begin / a.blocks();
    Head head(a, *args, pair);
    for (; begin < end && begin / a.blocks() == pair; ++begin) {
      const std::int64_t first = begin % a.blocks() * ops::kAttentionRows;
      for (std::int64_t s = first; s < std::min(first + ops::kAttentionRows, a.queries); ++s) {
        const std::int64_t at = a.row(pair, a.queries, s);
        for (std::int64_t i = 0; i < a.d; ++i)
          q[i] = ops::float_from_half(args->in<std::uint16_t>(kQ)[at + i]);
        const float lse = head.row(q, a.visible(s));
        for (std::int64_t i = 0; i < a.d; ++i)
          args->out<std::uint16_t>(kO)[at + i] = ops::half_from_float(head.sum[i]);
        if (args->ptr[kLse]) args->out<float>(kLse)[pair * a.queries + s] = lse;
      }
    }
  }
}

fulcrum_status run(const fulcrum_args* args, void*, std::int64_t count) {
  const std::int64_t pieces = ops::Attention(*args).pieces();
  for (std::int64_t call = 0; call < count; ++call) partial(args, 0, 0, pieces, nullptr);
  return done();
}

fulcrum_kernel make() {
  fulcrum_kernel kernel = make_kernel(1, run, partial);
  kernel.dtype = "f16";
  return kernel;
}

}  // namespace

std::span<const fulcrum_kernel> attention() {
  static const fulcrum_kernel kernels[] = {make()};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
