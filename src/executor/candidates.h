// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Who may run an op: the kernels of the CPU's backends and of the device, numbered.
#pragma once

#include "executor/dispatch.h"

namespace fulcrum::executor {

/// CPU kernels in the order of their backends, then the device's. Plain code is listed only for types that no
/// vectorised kernel takes. At most kMostCandidates: what comes after them is left out, with a warning.
std::vector<Candidate> candidates_of(const ops::Op& op, const backends::Backend* device);

/// Candidates that may run under the default policy: precision of the operands or fp32, first type of the op.
Mask default_mask(const ops::Op& op, std::span<const Candidate> candidates);
Mask mask_of(std::span<const Candidate> candidates, Place place);
/// Candidates whose operands have this type.
Mask mask_of(const ops::Op& op, std::span<const Candidate> candidates, DType dtype);

}  // namespace fulcrum::executor
