// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole traces through timeline, simulation and all rules: silent on clean programs, and what must not change an answer.
#include <cmath>
#include <set>

#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

using namespace fulcrum::test;

std::string told(const Diagnosis& diagnosis) {
  std::string text = diagnosis.verdict + "\n";
  for (const Finding& f : diagnosis.findings) {
    text += f.id + " [" + f.subject + "] " + f.claim + " " + std::to_string(f.saved_low) + ".." +
            std::to_string(f.saved_high) + "\n";
  }
  return text;
}

TEST(CleanPrograms, HaveNoFindings) {
  const std::pair<const char*, GpuTrace> clean[] = {{"training step", clean_training_step()},
                                                    {"graph inference", graph_inference_loop()},
                                                    {"several streams", multi_stream()},
                                                    {"several processes", multi_process()}};
  for (const auto& [name, trace] : clean) {
    const Handle scene = real(trace);
    const Diagnosis diagnosis = diagnose(scene->facts());
    EXPECT_TRUE(diagnosis.findings.empty()) << name << "\n" << told(diagnosis);
    EXPECT_FALSE(diagnosis.unreliable) << name;
    EXPECT_NE(diagnosis.verdict.find("Nothing was found"), std::string::npos) << diagnosis.verdict;
  }
}

// A small grid on the critical path, a kernel with a tail beside it.
GpuTrace two_defects(double scale = 1) {
  TraceCosts costs;
  const auto scaled = [&](std::int64_t ns) { return std::int64_t(std::llround(double(ns) * scale)); };
  for (std::int64_t* ns : {&costs.launch_call, &costs.launch_latency, &costs.back_to_back, &costs.sync_call,
                           &costs.sync_return, &costs.alloc_call, &costs.copy_call, &costs.copy_floor}) {
    *ns = scaled(*ns);
  }
  TraceBuilder t(costs);
  for (int step = 0; step < 10; ++step) {
    t.launch("narrow(float*)", 33, 1024, scaled(1'000'000));
    t.launch("ragged(float*)", 264 * 11 / 10, 1024, scaled(500'000));
    t.launch("filled(float*)", 1056 * 4, 256, scaled(700'000));
  }
  t.device_sync();
  return t.trace();
}

TEST(WholeTraces, BothDefectsAreFoundInTheirOrder) {
  const Handle scene = real(two_defects());
  const Diagnosis diagnosis = diagnose(scene->facts());
  ASSERT_GE(diagnosis.findings.size(), 2U) << told(diagnosis);
  EXPECT_EQ(diagnosis.findings[0].id, "small_grid") << told(diagnosis);
  EXPECT_EQ(diagnosis.findings[1].id, "tail") << told(diagnosis);
  EXPECT_NEAR(diagnosis.findings[0].saved_high, 1.03 * 0.75 * 1000 / 2203, 0.005);  // with its margin
  EXPECT_LE(diagnosis.together_high,
            diagnosis.findings[0].saved_high + diagnosis.findings[1].saved_high + 1e-9);
  EXPECT_GT(diagnosis.together_high, diagnosis.findings[0].saved_high);
}

TEST(WholeTraces, WhatStampsKeepApartIsCountedWhereLittleStays) {
  // Of a step of 105 us a kernel of one block is 100, and two others of 1 us are queued behind it.
  TraceBuilder t;
  for (int step = 0; step < 200; ++step) {
    t.launch("narrow(float*)", 1, 256, 100'000);
    for (int i = 0; i < 2; ++i) t.launch("short_" + std::to_string(i) + "(float*)", 1056, 256, 1'000);
  }
  const Diagnosis diagnosis = diagnose(real(t.trace())->facts());
  ASSERT_GE(diagnosis.findings.size(), 1U) << told(diagnosis);
  EXPECT_EQ(diagnosis.findings[0].id, "small_grid");
  // 2 us stay of the narrow one, 2 of the others, 3 between them, of which stamps may make 0.55 each.
  const double step = 105, left = 7, apart = 3 * 0.55;
  const double high = (step - left) / (step - apart);
  EXPECT_NEAR(diagnosis.findings[0].saved_high, high + 0.03 * (1 - high), 0.002);
}

TEST(WholeTraces, ScalingAllTimesKeepsShares) {
  const Handle one = real(two_defects(1)), four = real(two_defects(4));
  const Diagnosis a = diagnose(one->facts()), b = diagnose(four->facts());
  ASSERT_EQ(a.findings.size(), b.findings.size());
  for (std::size_t i = 0; i < a.findings.size(); ++i) {
    EXPECT_EQ(a.findings[i].id, b.findings[i].id);
    EXPECT_NEAR(a.findings[i].saved_high, b.findings[i].saved_high, 2e-3);
  }
}

TEST(WholeTraces, AnIdleStreamChangesNothing) {
  GpuTrace trace = two_defects();
  const std::string before = told(diagnose(real(trace)->facts()));
  trace.streams.push_back({.process = 0, .device = 0, .id = 99});
  EXPECT_EQ(before, told(diagnose(real(trace)->facts())));
}

TEST(WholeTraces, TheSameFactsGiveTheSameText) {
  EXPECT_EQ(told(diagnose(real(pytorch_like_step())->facts())),
            told(diagnose(real(pytorch_like_step())->facts())));
}

TEST(WholeTraces, WithoutCallsRulesThatNeedThemAreNotChecked) {
  GpuTrace trace = pytorch_like_step();
  const Diagnosis with = diagnose(real(trace)->facts());
  trace.calls.clear();
  const Diagnosis without = diagnose(real(trace)->facts());
  EXPECT_GT(without.not_checked.size(), with.not_checked.size());
  const std::set<std::string> fine_with(with.fine.begin(), with.fine.end());
  std::set<std::string> spoke;
  for (const Finding& finding : with.findings) spoke.insert(finding.id);
  for (const std::string& id : without.fine) {
    EXPECT_EQ(spoke.count(id), 0U) << id << " spoke with the calls there and is fine without them";
  }
}

TEST(WholeTraces, AKernelOffTheCriticalPathGainsNothing) {
  TraceBuilder t;
  const auto main = t.stream().current_stream(), side = t.stream().current_stream();
  for (int step = 0; step < 10; ++step) {
    t.on_stream(side).launch("narrow(float*)", 33, 256, 300'000).record_event(1);
    t.on_stream(main).launch("filled(float*)", 1056 * 8, 256, 1'000'000).stream_wait(1);
    t.launch("join(float*)", 1056 * 4, 256, 100'000);
  }
  t.device_sync();
  const Handle scene = real(t.trace());
  const Diagnosis diagnosis = diagnose(scene->facts());
  for (const Finding& finding : diagnosis.findings) EXPECT_NE(finding.id, "small_grid") << finding.claim;
}

TEST(WholeTraces, LaunchBoundKernelsDoNotCountAsSmallGrids) {
  const Handle scene = real(pytorch_like_step());
  for (const Finding& finding : diagnose(scene->facts()).findings) {
    EXPECT_NE(finding.id, "small_grid") << finding.claim;  // the host is the limit
    EXPECT_NE(finding.id, "tensor_unused") << finding.claim;
  }
}

}  // namespace
}  // namespace fulcrum::diagnose::test
