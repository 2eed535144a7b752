// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The branches and pieces of dendritic_integration.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// What a dendrite makes of its sum x.
enum DendriteType {
  kDendriteSigmoid,         ///< 1 / (1 + exp(-10 (x - 0.5)))
  kDendriteNmda,            ///< -x / (1 + exp(-0.062 x))
  kDendriteActive,          ///< x > 0.3 ? 2 (x - 0.3) exp(-0.5 |x|) : 0.1 x
  kDendriteMultiplicative,  ///< tanh(x)
};

/// Piece i is neurons 16 i .. : the outputs of a piece fill a cache line.
inline constexpr std::int64_t kDendriticNeurons = 16;

}  // namespace fulcrum::ops
