// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a convolution, one fma chain per output.
#pragma once

#include <fulcrum/ops/conv2d.h>

namespace fulcrum::backends::scalar {

/// Output rows [begin, end) of one image, the first of them at `y`. The fma instruction where the CPU has it, libm's
/// function elsewhere: the same bits, 4 to 11 times slower.
void conv2d_rows(const ops::Conv2d& geometry, const float* x, const float* k, std::int64_t begin,
                 std::int64_t end, float* y);

}  // namespace fulcrum::backends::scalar
