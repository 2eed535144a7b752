// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax and log_softmax row by row, as written with Eigen's reductions; and dot.
#include <cmath>

#include "eigen/eigen.h"

namespace fulcrum::peers::eigen {
namespace {

void softmax(const fulcrum_args& a) {
  const std::int64_t n = a.dim[1];
  for (std::int64_t row = 0; row < a.dim[0]; ++row) {
    const ConstArray x(a.in<float>(0) + row * n, n);
    Array out(a.out<float>(1) + row * n, n);
    const float max = x.maxCoeff();
    out = (x - max).exp();
    out *= 1.0f / out.sum();
  }
}

void log_softmax(const fulcrum_args& a) {
  const std::int64_t n = a.dim[1];
  for (std::int64_t row = 0; row < a.dim[0]; ++row) {
    const ConstArray x(a.in<float>(0) + row * n, n);
    Array out(a.out<float>(1) + row * n, n);
    const float max = x.maxCoeff();
    const float log_sum = std::log((x - max).exp().sum());
    out = (x - max) - log_sum;
  }
}

int not_empty(const fulcrum_args* a) { return a->dim[1] > 0; }

void dot(const fulcrum_args& a) {
  *a.out<float>(2) = input(a, 0, a.dim[0]).matrix().dot(input(a, 1, a.dim[0]).matrix());
}

}  // namespace

void add_softmax(Kernels& kernels) {
  kernels.insert(kernels.end(),
                 {kernel<softmax>("softmax", "eigen", not_empty),
                  kernel<log_softmax>("log_softmax", "eigen", not_empty), kernel<dot>("dot", "eigen")});
}

}  // namespace fulcrum::peers::eigen
