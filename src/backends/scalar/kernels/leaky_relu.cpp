// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// leaky_relu: a comparison that lets NaN pass, and one product.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(const fulcrum_args& a, float x) {
  const auto al = static_cast<float>(a.scalar[0].f);
  if (!(x <= 0)) return x;
  return al == 0 ? 0 : al * x;  // 0 * -Inf would be NaN
}

}  // namespace

std::span<const fulcrum_kernel> leaky_relu() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
