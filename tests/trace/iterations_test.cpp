// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a program's loop is found, and where none is.
#include <fulcrum/trace.h>
#include <gtest/gtest.h>

#include "support/traces.h"

namespace fulcrum::test {
namespace {

using trace::timeline;

TEST(Iterations, FindsTheStepsOfATrainingLoop) {
  const Timeline line = timeline(pytorch_like_step(40));
  EXPECT_EQ(line.iterations.how, "76 kernels that repeat");
  EXPECT_GE(line.iterations.count(), 38);
  EXPECT_NEAR(line.iterations.low_seconds, line.iterations.median_seconds, 1e-6);
  EXPECT_EQ(line.begin_ns, line.iterations.begins_ns.front());
}

TEST(Iterations, StepsOfSeveralStreamsBeginInTheOneWithMostWork) {
  EXPECT_EQ(timeline(multi_stream()).iterations.how, "4 kernels that repeat");
}

TEST(Iterations, ANamedRangeThatRepeatsIsTheIteration) {
  const Timeline line = timeline(clean_training_step(20));
  EXPECT_EQ(line.iterations.how, "NVTX range 'step'");
  EXPECT_EQ(line.iterations.count(), 20);
  // 8 layers of 400 + 120 us, the optimiser's 300 us, 17 gaps of 1 us: on the GPU, though the host is far ahead.
  EXPECT_NEAR(line.iterations.median_seconds, 4.477e-3, 2e-6);
}

TEST(Iterations, ARangeThatNamesADetailIsNotTheIteration) {
  TraceBuilder t;
  for (int step = 0; step < 30; ++step) {
    if (step < 4) t.range_begin("odd");
    t.launch("a", 132, 256, 100'000);
    if (step < 4) t.range_end();
    t.launch("b", 132, 256, 100'000);
  }
  EXPECT_EQ(timeline(t.trace()).iterations.how, "2 kernels that repeat");
}

TEST(Iterations, RangesThatALibraryPutsAroundItsCallsAreNotTheIteration) {
  TraceBuilder t;
  for (int step = 0; step < 30; ++step) {
    for (int i = 0; i < 4; ++i) {
      t.host_work(20'000)
          .range_begin("library::call")
          .launch("k" + std::to_string(i), 132, 256, 10'000)
          .range_end();
    }
  }
  EXPECT_EQ(timeline(t.trace()).iterations.how, "4 kernels that repeat");
}

TEST(Iterations, NestedRepeatsGiveTheOuterLoop) {
  TraceBuilder t;
  for (int step = 0; step < 25; ++step) {
    for (int layer = 0; layer < 12; ++layer)
      t.launch("gemm", 132, 256, 20'000).launch("norm", 132, 256, 5'000);
    for (int layer = 0; layer < 12; ++layer)
      t.launch("gemm_grad", 132, 256, 40'000).launch("norm", 132, 256, 5'000);
    t.launch("update", 132, 256, 10'000);
  }
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.iterations.how, "49 kernels that repeat");
  EXPECT_NEAR(double(line.iterations.count()), 24, 1);
}

TEST(Iterations, LaunchesThatAllRepeatInAStepAreFoundByTheirNeighbours) {
  TraceBuilder t;
  for (int step = 0; step < 25; ++step) {
    for (const char* name : {"a", "a", "b", "b", "a", "c", "c"}) t.launch(name, 132, 256, 20'000);
  }
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.iterations.how, "7 kernels that repeat");
}

TEST(Iterations, WhatIsSetUpAroundALoopOfOneKernelTellsTheStep) {
  const auto found = [](void (*around)(TraceBuilder&, int round)) {
    TraceBuilder t;
    for (int round = 0; round < 240; ++round) {
      around(t, round);
      t.launch("relax", 132, 256, 20'000);
    }
    return timeline(t.trace()).iterations.how;
  };
  EXPECT_EQ(found([](TraceBuilder&, int) {}), "1 kernel that repeats");
  EXPECT_EQ(found([](TraceBuilder& t, int) { t.alloc(1 << 20); }), "1 kernel that repeats");
  EXPECT_EQ(found([](TraceBuilder& t, int round) {
              if (round % 6 == 0) t.alloc(1 << 20);
            }),
            "6 kernels that repeat");
  EXPECT_EQ(found([](TraceBuilder& t, int round) {  // as a cache that fills
              if (round % 6 == 0 && round < 24) t.alloc(1 << 20);
            }),
            "1 kernel that repeats");
  EXPECT_EQ(found([](TraceBuilder& t, int round) {  // now and then
              if (round % 7 == 1 || round % 7 == 3) t.alloc(1 << 20);
            }),
            "1 kernel that repeats");
}

TEST(Iterations, WarmUpAndAnIrregularTailAreLeftOut) {
  TraceBuilder t;
  t.launch("init", 1, 32, 1'000).module_load(50'000'000).launch("init2", 1, 32, 1'000);
  for (int step = 0; step < 30; ++step) {
    if (step < 2) t.host_work(20'000'000);
    for (int i = 0; i < 10; ++i) t.host_work(10'000).launch(i ? "k" : "first", 132, 256, 5'000);
    t.device_sync();
  }
  for (int i = 0; i < 17; ++i) t.host_work(300'000).launch("evaluate", 132, 256, 700'000);
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.iterations.how, "10 kernels that repeat");
  EXPECT_LE(line.iterations.count(), 28);
  EXPECT_GE(line.iterations.count(), 26);
  EXPECT_LT(line.iterations.high_seconds, 1.2 * line.iterations.low_seconds);
}

TEST(Iterations, ALogEverySoManyStepsIsNotTheIteration) {
  TraceBuilder t;
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 5; ++i) t.launch(i ? "k" : "first", 132, 256, 5'000);
    if (step % 50 == 49) t.copy_d2h(4, MemoryKind::pageable).launch("log", 1, 32, 2'000);
  }
  EXPECT_EQ(timeline(t.trace()).iterations.how, "5 kernels that repeat");
}

TEST(Iterations, ARunWithoutALoopHasNoIterations) {
  TraceBuilder t;
  for (int i = 0; i < 12; ++i) t.launch("kernel" + std::to_string(i), 132, 256, 20'000);
  const Timeline line = timeline(t.trace());
  EXPECT_EQ(line.iterations.count(), 0);
  EXPECT_TRUE(line.iterations.how.empty());
  EXPECT_DOUBLE_EQ(line.seconds, (12 * 20'000 + 11 * 1'000) * 1e-9);
}

TEST(Iterations, ThreadsThatMixTheirLaunchesAreLookedAtOneByOne) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  t.thread("other").on_thread(0);
  const auto two = t.stream().current_stream();
  // The second thread launches at a rate of its own, and kernels that never come again.
  for (int step = 0; step < 40; ++step) {
    t.on_thread(0).on_stream(one).host_work(10'000).launch("a", 8, 256, 5'000).launch("b", 8, 256, 30'000);
    t.on_thread(1).on_stream(two);
    for (int i = 0; i < (step * 7) % 5; ++i)
      t.host_work(4'000).launch("x" + std::to_string(step * 9 + i), 8, 256, 2'000);
  }
  EXPECT_EQ(timeline(t.trace()).iterations.how, "2 kernels that repeat");
}

TEST(Iterations, TheStreamOfTheThreadThatIsLookedAtCounts) {
  TraceBuilder t;
  const auto one = t.stream().current_stream();
  t.thread("other").on_thread(0);
  const auto two = t.stream().current_stream();
  // The other thread launches less often, but its stream is busier.
  for (int step = 0; step < 40; ++step) {
    t.on_thread(0).on_stream(one).host_work(10'000).launch("a", 8, 256, 5'000).launch("b", 8, 256, 30'000);
    t.on_thread(1).on_stream(two);
    if (step % 3 != 1) t.host_work(20'000).launch("x" + std::to_string(step), 8, 256, 90'000);
  }
  EXPECT_EQ(timeline(t.trace()).iterations.how, "2 kernels that repeat");
}

}  // namespace
}  // namespace fulcrum::test
