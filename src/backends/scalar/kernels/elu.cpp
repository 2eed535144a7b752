// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// elu: with the C library's expm1f.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(const fulcrum_args& a, float x) {
  return x > 0 ? x : static_cast<float>(a.scalar[0].f) * std::expm1(x);
}

}  // namespace

std::span<const fulcrum_kernel> elu() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
