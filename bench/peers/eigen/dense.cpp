// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by Eigen's own blocked kernel.
#include "eigen/eigen.h"

namespace fulcrum::peers::eigen {
namespace {

void matmul(const fulcrum_args& a) {
  const std::int64_t m = a.dim[0], n = a.dim[1], k = a.dim[2];
  Matrix c(a.out<float>(3), m, n);
  c.noalias() = ConstMatrix(a.in<float>(0), m, k) * ConstMatrix(a.in<float>(1), k, n);
  if (const auto* bias = a.in<float>(2)) c.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(bias, n);
}
int no_epilogue(const fulcrum_args* a) { return a->scalar[0].i == 0; }

void batched_matmul(const fulcrum_args& a) {
  const std::int64_t m = a.dim[1], n = a.dim[2], k = a.dim[3];
  const std::int64_t right_stride = a.dim[4] == 1 ? 0 : k * n;
  for (std::int64_t b = 0; b < a.dim[0]; ++b) {
    Matrix(a.out<float>(2) + b * m * n, m, n).noalias() =
        ConstMatrix(a.in<float>(0) + b * m * k, m, k) * ConstMatrix(a.in<float>(1) + b * right_stride, k, n);
  }
}

}  // namespace

void add_dense(Kernels& kernels) {
  kernels.insert(kernels.end(), {kernel<matmul>("matmul", "eigen", no_epilogue),
                                 kernel<batched_matmul>("batched_matmul", "eigen")});
}

}  // namespace fulcrum::peers::eigen
