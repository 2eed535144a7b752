// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// relu: a comparison that lets NaN pass.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(float x) { return x <= 0 ? 0 : x; }

}  // namespace

std::span<const fulcrum_kernel> relu() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
