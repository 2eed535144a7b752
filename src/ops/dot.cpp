// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot: the sum of a[i] * b[i] in fixed chunks: fp32 inside a chunk, chunk sums added in index order in fp64.
#include <fulcrum/ops/dot.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

constexpr double kRoundoff = 0x1p-24;
constexpr double kBound =
    80;  // chain of 64 terms a lane, tree of 6 levels, and slack; the size does not enter

enum Pointer { kA, kB, kOut };

Work work(const Args& args) {
  const auto n = static_cast<double>(args.dim[0]);
  return Work{.flops = 2 * n,
              .issue_slots = n,  // one fma an element
              .read_bytes = 8 * n,
              .write_bytes = 4,
              .link_in_bytes = 8 * n,
              .link_out_bytes = 4};
}

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* a = args.in<float>(kA);
  const auto* b = args.in<float>(kB);
  double sum = 0;
  double magnitude = 0;
  for (std::int64_t i = 0; i < args.dim[0]; ++i) {
    const double term = static_cast<double>(a[i]) * b[i];
    sum += term;
    magnitude += std::abs(term);
  }
  for (std::size_t i = 0; i < index.size(); ++i) {
    // The last rounding, to f32, is the kernel's: compare with the unrounded sum. Underflow may cost a denormal.
    truth[i] = Truth{.value = sum,
                     .allowed = kBound * kRoundoff * magnitude + 0x1p-126,
                     .any_non_finite = std::isfinite(magnitude) && magnitude > 0x1p127};
  }
}

void combine(const Args& args, int, void* scratch) {
  const auto* chunk = static_cast<const double*>(scratch);
  const std::int64_t chunks = divide_up(args.dim[0], kDotChunk);
  double sum = 0;
  for (std::int64_t i = 0; i < chunks; ++i) sum += chunk[i];
  *args.out<float>(kOut) = static_cast<float>(sum);
}

std::int64_t chunks(const Args& args, int) { return divide_up(args.dim[0], kDotChunk); }

}  // namespace

Op dot() {
  return Op{
      .name = "dot",
      .summary = "out = sum of a[i] * b[i]",
      .category = "reduction",
      .slots = {in("a", uniform(-1, 1)), in("b", uniform(-1, 1)), out("out"), dim("n")},
      .extent = [](const Args& args, int slot) { return slot == kOut ? std::int64_t{1} : args.dim[0]; },
      .work = work,
      .reference = reference,
      .split = Split{.phases = 1,
                     .pieces = chunks,
                     .scratch_bytes = [](const Args& args) { return chunks(args, 0) * std::int64_t{8}; },
                     .combine = combine},
      .symbols = {"cblas_sdot", "sdot_", "*sdot_k*", "*dot_product*", "*inner_product*"},
      .default_sizes = vector_sizes(),
      .edge_shapes = {"n=300001"},  // more than kernels take at once
      .reference_cost = [](const Args& args) { return 4.0 * static_cast<double>(args.dim[0]); },
  };
}

}  // namespace fulcrum::ops
