// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Totals of kernels that graphs run, some of which ran when tracing stopped.
#include <gtest/gtest.h>

#include "trace/inject/totals.h"

namespace fulcrum::trace::inject {
namespace {

constexpr std::int64_t kOneSecond = 1'000'000'000;

/// {count, nanoseconds, longest} of one kernel that a graph runs: of 100 times 1 us in a window of a millisecond, then
/// once so long.
file::Total of_a_graph(std::int64_t last_ns, bool has_window) {
  Totals totals;
  const auto add = [&totals](std::int64_t begin_ns, std::int64_t duration_ns) {
    totals.add({.shape = 1,
                .stream = 1,
                .context = 1,
                .is_of_graph = true,
                .begin_ns = begin_ns,
                .duration_ns = duration_ns});
  };
  totals.begin_window(kOneSecond);
  for (int i = 0; i < 100; ++i) add(kOneSecond + i * 2000, 1000);
  add(kOneSecond + 300'000, last_ns);
  if (has_window) totals.end_window(kOneSecond + 1'000'000, {.graphs = 10}, {});
  return totals.end(20 * kOneSecond, {{.graphs = 10}, true}).at(0);
}

TEST(Totals, the_end_of_a_node_that_ran_when_tracing_stopped_is_not_its_own) {
  const file::Total total = of_a_graph(9 * kOneSecond, true);
  EXPECT_EQ(total.count, 202) << "half of the graphs ran behind the window";
  EXPECT_EQ(total.sum_ns, 202'000);
  EXPECT_EQ(total.max_ns, 1000);
}

TEST(Totals, a_node_that_takes_long_within_the_window_or_a_whole_run_does) {
  EXPECT_EQ(of_a_graph(500'000, true).sum_ns, 1'200'000);
  EXPECT_EQ(of_a_graph(500'000, true).max_ns, 500'000);
  EXPECT_EQ(of_a_graph(9 * kOneSecond, false).max_ns, 9 * kOneSecond);
}

}  // namespace
}  // namespace fulcrum::trace::inject
