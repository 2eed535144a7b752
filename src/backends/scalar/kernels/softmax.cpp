// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax: with the C library's expf, twice an element.
#include "backends/scalar/softmax.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

void write(const float* x, float* out, std::int64_t n, const ops::SoftmaxPart& row) {
  const auto sum = static_cast<float>(row.sum);
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::exp(x[i] - row.max) / sum;
}

}  // namespace

std::span<const fulcrum_kernel> softmax() {
  static const fulcrum_kernel kernels[] = {make_kernel(1, run_rows<write>, partial_rows<write>)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
