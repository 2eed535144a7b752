// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// clip: two comparisons that let NaN pass.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(const fulcrum_args& a, float x) {
  const auto lo = static_cast<float>(a.scalar[0].f), hi = static_cast<float>(a.scalar[1].f);
  const float raised = x < lo ? lo : x;
  return raised > hi ? hi : raised;
}

}  // namespace

std::span<const fulcrum_kernel> clip() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
