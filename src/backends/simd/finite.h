// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether numbers are all finite, as fast as they can be read.
#pragma once

#include <cstddef>

namespace fulcrum::backends::simd {

/// No NaN and no infinity among the n numbers.
bool all_finite(const float* x, std::size_t n);

}  // namespace fulcrum::backends::simd
