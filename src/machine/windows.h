// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What many short windows say about a ceiling. Noise only ever takes time away, so the ceiling is in the fastest
// windows; but one window alone may owe its speed to a moment of turbo or to a torn clock read.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::machine {

/// Of seconds per unit of work: `value` is what a hundredth of the windows beats (never the very fastest, where there
/// are two), [low, high] reaches from the fastest to the lower quartile. Rejected: mean and median, which measure the
/// neighbours; the minimum, which grows with luck and with the number of windows. NaN if empty.
Quantity best_cost(std::vector<double> costs);
/// The same as work per second.
Quantity best_rate(const std::vector<double>& costs);

}  // namespace fulcrum::machine
