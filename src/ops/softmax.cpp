// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax over each row: exp(x - max) / sum. Long rows are cut into fixed chunks whose (max, sum) pairs are merged
// in index order, so one row can use all threads and its bits do not depend on how many there are.
#include "ops/support/softmax.h"

#include <fmt/format.h>

namespace fulcrum::ops {
namespace {

constexpr double kSumTolerance = 5e-6;

Truth truth(const rows::Row& row, double below) {
  const double value = std::exp(-below) / row.sum;
  // An error of the argument is amplified by exp; 48 covers the sum over a chunk.
  const double relative = (48 + below + std::log(row.sum)) * 0x1p-23;
  return Truth{.value = value, .allowed = value > 0 ? std::max(relative * value, 0x1p-126) : 0x1p-126};
}

/// Complete rows must add up to one.
std::string check_all(const Args& args, std::span<const Checked> checked) {
  const std::int64_t n = args.dim[rows::kN];
  for (std::size_t i = 0; i < checked.size();) {
    const std::int64_t row = checked[i].index / n;
    double sum = 0;
    std::int64_t count = 0;
    for (; i < checked.size() && checked[i].index / n == row; ++i, ++count) sum += checked[i].got;
    if (count == n && std::abs(sum - 1) > kSumTolerance) {
      return fmt::format("row {} adds up to {:.9g}, which is off 1 by more than {}", row, sum, kSumTolerance);
    }
  }
  return {};
}

}  // namespace

SoftmaxPart merge(const SoftmaxPart& left, const SoftmaxPart& right) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  if (std::isnan(left.sum) || std::isnan(right.sum)) return SoftmaxPart{rows::kNan, NAN};
  const SoftmaxPart& high = left.max >= right.max ? left : right;
  const SoftmaxPart& low = left.max >= right.max ? right : left;
  if (low.max == kNone) return high;  // nothing but -Inf: adds 0, and -Inf - -Inf would be NaN
  return SoftmaxPart{high.sum + low.sum * std::exp(static_cast<double>(low.max) - high.max), high.max};
}

void merge_row(SoftmaxPart* parts, std::int64_t chunks) {
  if (chunks <= 1) return;
  SoftmaxPart all = parts[0];
  for (std::int64_t c = 1; c < chunks; ++c) all = merge(all, parts[c]);
  for (std::int64_t c = 0; c < chunks; ++c) parts[c] = SoftmaxPart{all.sum, all.max, parts[c].chunk_max};
}

Op softmax() {
  Op op = rows::op();
  op.name = "softmax";
  op.summary = "out[r,i] = exp(x[r,i] - max) / sum of exp(x[r,j] - max)";
  op.work = rows::work<19>;
  op.reference = rows::reference<truth>;
  op.check_all = check_all;
  op.symbols = {"*softmax*", "*Softmax*", "*SoftMax*"};
  return op;
}

}  // namespace fulcrum::ops
