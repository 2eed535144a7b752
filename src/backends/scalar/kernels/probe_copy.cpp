// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy: one load and one store of four bytes at a time.
#include "backends/scalar/probe.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

void sweep(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const auto* x = a.in<float>(0);
  auto* y = a.out<float>(1);
  for (std::int64_t pass = 0; pass < a.scalar[0].i; ++pass) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = x[i];
      end_of_pass();
    }
  }
}

}  // namespace

std::span<const fulcrum_kernel> probe_copy() {
  static const fulcrum_kernel kernels[] = {sweep_kernel<sweep>()};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
