// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The shapes of a bench run: as typed, or the op's own.
#pragma once

#include <fulcrum/ops.h>

#include "cli/options.h"

namespace fulcrum::cli {

/// A shape as typed, completed and checked: there is something to measure, and this machine can hold it.
Result<Shape> checked_shape(const ops::Op& op, std::string_view text);
/// Those of --shape; else the middle one of the op's standard sizes, or with --scaling all that differ in size only.
Result<std::vector<Shape>> chosen_shapes(const Options& options, const ops::Op& op);

}  // namespace fulcrum::cli
