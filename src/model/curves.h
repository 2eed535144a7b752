// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Two curves of seconds over size: what one is at any size, and where one crosses the other.
#pragma once

#include <fulcrum/model.h>

namespace fulcrum::model {

enum class Bound : std::uint8_t { value, low, high };
/// Log-log between neighbours; n inside the curve.
double seconds_at(std::span<const CurvePoint> curve, double n, Bound bound = Bound::value);
/// Sizes at which both curves are known: the union of their own, inside both ranges.
std::vector<double> common_sizes(std::span<const CurvePoint> cpu, std::span<const CurvePoint> gpu);
/// Sizes where `gpu` lies below `cpu`, each bound as named; edges by log-log interpolation.
std::vector<BreakEven::Window> winning_windows(std::span<const CurvePoint> cpu, Bound cpu_bound,
                                               std::span<const CurvePoint> gpu, Bound gpu_bound);
/// "240K", "1.5M", "12"
std::string size_text(double n);

}  // namespace fulcrum::model
