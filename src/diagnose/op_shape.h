// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels whose shape is known: those that ran inside a range named "op NAME K=V,...", as `bench --diagnose` marks
// its rows. For them a rule can say what other tiles would allow.
#pragma once

#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

struct NamedOp {
  std::string name;
  Shape shape;
};
/// Of the range that the kernel's first launch began in; none: no such range.
std::optional<NamedOp> op_of(const Facts&, const Timeline::Kernel&);

/// How many blocks each tile size would allow; none: no model of how this op falls into tiles.
std::optional<model::Occupancy> tile_choices(const NamedOp&, double blocks, int sms, int blocks_per_sm);

}  // namespace fulcrum::diagnose
