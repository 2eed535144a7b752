// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A trace with its timeline, ready to be diagnosed. `plain` makes the timeline by hand and lets every nanosecond that an
// op loses count, so that gains of single rules are exact; `real` uses the timeline and the simulation of the library.
#pragma once

#include <fulcrum/diagnose.h>
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <memory>

#include "support/traces.h"

namespace fulcrum::diagnose::test {

using fulcrum::test::TraceBuilder;

struct Scene {
  GpuTrace trace;
  Timeline timeline;
  WhatIf what_if;
  Roofs roofs;

  Facts facts() const {
    return Facts{.trace = trace, .timeline = timeline, .what_if = what_if, .roofs = roofs};
  }
  Timeline::Kernel& kernel(std::string_view name) {
    for (Timeline::Kernel& kernel : timeline.kernels) {
      if (trace.shapes[kernel.shape].name.find(name) != std::string::npos) return kernel;
    }
    ADD_FAILURE() << "no kernel " << name;
    return timeline.kernels.front();
  }
};
using Handle = std::unique_ptr<Scene>;  // the simulation keeps references

/// Gaps do not count: the timeline is as long as its ops.
inline Handle plain(GpuTrace trace) {
  auto scene = std::make_unique<Scene>();
  scene->trace = std::move(trace);
  Timeline& timeline = scene->timeline;
  std::map<std::uint32_t, Timeline::Kernel> kernels;
  double ns = 0;
  for (std::uint32_t i = 0; i < scene->trace.ops.size(); ++i) {
    const GpuTrace::Op& op = scene->trace.ops[i];
    ns += double(op.duration_ns());
    timeline.end_ns = std::max(timeline.end_ns, op.end_ns);
    if (op.kind != GpuOpKind::kernel) continue;
    Timeline::Kernel& kernel = kernels[op.shape];
    kernel.shape = op.shape;
    kernel.ops.push_back(i);
    kernel.seconds += double(op.duration_ns()) * 1e-9;
    kernel.median_ns = double(op.duration_ns());
  }
  timeline.begin_ns = scene->trace.ops.empty() ? 0 : scene->trace.ops.front().begin_ns;
  timeline.seconds = ns * 1e-9;
  timeline.simulated = true;
  for (auto& [number, kernel] : kernels) {
    const LaunchShape& shape = scene->trace.shapes[number];
    kernel.share = kernel.seconds / timeline.seconds;
    kernel.waves =
        shape.blocks() / (double(scene->trace.devices.front().sms) * std::max(1, shape.blocks_per_sm));
    timeline.kernels.push_back(kernel);
  }
  std::stable_sort(timeline.kernels.begin(), timeline.kernels.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  timeline.devices.push_back({.busy_seconds = timeline.seconds,
                              .kernel_seconds = timeline.seconds,
                              .ops = double(scene->trace.ops.size())});
  scene->what_if = [&s = *scene](const Change& change) {
    double saved_ns = 0;
    for (const auto& [op, new_ns] : change.op_ns) saved_ns += double(s.trace.ops[op].duration_ns() - new_ns);
    return Saved{saved_ns * 1e-9, saved_ns * 1e-9 / s.timeline.seconds};
  };
  return scene;
}

inline Handle real(GpuTrace trace) {
  auto scene = std::make_unique<Scene>();
  scene->trace = std::move(trace);
  scene->timeline = trace::timeline(scene->trace);
  if (scene->timeline.simulated) scene->what_if = trace::what_if(scene->trace, scene->timeline);
  return scene;
}

inline Looked look(std::string_view rule, const Scene& scene) {
  for (const Rule& one : rules()) {
    if (one.id == rule) return one.look(scene.facts());
  }
  ADD_FAILURE() << "no rule " << rule;
  return {};
}

/// The only finding of a rule; a failure and an empty one otherwise.
inline Finding only(std::string_view rule, const Scene& scene) {
  Looked looked = look(rule, scene);
  EXPECT_FALSE(looked.not_checked) << looked.not_checked->why;
  EXPECT_EQ(looked.findings.size(), 1U) << rule;
  return looked.findings.empty() ? Finding{} : looked.findings.front();
}

inline bool silent(std::string_view rule, const Scene& scene) {
  const Looked looked = look(rule, scene);
  for (const Finding& finding : looked.findings) ADD_FAILURE() << rule << ": " << finding.claim;
  return looked.findings.empty() && !looked.not_checked;
}

inline bool is_not_checked(std::string_view rule, const Scene& scene) {
  const Looked looked = look(rule, scene);
  return looked.findings.empty() && looked.not_checked && looked.not_checked->rule == rule &&
         !looked.not_checked->why.empty() && !looked.not_checked->hint.empty();
}

inline std::string all_text(const Finding& finding) {
  std::string text = finding.claim;
  for (const std::string& line : finding.evidence) text += "\n" + line;
  return text + "\n" + finding.next_step;
}

}  // namespace fulcrum::diagnose::test
