// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that a regret is measured on: drawn from the sizes of an op, half of them where the answer is about to change.
#pragma once

#include <fulcrum/executor/regret.h>

#include <cmath>

#include "executor/op_table.h"
#include "executor/shapes.h"

namespace fulcrum::executor {

inline constexpr std::int64_t kScoreBytes = std::int64_t{128} << 20;  // operands of a call at most

/// "one thread", "threads" or "device".
std::string_view class_of(const Candidate& candidate);
/// Kernels of the default policy that can do the call.
Mask possible_of(const OpTable& table, const Args& args);

/// Of the best times of each class; kNoWay: none can do the call.
inline constexpr double kNoWay = INFINITY;
Band band_of(double single, double threads, double device);

struct RegretCall {
  Args args{};
  Case which = Case::cpu_only;
  Band band = Band::none;
};
/// `wants_band`: one in the device's band if any is found, else one in that of threads; otherwise one in none.
std::optional<RegretCall> draw_call(const OpTable& table, ShapeSource& source, Case which, bool wants_band);

}  // namespace fulcrum::executor
