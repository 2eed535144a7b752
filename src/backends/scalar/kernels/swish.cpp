// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// swish: with the C library's expf, in the form that never overflows.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(float x) {
  if (x == -INFINITY) return 0;
  const float t = std::exp(-std::abs(x));
  return x * ((x >= 0 ? 1 : t) / (1 + t));
}

}  // namespace

std::span<const fulcrum_kernel> swish() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
