// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// --suite with a file: its rows as a plan, and what was measured beside what its system said.
#pragma once

#include "cli/bench/plan.h"
#include "cli/bench/scaling.h"

namespace fulcrum::cli {

/// --suite names a suite, shipped or the user's, and not a set of ops.
bool asks_for_suite(const Options& options);
/// Adds the rows, and with --scaling the sizes of their sweeps. A row that cannot be measured here is reported.
Status plan_suite(BenchPlan& plan, const Options& options);

/// One result and the group it was measured for.
struct SuiteResult {
  const Group* group = nullptr;
  const Measurement* row = nullptr;
};

/// One row of the suite and its results, each kernel of each regime; none: it was skipped or failed.
struct SuiteLine {
  const SuiteRow* row = nullptr;
  std::vector<const Measurement*> results;

  /// The fastest valid one of a regime; null: none.
  const Measurement* best(Regime regime) const;
};
/// Lines in the order of the suite; rows of it that were not asked for are left out.
std::vector<SuiteLine> suite_lines(const BenchPlan& plan, const std::vector<SuiteResult>& results);

/// PRISM-AI's warnings about one measurement: SLOW, HIGH VARIANCE, OUTLIERS.
enum class Warning : std::uint8_t { slow, high_variance, outliers };
std::string_view to_string(Warning);
std::vector<Warning> warnings_of(const SuiteTargets& targets, const Estimate& seconds);

/// The families of --scaling: sweeps by row, and rows of one op.
std::vector<Family> suite_families(const std::vector<SuiteResult>& results);

/// What takes the place of the ordinary tables: those of a suite with targets. Empty otherwise.
std::string target_tables(const Suite& suite, const std::vector<SuiteLine>& lines, const Context& context);
/// What to do about every warning, and in general.
std::vector<std::string> advice(const Suite& suite, const std::vector<SuiteLine>& lines);
/// What that system said beside what was measured; empty when it said nothing about these rows.
std::string claims_text(const Suite& suite, const std::vector<SuiteLine>& lines, const Context& context);
/// "200 us to 500 us", "7x", "45 %".
std::string figure_text(const Figure& figure, std::string_view unit);

/// --format csv: the columns of every bench, then those of the suite; a result that serves two rows has two lines.
std::string suite_csv(const Suite& suite, const report::BenchDocument& document,
                      const std::vector<SuiteResult>& results, const std::vector<SuiteLine>& lines);
/// --format markdown: what stands above the table of all measurements.
std::string suite_markdown(const Suite& suite, const std::vector<SuiteLine>& lines);

Json suite_json(const BenchPlan& plan, const std::vector<SuiteLine>& lines,
                const std::vector<Measurement>& results);

}  // namespace fulcrum::cli
