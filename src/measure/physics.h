// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the checks against physics of the CPU and of the GPU share.
#pragma once

#include <string>
#include <string_view>

namespace fulcrum::measure {

inline constexpr double kTolerance = 1.02;
inline constexpr double kUnknown = 0;  // a rate that was not measured

/// "512 GB/s is above 1.02 x 400 GB/s, the measured peak of L2".
std::string too_fast(double rate, double peak, std::string_view unit, std::string_view what);

}  // namespace fulcrum::measure
