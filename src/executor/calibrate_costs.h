// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What moving data to a device and back costs, measured through the functions that move it.
#pragma once

#include "executor/points.h"

namespace fulcrum::executor {

Result<Costs> measure_costs(const backends::Backend& device, const measure::Clock& clock);
/// Of several looks at one machine, at least one: what moves in the mean of their logarithms, forks as the first look has them.
Costs costs_of(std::span<const Costs> looks);
/// More bytes never take less: a disturbed knot gives way to the one after it. At least one knot.
void grow(LinkCurve& curve);

}  // namespace fulcrum::executor
