// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a typed call below a guard takes longer than its kernel alone, measured where it is asked for.
#pragma once

#include <fulcrum/executor.h>

namespace fulcrum::executor {

/// Median over rounds in turn, never below 0; 0 too where there is no guard.
double guard_cost(const Executor& executor, const measure::Clock& clock);

}  // namespace fulcrum::executor
