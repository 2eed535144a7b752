// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One rule on one made-up trace: what tests of rules about the timeline begin with.
#pragma once

#include <fulcrum/diagnose.h>
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"

namespace fulcrum::test {

/// A trace with its timeline and everything that refers to them.
struct Traced {
  explicit Traced(GpuTrace t, const trace::Costs& costs = {})
      : trace(std::move(t)),
        timeline(trace::timeline(trace, costs)),
        what_if(trace::what_if(trace, timeline)) {}
  Traced(const Traced&) = delete;

  diagnose::Facts facts() const {
    return {.trace = trace, .timeline = timeline, .what_if = what_if, .roofs = {}};
  }
  diagnose::Looked look(std::string_view id) const {
    for (const diagnose::Rule& rule : diagnose::rules()) {
      if (rule.id == id) return rule.look(facts());
    }
    ADD_FAILURE() << "there is no rule " << id;
    return {};
  }
  std::vector<Finding> findings(std::string_view id) const {
    const diagnose::Looked looked = look(id);
    EXPECT_FALSE(looked.not_checked) << looked.not_checked->why;
    return looked.findings;
  }
  diagnose::Looked without_calls(std::string_view id) const {
    GpuTrace bare = trace;
    bare.calls.clear();
    return Traced(std::move(bare)).look(id);
  }

  GpuTrace trace;
  Timeline timeline;
  WhatIf what_if;
};

/// Seconds an iteration that are saved, as the rule widens them: by a twentieth and a point at either end, where the
/// model has no error and all iterations take the same time.
inline void expect_saved(const Finding& finding, double low_us, double high_us, double of_us) {
  EXPECT_NEAR(finding.saved_low, std::max(0.0, 0.95 * low_us / of_us - 0.01), 0.003) << finding.claim;
  EXPECT_NEAR(finding.saved_high, 1.05 * high_us / of_us + 0.01, 0.003) << finding.claim;
}

/// Programs with nothing wrong in them.
inline std::vector<std::pair<std::string, GpuTrace>> clean_traces() {
  return {{"training step", clean_training_step()},
          {"graph inference", graph_inference_loop()},
          {"multi stream", multi_stream()},
          {"multi process", multi_process()}};
}

inline void expect_silent_on_clean(std::string_view id) {
  for (auto& [name, trace] : clean_traces()) {
    const Traced traced(std::move(trace));
    for (const Finding& finding : traced.look(id).findings) ADD_FAILURE() << name << ": " << finding.claim;
  }
}

}  // namespace fulcrum::test
