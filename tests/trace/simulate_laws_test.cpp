// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What holds for the simulation of every run: it reproduces it, it scales with it, and it says when it cannot.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/traces.h"
#include "trace/simulated.h"

namespace fulcrum::test {
namespace {

struct Ready {
  const char* name;
  GpuTrace (*make)();
};
const Ready kReady[] = {
    {"clean_training_step", [] { return clean_training_step(); }},
    {"graph_inference_loop", [] { return graph_inference_loop(); }},
    {"copy_bound", [] { return copy_bound(); }},
    {"launch_bound", [] { return launch_bound(); }},
    {"multi_stream", [] { return multi_stream(); }},
    {"multi_process", [] { return multi_process(); }},
    {"pytorch_like_step", [] { return pytorch_like_step(); }},
};

TEST(SimulationLaws, ReproducesEveryReadyMadeTraceUnchanged) {
  for (const Ready& ready : kReady) {
    const GpuTrace trace = ready.make();
    const Timeline timeline = trace::timeline(trace);
    EXPECT_TRUE(timeline.simulated) << ready.name << ": " << timeline.why_not;
    EXPECT_LE(timeline.model_error, 0.03) << ready.name;
    EXPECT_EQ(trace::what_if(trace, timeline)(Change{}).seconds, 0) << ready.name;
  }
}

TEST(SimulationLaws, ScalingAllTimesScalesGains) {
  constexpr int kFactor = 3;
  for (const Ready& ready : kReady) {
    const GpuTrace trace = ready.make();
    GpuTrace slow = trace;
    for (auto& op : slow.ops) op.begin_ns *= kFactor, op.end_ns *= kFactor;
    for (auto& call : slow.calls) call.begin_ns *= kFactor, call.end_ns *= kFactor;
    for (auto& range : slow.ranges) range.begin_ns *= kFactor, range.end_ns *= kFactor;
    for (auto& overhead : slow.overheads) overhead.begin_ns *= kFactor, overhead.end_ns *= kFactor;
    const trace::Costs costs{.from = "test",
                             .back_to_back_seconds = 1e-6,
                             .launch_seconds = 2.2e-6,
                             .launch_latency_seconds = 1.8e-6};
    trace::Costs slow_costs = costs;
    slow_costs.back_to_back_seconds *= kFactor, slow_costs.launch_seconds *= kFactor;
    slow_costs.launch_latency_seconds *= kFactor;
    const Timeline timeline = trace::timeline(trace, costs), slow_line = trace::timeline(slow, slow_costs);
    ASSERT_TRUE(timeline.simulated && slow_line.simulated) << ready.name;
    Change change, slow_change;
    for (std::uint32_t i = 0; i < trace.ops.size(); ++i) {
      change.op_ns[i] = trace.ops[i].duration_ns() / 2;
      slow_change.op_ns[i] = kFactor * change.op_ns[i];
    }
    for (std::uint32_t c = 0; c < trace.calls.size(); c += 3) change.no_wait.insert(c);
    slow_change.no_wait = change.no_wait;
    change.host_scale = slow_change.host_scale = 0.75;
    const double saved = trace::what_if(trace, timeline)(change).seconds;
    EXPECT_NEAR(trace::what_if(slow, slow_line)(slow_change).seconds, kFactor * saved,
                1e-6 * kFactor * timeline.seconds)
        << ready.name;
    EXPECT_GT(saved, 0) << ready.name;
  }
}

TEST(SimulationLaws, TheOrderOfRecordsDoesNotMatter) {
  const GpuTrace trace = pytorch_like_step();
  GpuTrace shuffled = trace;
  std::mt19937 random(7);
  std::shuffle(shuffled.ops.begin(), shuffled.ops.end(), random);
  std::shuffle(shuffled.calls.begin(), shuffled.calls.end(), random);
  const Timeline a = trace::timeline(trace), b = trace::timeline(shuffled);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.model_error, b.model_error);
  EXPECT_EQ(a.iterations.begins_ns, b.iterations.begins_ns);
  EXPECT_EQ(a.gaps.size(), b.gaps.size());
  EXPECT_EQ(trace::what_if(trace, a)({.host_scale = 0.7}).seconds,
            trace::what_if(shuffled, b)({.host_scale = 0.7}).seconds);
}

TEST(SimulationLaws, AnIdleStreamAndAnIdleThreadChangeNothing) {
  const GpuTrace trace = multi_stream();
  GpuTrace more = trace;
  more.streams.push_back({.process = 0, .device = 0, .id = 99, .legacy_default = false, .blocking = true});
  more.threads.push_back({.process = 0, .tid = 4242, .name = "idle"});
  const Timeline a = trace::timeline(trace), b = trace::timeline(more);
  const Change change{.op_ns = {{0, 1}, {5, 1}, {50, 1}}, .host_scale = 0.5};
  EXPECT_EQ(trace::what_if(trace, a)(change).seconds, trace::what_if(more, b)(change).seconds);
}

TEST(SimulationLaws, WithoutCallsThereIsNone) {
  GpuTrace trace = pytorch_like_step();
  trace.calls.clear();
  const Timeline timeline = trace::timeline(trace);
  EXPECT_FALSE(timeline.simulated);
  EXPECT_NE(timeline.why_not.find("calls"), std::string::npos) << timeline.why_not;
  EXPECT_FALSE(trace::what_if(trace, timeline));
  GpuTrace half = pytorch_like_step();
  std::erase_if(half.calls, [](const GpuTrace::Call& call) { return call.correlation % 2 == 0; });
  EXPECT_FALSE(trace::timeline(half).simulated);
}

TEST(SimulationLaws, ADelayThatNothingExplainsIsAModelError) {
  // A queued kernel that begins a second late for no reason in the trace.
  TraceBuilder t;
  t.stream();
  for (int i = 0; i < 8; ++i) t.launch("k", 132, 256, 100'000);
  GpuTrace trace = t.trace();
  for (std::size_t i = 4; i < 8; ++i) {
    trace.ops[i].begin_ns += 1'000'000'000;
    trace.ops[i].end_ns += 1'000'000'000;
  }
  const Timeline timeline = trace::timeline(trace);
  EXPECT_FALSE(timeline.simulated);
  EXPECT_GT(timeline.model_error, 0.9);
  EXPECT_FALSE(trace::what_if(trace, timeline));
}

TEST(SimulationLaws, TakesTwoHundredThousandOps) {
  const GpuTrace trace = pytorch_like_step(2'600);
  ASSERT_GT(trace.ops.size(), 200'000u);
  const Timeline timeline = trace::timeline(trace);
  ASSERT_TRUE(timeline.simulated) << timeline.why_not;
  EXPECT_GT(trace::what_if(trace, timeline)({.host_scale = 0.5}).share, 0.3);
}

/// Numbers and times as a broken file may have them.
void damage(GpuTrace& trace, std::mt19937_64& random) {
  const auto odd = [&]() -> std::int64_t {
    const std::int64_t values[] = {-1, 0, std::int64_t(random() % 100), std::int64_t(random() >> 14)};
    return values[random() % 4];
  };
  for (int i = 0; i < 20; ++i) {
    GpuTrace::Op& op = trace.ops[random() % trace.ops.size()];
    GpuTrace::Call& call = trace.calls[random() % trace.calls.size()];
    switch (random() % 8) {
      case 0:
        op.begin_ns = odd();
        break;
      case 1:
        op.end_ns = odd();
        break;
      case 2:
        op.stream = op.shape = std::uint32_t(odd());
        break;
      case 3:
        op.correlation = call.correlation;
        break;
      case 4:
        call.begin_ns = odd();
        break;
      case 5:
        call.thread = std::uint32_t(odd());
        break;
      case 6:
        call.stream = odd();
        break;
      default:
        trace.windows.push_back({.process = std::uint32_t(random() % 2), .begin_ns = odd(), .end_ns = odd()});
    }
  }
}

TEST(SimulationLaws, DamageIsSurvived) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 30; ++round) {
    for (const Ready& ready : kReady) {
      GpuTrace trace = ready.make();
      damage(trace, random);
      const Timeline timeline = trace::timeline(trace);
      EXPECT_GE(timeline.seconds, 0) << ready.name;
      EXPECT_LE(timeline.busy_share(), 1 + 1e-9) << ready.name;
      if (const auto what_if = trace::what_if(trace, timeline)) {
        EXPECT_TRUE(
            std::isfinite(what_if({.gone = {0, 1, 2}, .own_stream = {3, 4}, .host_scale = 0.5}).share));
      }
    }
  }
}

TEST(SimulationLaws, IgnoresNumbersThatAreNotInTheTrace) {
  const GpuTrace trace = launch_bound(3);
  EXPECT_EQ(saved_ns(trace, {.op_ns = {{1'000'000, 1}},
                             .call_ns = {{1'000'000, 1}},
                             .no_wait = {1'000'000},
                             .not_launched = {1'000'000},
                             .gone = {1'000'000},
                             .own_stream = {},
                             .host_before_ns = {{1'000'000, 1}}}),
            0);
}

}  // namespace
}  // namespace fulcrum::test
