// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What happens to findings after the rules: thresholds, order, and the sentence above them.
#pragma once

#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

/// Findings that are shown at most.
inline constexpr std::size_t kMostFindings = 5;
/// Simulated with nothing changed, a run must come out this close to what was observed.
inline constexpr double kMostModelError = 0.03;
/// Records lost, or out of order, of all: above it findings are unreliable.
inline constexpr double kMostLost = 0.001;

/// The high end reaches the threshold and twice the model's own error, or the finding never had a gain.
bool worth_showing(const Facts&, const Finding&);
/// `info` without a gain, and where the low end is nothing to speak of and the high end below a tenth; `of_rule`: the high
/// ends of all findings of its rule.
Severity severity_of(const Facts&, const Finding&, double of_rule = 0);
/// Largest middle of the range first; where two ranges overlap and are of one size, the better evidence. Without a
/// gain: last, as they came.
void rank(std::vector<Finding>&);

/// Rules that say nothing while a kernel leaves most SMs idle: what they see is the SMs that work.
bool waits_for_parallelism(std::string_view rule);

/// What makes every other finding doubtful, as sentences; empty: nothing.
std::vector<std::string> doubts(const Facts&);

std::string verdict(const Facts&, const Diagnosis&);

}  // namespace fulcrum::diagnose
