// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul: C = act(A * B + bias), row-major. No term is skipped, so 0 * Inf is NaN as it must be.
#include <fulcrum/ops/matmul.h>

#include "ops/support/dense.h"
#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kA, kB, kBias, kC };
enum Dim { kM, kN, kK };
enum Epilogue { kNone, kRelu, kGelu };

std::int64_t extent(const Args& args, int slot) {
  const std::int64_t m = args.dim[kM], n = args.dim[kN], k = args.dim[kK];
  switch (slot) {
    case kA:
      return product(m, k);
    case kB:
      return product(k, n);
    case kBias:
      return n;
    default:
      return product(m, n);
  }
}

Work work(const Args& args) {
  const auto m = static_cast<double>(args.dim[kM]);
  const auto n = static_cast<double>(args.dim[kN]);
  const auto k = static_cast<double>(args.dim[kK]);
  return Work{.flops = 2 * m * n * k,
              .issue_slots = m * n * k,
              .read_bytes = 4 * (m * k + k * n),
              .write_bytes = 4 * m * n,
              .link_in_bytes = 4 * (m * k + k * n),
              .link_out_bytes = 4 * m * n};
}

constexpr double kGeluSlope = 1.13;  // the steepest

double gelu(double x) {
  if (x == -INFINITY) return 0;  // the limit
  constexpr double kTwoC = 2 * 0.7978845608028654;
  return x / (1 + std::exp(-kTwoC * (x + 0.044715 * x * x * x)));
}

/// From the exact sum and the sum of absolute terms to the truth after bias and activation.
Truth finish(double sum, double magnitude, double bound, const float* bias, std::int64_t epilogue) {
  Truth truth = product_truth(sum, magnitude, bound);
  if (bias) {
    truth.value += *bias;
    truth.allowed += kRoundoff * std::abs(static_cast<double>(*bias));
  }
  if (epilogue == kRelu) truth.value = truth.value <= 0 ? 0 : truth.value;
  if (epilogue == kGelu) {
    truth.value = gelu(truth.value);
    truth.allowed = kGeluSlope * truth.allowed + std::max(ulps(64, truth.value), 1e-12);
    truth.magnitude *= kGeluSlope;
  }
  return truth;
}

/// The indices of one row at a time, so that A and B are read along their rows.
void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* b = args.in<float>(kB);
  const auto* bias = args.in<float>(kBias);
  const std::int64_t n = args.dim[kN], k = args.dim[kK];
  const double bound = product_bound(k);
  std::vector<double> sum, magnitude;
  for (std::size_t first = 0, last = 0; first < index.size(); first = last) {
    const std::int64_t row = index[first] / n;
    while (last < index.size() && index[last] / n == row) ++last;
    sum.assign(last - first, 0);
    magnitude.assign(last - first, 0);
    const float* a = args.in<float>(kA) + row * k;
    for (std::int64_t p = 0; p < k; ++p) {
      for (std::size_t i = first; i < last; ++i) {
        const double term = static_cast<double>(a[p]) * b[p * n + index[i] - row * n];
        sum[i - first] += term;
        magnitude[i - first] += std::abs(term);
      }
    }
    for (std::size_t i = first; i < last; ++i) {
      const float* added = bias ? bias + index[i] - row * n : nullptr;
      truth[i] = finish(sum[i - first], magnitude[i - first], bound, added, args.scalar[0].i);
    }
  }
}

std::string check_all(const Args& args, std::span<const Checked> checked) {
  if (args.scalar[0].i != kNone || args.ptr[kBias]) return {};
  return check_norm(checked);
}

std::int64_t pieces(const Args& args, int) {
  return MatmulTiles(args.dim[kM], args.dim[kN], args.dim[kK]).pieces();
}

}  // namespace

Op matmul() {
  return Op{
      .name = "matmul",
      .summary = "C[i,j] = act(sum over k of A[i,k] * B[k,j] + bias[j])",
      .category = "dense",
      .slots = {typed(in("A", uniform(-1, 1))), typed(in("B", uniform(-1, 1))),
                in_optional("bias", uniform(-1, 1)), typed(out("C")), dim("M"), dim("N"), dim("K"),
                choice("epilogue", {"none", "relu", "gelu"})},
      .extent = extent,
      .work = work,
      .reference = reference,
      .check_all = check_all,
      .check_all_drawn_only = true,
      .slice_dim = "M",
      .dtypes = {DType::f32, DType::f16, DType::bf16},
      .split = Split{.phases = 1, .pieces = pieces, .even = true},
      .symbols = {"*sgemm*", "cblas_sgemv", "*sgemv*", "*matmul*", "*MatMul*", "*gemm_kernel*"},
      .default_sizes = {"M=100,N=100,K=100", "M=256,N=256,K=256", "M=500,N=500,K=500", "M=512,N=512,K=512",
                        "M=1000,N=1000,K=1000", "M=1024,N=1024,K=1024", "M=2048,N=2048,K=2048",
                        "M=4096,N=4096,K=4096", "M=1,N=4096,K=4096", "M=4096,N=4096,K=64",
                        "M=17,N=1031,K=4099"},
      .reference_cost = [](const Args& args) { return 4.0 * static_cast<double>(args.dim[kK]); },
  };
}

}  // namespace fulcrum::ops
