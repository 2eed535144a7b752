// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a bench command line asks for, checked before anything is measured: which kernels on which shapes, in which
// regime and cache state, and against which baseline.
#pragma once

#include <fulcrum/core/suite.h>
#include <fulcrum/measure.h>
#include <fulcrum/ops/inputs.h>
#include <fulcrum/report.h>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// Why a suite wants a group: as one of its rows, or as one size of a row's sweep.
struct Role {
  const SuiteRow* row = nullptr;
  const Sweep* sweep = nullptr;  // null: the row itself
};

/// Kernels that are measured on the same problem, one after the other.
struct Group {
  const ops::Op* op = nullptr;
  Shape shape;  // complete
  Regime regime = Regime::host;
  std::int64_t reuse = 1;  // regime reuse: calls per transfer
  std::string path = {};   // regimes whose operands travel: how
  Cache cache = Cache::warm;
  std::vector<backends::Kernel> kernels;     // the baseline last, when it was not asked for by itself
  std::optional<backends::Kernel> baseline;  // --vs
  std::vector<backends::Kernel>
      guests;                           // compared with a GPU baseline; their rows are in the group of `host`
  std::vector<backends::Kernel> peers;  // --vs peers: each against the best of `rivals`; in `kernels` too
  ops::InputTexts inputs;               // described inputs; the others are drawn
  std::vector<Role> roles;              // in the plan's suite; empty without one
};

/// The kernels of ours that a peer may be held against: on one thread or on several like it, in its precision where
/// there is one.
std::vector<backends::Kernel> rivals(const Group& group, const backends::Kernel& peer);

/// The kernels that are compared with the baseline.
std::vector<backends::Kernel> compared(const Group& group);

struct BenchPlan {
  std::vector<Group> groups;
  std::vector<report::NotMeasured> not_measured;  // kernels that do not take their shape
  std::shared_ptr<const Suite> suite;             // --suite with a file; roles point into it
  std::size_t cases() const;
};

Result<BenchPlan> make_plan(const Options& options);

/// Adds the op on these shapes, in every regime and cache state asked for; inputs and roles are those of `like`.
Status plan_shapes(BenchPlan& plan, const Options& options, const ops::Op& op,
                   const std::vector<Shape>& shapes, const Group& like);

/// Described inputs from --input.
Result<ops::InputTexts> chosen_inputs(const Options& options, const ops::Op& op);

/// Names that --suite takes: `all`, the categories of ops, and the suites shipped.
Names suite_names();
Names variant_names();
/// Backends that bench may be told to measure or to compare with: the peers are loaded when they are named.
Names measurable_backend_names();

/// A row without a result: its op, shape, kernel, regime and cache state, from which its stable name is made.
Measurement row_of(const Group& group, const backends::Kernel& kernel);
/// Names of a case and of a comparison in the run record: described inputs are part of them.
std::string case_key(const Group& group, const Measurement& row);
std::string comparison_key(const Comparison& comparison, std::string_view inputs = {});
/// The group's problem, with its inputs.
Result<ops::Problem> problem_of(const Group& group);

/// How to time, from the options that say so.
measure::Config config_of(const Options& options, Context& context);

}  // namespace fulcrum::cli
