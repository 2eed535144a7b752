// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a tape gives in exact arithmetic and how far a kernel may be from it: each step's own bound, and the errors of
// its operands carried through it.
#pragma once

#include <fulcrum/ops.h>
#include <fulcrum/ops/expression.h>

namespace fulcrum::ops {

/// The result for one element; leaf(k) is its value of leaf k.
Truth truth_of(const Tape& bound, const float* leaves);

/// Operations and issue slots of one element.
struct TapeCost {
  double flops = 0, slots = 0;
};
TapeCost cost_of(const Tape& tape);

}  // namespace fulcrum::ops
