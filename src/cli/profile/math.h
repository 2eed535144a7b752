// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Scalar functions of the math library below a row: a loop that calls one for each element uses one lane of the CPU's
// vectors, and another build of the same source may use all of them.
#pragma once

#include <fulcrum/core/profile.h>
#include <fulcrum/machine.h>

#include <map>

namespace fulcrum::cli {

/// "pow" for a frame in `pow` or `__pow_fma` of libm, "libm" for one without a name; empty: no scalar math function.
std::string math_function(const Frame& frame);

struct VectorMath {
  double share = 0;  // of the row's CPU time in scalar math functions
  double gain = 1;   // their vector versions together, on this CPU's widest vectors
  std::string text;  // "84 % of it is scalar pow, exp"; empty: below a tenth
};
/// Of the parts of a row's CPU time that each function takes.
VectorMath vector_math_of(const std::map<std::string, double>& parts, const CpuCeilings& cpu);

}  // namespace fulcrum::cli
