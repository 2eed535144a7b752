// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot, matmul and batched_matmul as BLAS calls.
#include <algorithm>

#include "openblas/openblas.h"

namespace fulcrum::peers::openblas {
namespace {

void dot(const fulcrum_args& a) {
  *a.out<float>(2) = library().sdot(static_cast<int>(a.dim[0]), a.in<float>(0), 1, a.in<float>(1), 1);
}
int fits(const fulcrum_args* a) {
  return std::all_of(a->dim, a->dim + FULCRUM_SLOTS, [](std::int64_t n) { return n <= INT32_MAX; });
}

void product(const float* left, const float* right, float* out, int m, int n, int k, float beta) {
  if (m == 1) {
    library().sgemv(kRowMajor, kTranspose, k, n, 1, right, n, left, 1, beta, out, 1);
  } else if (n == 1) {
    library().sgemv(kRowMajor, kNoTranspose, m, k, 1, left, k, right, 1, beta, out, 1);
  } else {
    library().sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, left, k, right, n, beta, out, n);
  }
}

void matmul(const fulcrum_args& a) {
  const auto m = static_cast<int>(a.dim[0]), n = static_cast<int>(a.dim[1]), k = static_cast<int>(a.dim[2]);
  const auto* bias = a.in<float>(2);
  auto* out = a.out<float>(3);
  for (int row = 0; bias && row < m; ++row)
    std::copy(bias, bias + n, out + static_cast<std::int64_t>(row) * n);
  product(a.in<float>(0), a.in<float>(1), out, m, n, k, bias ? 1 : 0);
}
int plain_product(const fulcrum_args* a) {
  return fits(a) && a->scalar[0].i == 0 && a->dim[0] > 0 && a->dim[1] > 0 && a->dim[2] > 0;
}

void batched_matmul(const fulcrum_args& a) {
  const std::int64_t m = a.dim[1], n = a.dim[2], k = a.dim[3], right_stride = a.dim[4] == 1 ? 0 : k * n;
  for (std::int64_t b = 0; b < a.dim[0]; ++b) {
    product(a.in<float>(0) + b * m * k, a.in<float>(1) + b * right_stride, a.out<float>(2) + b * m * n,
            static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), 0);
  }
}
int batched_product(const fulcrum_args* a) {
  return fits(a) && a->dim[1] > 0 && a->dim[2] > 0 && a->dim[3] > 0;
}

}  // namespace

void add_dense(Kernels& kernels) {
  add<dot>(kernels, {.op = "dot", .supports = fits});
  add<matmul>(kernels, {.op = "matmul", .supports = plain_product});
  add<batched_matmul>(kernels, {.op = "batched_matmul", .supports = batched_product});
}

}  // namespace fulcrum::peers::openblas
