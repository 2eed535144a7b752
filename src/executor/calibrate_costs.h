// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What moving data to a device and back costs, measured through the functions that move it.
#pragma once

#include "executor/points.h"

namespace fulcrum::executor {

/// Handing nothing to 2, 4, .. all threads and taking it back, many times over.
void measure_forks(const measure::Clock& clock, Costs& costs);
Result<Costs> measure_costs(const backends::Backend& device, const measure::Clock& clock);

}  // namespace fulcrum::executor
