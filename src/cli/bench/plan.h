// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a bench command line asks for, checked before anything is measured: which kernels on which shapes, in which
// regime and cache state, and against which baseline.
#pragma once

#include <fulcrum/measure.h>
#include <fulcrum/report.h>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// Kernels that are measured on the same problem, one after the other.
struct Group {
  const ops::Op* op = nullptr;
  Shape shape;  // complete
  Regime regime = Regime::host;
  Cache cache = Cache::warm;
  std::vector<backends::Kernel> kernels;     // the baseline last, when it was not asked for by itself
  std::optional<backends::Kernel> baseline;  // --vs
};

struct Plan {
  std::vector<Group> groups;
  std::vector<report::NotMeasured> not_measured;  // kernels that do not take their shape
  std::size_t cases() const;
};

Result<Plan> make_plan(const Options& options);

/// Names that --suite takes: `all`, and the categories of ops.
Names suite_names();
Names variant_names();

/// A row without a result: its op, shape, kernel, regime and cache state, from which its stable name is made.
Measurement row_of(const Group& group, const backends::Kernel& kernel);
/// Stable name of a comparison in the run record.
std::string comparison_key(const Comparison& comparison);

/// How to time, from the options that say so.
measure::Config config_of(const Options& options, Context& context);

}  // namespace fulcrum::cli
