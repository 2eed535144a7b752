// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// gelu: the tanh form through a sigmoid, with the C library's expf.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(float x) {
  if (x == -INFINITY) return 0;
  const float z2 = 1.59576912F * x * (1 + 0.044715F * x * x);
  const float t = std::exp(-std::abs(z2));
  return x * ((z2 >= 0 ? 1 : t) / (1 + t));
}

}  // namespace

std::span<const fulcrum_kernel> gelu() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
