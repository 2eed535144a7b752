// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// tanh: the C library's tanhf.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

float value(float x) { return std::tanh(x); }

}  // namespace

std::span<const fulcrum_kernel> tanh() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_map<value>, partial_map<value>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
