// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// log_softmax: with the C library's expf, once an element.
#include "backends/scalar/softmax.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

void write(const float* x, float* out, std::int64_t n, const ops::SoftmaxPart& row) {
  // The sum is 0 when all are -Inf, and the row then NaN: -Inf - -Inf.
  const auto log_sum = static_cast<float>(std::log(row.sum));
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - row.max) - log_sum;
}

}  // namespace

std::span<const fulcrum_kernel> log_softmax() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_rows<write>, partial_rows<write>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
