// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a measured suite, for terminals and for files.
#pragma once

#include <fulcrum/report.h>

#include "cli/bench/suites.h"

namespace fulcrum::cli {

/// The best kernel of a row in one regime: what the tables of a suite with targets show.
struct Shown {
  const SuiteRow* row = nullptr;
  const Measurement* m = nullptr;
  std::string label = {};  // the row's name, and the regime where the row has several
};
std::vector<Shown> shown(const std::vector<SuiteLine>& lines);

report::Table timing_table(const SuiteTargets& targets, const std::vector<Shown>& rows);
/// Budget, claim and targets of each row.
report::Table target_table(const SuiteTargets& targets, const std::vector<Shown>& rows);
/// The best of the CPU beside the best of the GPU in each of its regimes, and the share of the budget that a call on
/// operands in the device's memory takes. Empty without a GPU.
report::Table beside_table(const std::vector<SuiteLine>& lines);
/// Every claim beside the fastest kernel.
report::Table claims_table(const Suite& suite, const std::vector<SuiteLine>& lines);

/// A target that the samples cannot tell is neither met nor missed.
std::optional<bool> below(double value, double limit);
/// "12.3 %", "<0.1 %", "-" when there is none.
std::string percent(double share);
/// "SLOW, OUTLIERS".
std::string flags_text(const SuiteTargets& targets, const Measurement& m);

}  // namespace fulcrum::cli
