// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that a regret is measured on: drawn from the sizes of an op, half of them where the answer is about to change.
#pragma once

#include "executor/op_table.h"
#include "executor/shapes.h"

namespace fulcrum::executor {

inline constexpr std::int64_t kScoreBytes = std::int64_t{128} << 20;  // operands of a call at most

/// "one thread", "threads" or "device".
std::string_view class_of(const Candidate& candidate);
/// Kernels of the default policy that can do the call.
Mask possible_of(const OpTable& table, const Args& args);

struct RegretCall {
  Args args{};
  Case which = Case::cpu_only;
  bool in_band = false;  // the best of another class is predicted within a factor of two
};
std::optional<RegretCall> draw_call(const OpTable& table, ShapeSource& source, Case which, bool wants_band);

}  // namespace fulcrum::executor
