// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul: B products C_b = A_b * B_b, or with one right side for all (Bb=1). A tensor contraction is this
// after its operands were permuted to [batch, free, contracted].
#include <fulcrum/ops/batched_matmul.h>

#include <fmt/format.h>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kA, kB, kC };
enum Dim { kBatch, kM, kN, kK, kRightSides };

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t batch = args.dim[kBatch], m = args.dim[kM], n = args.dim[kN], k = args.dim[kK];
  switch (slot) {
    case kA:
      return product(batch, product(m, k));
    case kB:
      return product(args.dim[kRightSides] == 1 ? 1 : batch,
                     product(k, n));  // grows with the batch, so that it can be cut
    default:
      return product(batch, product(m, n));
  }
}

Status validate(const Args& args) {
  const std::int64_t batch = args.dim[kBatch], right = args.dim[kRightSides];
  if (right == 1 || right == batch) return {};
  return Error{Code::invalid_shape,
               fmt::format("Bb={} of batched_matmul is neither 1 nor B={}", right, batch),
               fmt::format("use Bb=1 for one shared right side, or Bb={}", batch)};
}

Work work(const Args& args) {
  const auto batch = static_cast<double>(args.dim[kBatch]);
  const auto m = static_cast<double>(args.dim[kM]);
  const auto n = static_cast<double>(args.dim[kN]);
  const auto k = static_cast<double>(args.dim[kK]);
  const double inputs = 4 * (batch * m * k + static_cast<double>(args.dim[kRightSides]) * k * n);
  return Work{.flops = 2 * batch * m * n * k,
              .issue_slots = batch * m * n * k,
              .read_bytes = inputs,
              .write_bytes = 4 * batch * m * n,
              .link_in_bytes = inputs,
              .link_out_bytes = 4 * batch * m * n};
}

/// The indices of one row at a time, so that A and B are read along their rows.
void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const std::int64_t m = args.dim[kM], n = args.dim[kN], k = args.dim[kK];
  std::vector<double> sum, magnitude;
  for (std::size_t first = 0, last = 0; first < index.size(); first = last) {
    const std::int64_t row = index[first] / n;
    while (last < index.size() && index[last] / n == row) ++last;
    sum.assign(last - first, 0);
    magnitude.assign(last - first, 0);
    const float* a = args.in<float>(kA) + row * k;
    const float* b = args.in<float>(kB) + (args.dim[kRightSides] == 1 ? 0 : row / m * k * n);
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::size_t i = first; i < last; ++i) {
        const double term = static_cast<double>(a[p]) * b[p * n + index[i] - row * n];
        sum[i - first] += term;
        magnitude[i - first] += std::abs(term);
      }
    }
    for (std::size_t i = first; i < last; ++i) {
      truth[i] = product_truth(sum[i - first], magnitude[i - first], product_bound(k));
    }
  }
}

/// The norm of every entry on its own: a wrong one must not hide among many right ones.
std::string check_all(const Args& args, std::span<const Checked> checked) {
  const std::int64_t entry_size = args.dim[kM] * args.dim[kN];
  for (std::size_t first = 0, last = 0; first < checked.size(); first = last) {
    const std::int64_t entry = checked[first].index / entry_size;
    while (last < checked.size() && checked[last].index / entry_size == entry) ++last;
    const std::string wrong = check_norm(checked.subspan(first, last - first));
    if (!wrong.empty()) return fmt::format("entry {}: {}", entry, wrong);
  }
  return {};
}

std::int64_t pieces(const Args& args, int) { return args.dim[kBatch] * batched_matmul_tiles(args).pieces(); }

}  // namespace

Op batched_matmul() {
  return Op{
      .name = "batched_matmul",
      .summary = "C[b,i,j] = sum over k of A[b,i,k] * B[b or 0,k,j]",
      .category = "dense",
      .slots = {typed(in("A", uniform(-1, 1))), typed(in("B", uniform(-1, 1))), typed(out("C")), dim("B"),
                dim("M"), dim("N"), dim("K"), dim("Bb", 1)},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .slice_dim = "B",
      .dtypes = {DType::f32, DType::f16, DType::bf16},
      .split = Split{.phases = 1, .pieces = pieces, .even = true},
      .symbols = {"*bmm*", "*batched_matmul*", "*BatchMatMul*", "*gemm_batch*", "*gemmBatched*",
                  "*gemm_strided_batch*"},
      .default_sizes = {"B=1000,M=16,N=16,K=16,Bb=1000", "B=100,M=64,N=64,K=64,Bb=100",
                        "B=32,M=512,N=512,K=64,Bb=32", "B=64,M=256,N=256,K=256,Bb=64",
                        "B=8,M=1024,N=1024,K=1024,Bb=8", "B=3,M=17,N=23,K=19,Bb=3"},
      .edge_shapes = {"B=3,M=17,N=23,K=19,Bb=3", "B=3,M=17,N=23,K=19,Bb=1", "B=0,M=4,N=5,K=6,Bb=0",
                      "B=2,M=0,N=5,K=6,Bb=2", "B=2,M=4,N=5,K=0,Bb=2", "B=5,M=1,N=1,K=1,Bb=5",
                      "B=7,M=16,N=16,K=16,Bb=7", "B=2,M=33,N=129,K=65,Bb=2", "B=2,M=40,N=200,K=300,Bb=2"},
      .reference_cost = [](const Args& args) { return 4.0 * static_cast<double>(args.dim[kK]); },
  };
}

}  // namespace fulcrum::ops
