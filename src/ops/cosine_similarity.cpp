// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity of Q queries with N rows: clamp(q.t / (|q| |t|), -1, 1), 0 when either is zero, NaN when
// either holds a NaN or Inf. inv_norm caches 1/|t|, and normalized=yes promises that rows of t have length 1: both
// save work and change nothing else.
#include <fulcrum/ops/cosine.h>

#include <algorithm>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kRoundoff = 0x1p-24;

enum Pointer { kQuery, kRows, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

bool is_normalized(const Args& args) { return args.scalar[0].i == 1; }

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t q = args.dim[kQ], n = args.dim[kN], d = args.dim[kD];
  switch (slot) {
    case kQuery:
      return product(q, d);
    case kRows:
      return product(n, d);
    case kInverseNorm:
      return n;
    default:
      return product(q, n);
  }
}

Status validate(const Args& args) {
  if (args.dim[kD] < 1) {
    return Error{Code::invalid_shape, "D=0 of cosine_similarity: a vector needs at least one element",
                 "use D=1 or more"};
  }
  return {};
}

Work work(const Args& args) {
  const auto q = static_cast<double>(args.dim[kQ]);
  const auto n = static_cast<double>(args.dim[kN]);
  const auto d = static_cast<double>(args.dim[kD]);
  const bool cached = args.ptr[kInverseNorm] != nullptr;
  const bool norms = !cached && !is_normalized(args);
  Work work{
      .flops = 2 * q * n * d + (norms ? 2 * n * d : 0) + 2 * q * d + 2 * q * n,
      .issue_slots = q * n * d + (norms ? n * d : 0) + q * d + 5 * q * n,  // a product and a division a score
      .read_bytes = 4 * (n * d + q * d) + (cached ? 4 * n : 0),
      .write_bytes = 4 * q * n,
      .link_in_bytes = 4 * (n * d + q * d),
      .link_out_bytes = 4 * q * n};
  if (norms) work.streaming_bytes = work.bytes() + 4 * n * d;
  return work;
}

double squared_norm(const float* x, std::int64_t d) {
  double sum = 0;
  for (std::int64_t i = 0; i < d; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

/// With the squared norms at hand. Squares of f32 neither overflow nor vanish in fp64.
double score(const float* q, const float* t, std::int64_t d, double q_squared, double t_squared) {
  if (!std::isfinite(q_squared) || !std::isfinite(t_squared)) return NAN;
  if (q_squared == 0 || t_squared == 0) return 0;
  double sum = 0;
  for (std::int64_t i = 0; i < d; ++i) sum += static_cast<double>(q[i]) * t[i];
  return std::clamp(sum / (std::sqrt(q_squared) * std::sqrt(t_squared)), -1.0, 1.0);
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const std::int64_t n = args.dim[kN], d = args.dim[kD];
  const double allowed = (static_cast<double>(d) / 32 + 16) * kRoundoff;
  std::int64_t known = -1;
  double q_squared = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const float* q = args.in<float>(kQuery) + index[i] / n * d;
    const float* t = args.in<float>(kRows) + index[i] % n * d;
    if (index[i] / n != known) q_squared = squared_norm(q, d);
    known = index[i] / n;
    truth[i] = Truth{.value = score(q, t, d, q_squared, squared_norm(t, d)), .allowed = allowed};
  }
}

void make_inputs(const Args& args, std::uint64_t) {
  cosine_rows(static_cast<float*>(args.ptr[kRows]), static_cast<float*>(args.ptr[kInverseNorm]), args.dim[kN],
              args.dim[kD], is_normalized(args));
}

std::int64_t pieces(const Args& args, int) {
  return divide_up(args.dim[kQ], kCosineQueries) * divide_up(args.dim[kN], kCosineRows);
}

}  // namespace

float cosine_score(const float* q, const float* t, std::int64_t d) {
  return static_cast<float>(score(q, t, d, squared_norm(q, d), squared_norm(t, d)));
}

void cosine_rows(float* rows, float* inverse, std::int64_t n, std::int64_t d, bool normalized) {
  for (std::int64_t row = 0; row < n; ++row) {
    float* t = rows + row * d;
    if (normalized) {
      const double norm = std::sqrt(squared_norm(t, d));
      for (std::int64_t i = 0; i < d && std::isfinite(norm) && norm > 0; ++i)
        t[i] = static_cast<float>(t[i] / norm);
    }
    if (inverse) {
      const double norm = std::sqrt(squared_norm(t, d));
      inverse[row] = norm == 0 ? 0 : static_cast<float>(1 / norm);
    }
  }
}

Op cosine_similarity() {
  return Op{
      .name = "cosine_similarity",
      .summary = "out[i,j] = q[i].t[j] / (|q[i]| |t[j]|), within -1 and 1",
      .category = "reduction",
      .slots = {in("q", normal()), in("t", normal()), in_optional("inv_norm"), out("out"), dim("Q"), dim("N"),
                dim("D"), choice("normalized", {"no", "yes"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .slice_dim = "Q",
      .make_inputs = make_inputs,
      .split = Split{.phases = 1, .pieces = pieces},
      .symbols = {"*cosine_similarity*", "*cosine*", "*Cosine*"},
      .default_sizes = {"Q=1,N=1,D=768",       "Q=1,N=2,D=768",        "Q=1,N=4,D=768",
                        "Q=1,N=8,D=768",       "Q=1,N=16,D=768",       "Q=1,N=32,D=768",
                        "Q=1,N=64,D=768",      "Q=1,N=128,D=768",      "Q=1,N=256,D=768",
                        "Q=1,N=512,D=768",     "Q=1,N=1024,D=768",     "Q=1,N=10000,D=768",
                        "Q=1,N=100000,D=768",  "Q=16,N=10000,D=768",   "Q=64,N=10000,D=768",
                        "Q=256,N=10000,D=768", "Q=1000,N=10000,D=768", "Q=1,N=1000000,D=768",
                        "Q=1,N=10000,D=1",     "Q=1,N=10000,D=127",    "Q=1,N=10000,D=1025"},
      .reference_cost = [](const Args& args) { return 6.0 * static_cast<double>(args.dim[kD]); },
  };
}

}  // namespace fulcrum::ops
