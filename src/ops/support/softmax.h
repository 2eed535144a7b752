// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What softmax and log_softmax share: rows and their pieces, and the fp64 maximum and sum of a row.
#pragma once

#include <fulcrum/ops/softmax.h>

#include <limits>

#include "ops/support/elementwise.h"

namespace fulcrum::ops::rows {

enum Pointer { kX, kOut };
enum Dim { kRows, kN };

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline std::int64_t elements(const Args& args) { return product(args.dim[kRows], args.dim[kN]); }

template <int kSlots>
Work work(const Args& args) {
  const auto all = static_cast<double>(elements(args));
  return Work{.flops = 5 * all,
              .issue_slots = kSlots * all,
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

inline Row row_of(const float* x, std::int64_t n) {
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

/// kTruth(row, max - x) for the outputs `index`; never called for a row that is NaN.
template <Truth (*kTruth)(const Row&, double below)>
void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(kX);
  const std::int64_t n = args.dim[kN];
  std::int64_t known = -1;
  Row row;
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t number = index[i] / n;
    if (number != known) row = row_of(x + number * n, n);
    known = number;
    truth[i] = std::isnan(row.sum) ? Truth{.value = kNan} : kTruth(row, row.max - x[index[i]]);
  }
}

inline std::int64_t pieces(const Args& args, int) { return args.dim[kRows] * softmax_chunks(args.dim[kN]); }

/// Rows of one chunk have nothing to merge: a piece is a row from its first read to its last write.
inline int phases_for(const Args& args) { return softmax_chunks(args.dim[kN]) > 1 ? 2 : 1; }

inline std::int64_t scratch_bytes(const Args& args) {
  if (phases_for(args) == 1) return 0;
  return pieces(args, 0) * static_cast<std::int64_t>(sizeof(SoftmaxPart));
}

inline void combine(const Args& args, int phase, void* scratch) {
  const std::int64_t chunks = softmax_chunks(args.dim[kN]);
  auto* parts = static_cast<SoftmaxPart*>(scratch);
  for (std::int64_t row = 0; phase == 0 && chunks > 1 && row < args.dim[kRows]; ++row, parts += chunks) {
    merge_row(parts, chunks);
  }
}

/// Everything of an op over rows but its name, formula, work, reference and symbols.
inline Op op() {
  return Op{
      .category = "reduction",
      .slots = {in("x", uniform(-4, 4)), out("out"), dim("rows", 1), dim("n")},
      .extent = [](const Args& args, int) { return elements(args); },
      .slice_dim = "rows",
      .split = Split{.phases = 2,
                     .pieces = pieces,
                     .scratch_bytes = scratch_bytes,
                     .combine = combine,
                     .phases_for = phases_for},
      .default_sizes = {"n=1000", "n=10000", "n=100000", "n=1000000", "n=16777216", "n=268435456",
                        "rows=65536,n=128", "rows=4096,n=1024", "rows=128,n=32768"},
      .edge_shapes = {"rows=3,n=8193"},
      .reference_cost = [](const Args&) { return 60.0; },
  };
}

}  // namespace fulcrum::ops::rows
