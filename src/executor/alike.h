// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether two kernels answered one call alike: values to within the rounding of their precision, whole numbers (ids,
// classes) exactly. Where they differ the op itself may say that the result is right all the same, since ids may tie.
#pragma once

#include "executor/facts.h"

namespace fulcrum::executor {

/// `got` and `trusted`: the same call, all operands on the host, each with results of its own. `reduced`: one of the
/// kernels rounds its inputs further than fp32. Differences are judged by the op, in about a second at most.
bool alike(const OpFacts& facts, DType dtype, const Args& got, const Args& trusted, bool reduced);

}  // namespace fulcrum::executor
