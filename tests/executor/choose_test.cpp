// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of several priced ways is taken, from made-up prices.
#include "executor/choose.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "executor/candidates.h"
#include "executor/named_ops.h"

namespace fulcrum::executor {
namespace {

Preference always(const std::vector<int>& order) { return {.in_short = order, .in_long = order}; }

TEST(Pick, TakesTheCheapestAndBreaksTies) {
  Estimates costs;
  costs.grade = Grade::b;
  costs.sigma.fill(0.05F);
  const Preference order = always({2, 0, 1});
  costs.log_seconds[0] = 1.00F;
  costs.log_seconds[1] = 1.50F;
  costs.log_seconds[2] = 1.01F;
  EXPECT_EQ(pick(costs, 0b111, 0b001, order).best, 2) << "as cheap within the doubt, and preferred";
  EXPECT_EQ(pick(costs, 0b111, 0b001, order).runner_up, 0);
  costs.log_seconds[2] = 1.06F;
  EXPECT_EQ(pick(costs, 0b111, 0b001, order).best, 0) << "a few per cent are no tie when times were measured";
  costs.sigma.fill(0.5F);
  costs.grade = Grade::c;
  EXPECT_EQ(pick(costs, 0b111, 0b001, order).best, 0) << "nor far from what was measured";
  costs.assumed = true;
  EXPECT_EQ(pick(costs, 0b111, 0b001, order).best, 2) << "of an assumed machine they are";
  EXPECT_EQ(pick(costs, 0b010, 0b001, order).runner_up, -1);
  EXPECT_EQ(pick(costs, 0, 0b001, order).best, -1);
  costs = {};
  costs.sigma.fill(0.05F);
  costs.log_seconds[0] = 1.005F;
  costs.log_seconds[1] = 1.00F;
  EXPECT_EQ(pick(costs, 0b11, 0, always({0, 0})).best, 1) << "nothing else tells them apart";
  EXPECT_EQ(pick(costs, 0b11, 0, always({0, 1})).best, 0);
}

TEST(Pick, CandidatesOfOnePlaceAndWidthShareAPlaceInTheOrder) {
  const ops::Op& op = op_named("matmul");
  const std::vector<Candidate> found = candidates_of(op, nullptr);
  const Preference preference = preference_of(found);
  for (std::size_t a = 0; a < found.size(); ++a) {
    for (std::size_t b = 0; b < found.size(); ++b) {
      EXPECT_EQ(preference.in_short[a] == preference.in_short[b], found[a].threads == found[b].threads)
          << found[a].kernel.name() << " " << found[b].kernel.name();
      EXPECT_EQ(preference.in_short[a] < preference.in_short[b], found[a].threads < found[b].threads);
      EXPECT_EQ((preference.in_long[a] < preference.in_long[b]), (found[a].threads > found[b].threads));
      const bool ours =
          found[a].kernel.backend().name() == "threads" && found[b].kernel.backend().name() == "threads";
      if (ours && found[a].kernel.dtype() == found[b].kernel.dtype()) {
        EXPECT_TRUE(preference.are_widths(a, b)) << found[a].kernel.name() << " " << found[b].kernel.name();
      }
      if (found[a].threads == 1) {
        EXPECT_FALSE(preference.are_widths(a, b)) << found[a].kernel.name();
      }
    }
  }
}

TEST(Pick, MoreThreadsOfTheSameKernelAreTakenInLongCallsWhereTheyMayBeAsFast) {
  // One thread, eight and sixteen of the same kernel, sixteen of a library.
  const Preference preference{.in_short = {0, 1, 2, 2}, .in_long = {2, 1, 0, 0}, .families = {0, 1, 1, 2}};
  Estimates costs;
  costs.sigma.fill(0.2F);
  const auto best_of = [&](double seconds, float one, float eight, float sixteen, float library) {
    int c = 0;
    for (const float slower : {one, eight, sixteen, library})
      costs.log_seconds[static_cast<std::size_t>(c++)] = static_cast<float>(std::log(seconds)) + slower;
    return pick(costs, 0b1111, 0, preference).best;
  };
  EXPECT_EQ(best_of(100e-6, 1, 0, 0.1F, 1), 2);
  EXPECT_EQ(best_of(100e-6, 1, 0, 0.2F, 1), 1) << "that much slower they are slower";
  EXPECT_EQ(best_of(100e-6, 1, 0.1F, 0, 1), 2);
  EXPECT_EQ(best_of(2e-6, 1, 0, 0.1F, 1), 1) << "in short calls forks are what they take";
  EXPECT_EQ(best_of(100e-6, 1, 0, 1, 0.1F), 1) << "a library's threads are others";
  EXPECT_EQ(best_of(100e-6, 0, 0.1F, 0.1F, 1), 0) << "one thread shares its core with none of its own";
  costs.sigma.fill(0.02F);
  EXPECT_EQ(best_of(100e-6, 1, 0, 0.1F, 1), 1) << "known better than that";
  costs.sigma.fill(0.2F);
  EXPECT_EQ(pick(costs, 0b1111, 0, preference, true).best, 1) << "there are other callers";
}

TEST(Pick, ATieBetweenThreadsOfOneKernelIsExplained) {
  const backends::Backend* threads = backends::find("threads").value();
  const backends::Backend* simd = backends::find("simd").value();
  fulcrum_kernel one{}, eight{}, all{};
  one.op = eight.op = all.op = "gelu";
  one.variant = all.variant = "default";
  eight.variant = "t8";
  one.threads = 1, eight.threads = 8, all.threads = 16;
  const std::vector<Candidate> candidates = {
      {backends::Kernel(simd, &one), Place::host, 1},
      {backends::Kernel(threads, &eight), Place::host, 8},
      {backends::Kernel(threads, &all), Place::host, 16},
  };
  const auto note = [&](int taken, int next, double margin) {
    Explanation out;
    for (const int c : {taken, next})
      out.ways.push_back({.name = candidates[static_cast<std::size_t>(c)].kernel.name()});
    out.margin = margin;
    return tie_note(out, candidates);
  };
  EXPECT_EQ(note(2, 1, 0.9),
            "gelu/threads/default and gelu/threads/t8 are as fast within the doubt: long calls take more "
            "threads then");
  EXPECT_EQ(note(2, 1, 1.2), "") << "it is the fastest anyhow";
  EXPECT_EQ(note(1, 2, 0.99), "") << "few threads of a short call";
  EXPECT_EQ(note(2, 0, 0.99), "") << "one thread is no width of it";
}

TEST(Pick, FewThreadsAreForShortCallsAndManyForLongOnes) {
  const Preference preference{.in_short = {0, 1, 2}, .in_long = {1, 0, 2}};  // the last one on the device
  Estimates costs;
  costs.sigma.fill(0.05F);
  for (const double seconds : {2e-6, 200e-6}) {
    costs.log_seconds.fill(static_cast<float>(std::log(seconds)));
    EXPECT_EQ(pick(costs, 0b111, 0b100, preference).best, seconds > 10e-6 ? 1 : 0);
    EXPECT_EQ(pick(costs, 0b111, 0b100, preference, true).best, 0) << "there are other callers";
    EXPECT_EQ(pick(costs, 0b101, 0b100, preference).best, 0);
  }
}

}  // namespace
}  // namespace fulcrum::executor
