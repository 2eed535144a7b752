// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax over each row: exp(x - max) / sum. Long rows are cut into fixed chunks whose (max, sum) pairs are merged
// in index order, so one row can use all threads and its bits do not depend on how many there are.
#include <fulcrum/ops/softmax.h>

#include <fmt/format.h>

#include <limits>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kSumTolerance = 5e-6;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum Pointer { kX, kOut };
enum Dim { kRows, kN };

std::int64_t elements(const Args& args) { return product(args.dim[kRows], args.dim[kN]); }

Work work(const Args& args) {
  const auto all = static_cast<double>(elements(args));
  return Work{.flops = 5 * all,
              .issue_slots = 19 * all,
              .read_bytes = 4 * all,
              .write_bytes = 4 * all,
              .streaming_bytes = 12 * all,
              .link_in_bytes = 4 * all,
              .link_out_bytes = 4 * all};
}

/// What one row's outputs share, in fp64.
struct Row {
  double max = -INFINITY;
  double sum = 0;  // NaN when the whole row is NaN
};

Row row_of(const float* x, std::int64_t n) {
  Row row;
  bool not_a_number = false;
  for (std::int64_t i = 0; i < n; ++i) {
    not_a_number |= std::isnan(x[i]);
    row.max = std::max(row.max, static_cast<double>(x[i]));
  }
  if (not_a_number || std::isinf(row.max)) return Row{row.max, kNan};  // NaN, +Inf, or -Inf alone
  for (std::int64_t i = 0; i < n; ++i) row.sum += std::exp(x[i] - row.max);
  return row;
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(kX);
  const std::int64_t n = args.dim[kN];
  std::int64_t known = -1;
  Row row;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t number = index[i] / n;
    if (number != known) row = row_of(x + number * n, n);
    known = number;
    const double below = row.max - x[index[i]];
    const double value = std::isnan(row.sum) ? kNan : std::exp(-below) / row.sum;
    // An error of the argument is amplified by exp; 48 covers the sum over a chunk.
    const double relative = (48 + below + std::log(row.sum)) * 0x1p-23;
    truth[i].value = value;
    truth[i].allowed = value > 0 ? std::max(relative * value, 0x1p-126) : 0x1p-126;
  }
}

/// Complete rows must add up to one.
std::string check_all(const Args& args, std::span<const Checked> checked) {
  const std::int64_t n = args.dim[kN];
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

std::int64_t chunks_of_row(const Args& args) { return divide_up(args.dim[kN], kSoftmaxChunk); }

std::int64_t pieces(const Args& args, int) { return args.dim[kRows] * chunks_of_row(args); }

void combine(const Args& args, int phase, void* scratch) {
  const std::int64_t chunks = chunks_of_row(args);
  if (phase != 0 || chunks <= 1) return;
  auto* parts = static_cast<SoftmaxPart*>(scratch);
  for (std::int64_t row = 0; row < args.dim[kRows]; ++row, parts += chunks) {
    SoftmaxPart all = parts[0];
    for (std::int64_t c = 1; c < chunks; ++c) all = merge(all, parts[c]);
    for (std::int64_t c = 0; c < chunks; ++c) parts[c] = all;
  }
}

}  // namespace

SoftmaxPart merge(const SoftmaxPart& left, const SoftmaxPart& right) {
  if (std::isnan(left.sum) || std::isnan(right.sum)) return SoftmaxPart{kNan, kNan};
  const SoftmaxPart& high = left.max >= right.max ? left : right;
  const SoftmaxPart& low = left.max >= right.max ? right : left;
  if (low.max == -kInfinity) return high;  // nothing but -Inf: adds 0, and -Inf - -Inf would be NaN
  return SoftmaxPart{high.sum + low.sum * std::exp(static_cast<double>(low.max) - high.max), high.max};
}

Op softmax() {
  return Op{
      .name = "softmax",
      .summary = "out[r,i] = exp(x[r,i] - max) / sum of exp(x[r,j] - max)",
      .category = "reduction",
      .slots = {in("x", uniform(-4, 4)), out("out"), dim("rows", 1), dim("n")},
      .extent = [](const Args& args, int) { return elements(args); },
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .split = Split{.phases = 2,
                     .pieces = pieces,
                     .scratch_bytes =
                         [](const Args& args) {
                           return pieces(args, 0) * static_cast<std::int64_t>(sizeof(SoftmaxPart));
                         },
                     .combine = combine},
      .symbols = {"*softmax*", "*Softmax*", "*SoftMax*"},
      .default_sizes = {"n=1000", "n=10000", "n=100000", "n=1000000", "n=16777216", "n=268435456",
                        "rows=65536,n=128", "rows=4096,n=1024", "rows=128,n=32768"},
      .reference_cost = [](const Args&) { return 60.0; },
  };
}

}  // namespace fulcrum::ops
