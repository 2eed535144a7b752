// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Amdahl, ranks and verdicts, against arithmetic that is known by heart.
#include <fulcrum/core/suite.h>

#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

PlanRow row(std::string name, double share, double speedup, double frequency, double effort) {
  PlanRow r;
  r.name = std::move(name);
  r.action = "offload";
  r.op = "cosine_similarity";
  r.share = sure(share);
  r.speedup = sure(speedup);
  r.frequency = sure(frequency);
  r.effort_days = sure(effort);
  assess(r);
  return r;
}

// The rows of Engram's suite with what it claims; claims are inputs of this test only.
std::vector<PlanRow> engram() {
  std::vector<PlanRow> rows;
  const Suite suite = load_suite("memory-recall").value();
  for (const SuiteRow& r : suite.rows) {
    const auto claim = r.claims.find("speedup");
    if (!r.share || claim == r.claims.end()) continue;
    rows.push_back(row(r.name, *r.share, claim->second.figure.value.value(), r.frequency.value(),
                       r.effort_days.value()));
  }
  return rows;
}

TEST(Roi, EngramsMatrixGivesItsThreeRanksBySavedShare) {
  auto rows = engram();
  order_rows(rows);
  ASSERT_EQ(rows.size(), 3U);
  const char* names[] = {"cosine", "spreading", "search"};
  const double saved[] = {0.5143, 0.2000, 0.0833}, rank[] = {0.17143, 0.05333, 0.01250},
               score[] = {1.40, 0.3333, 0.09};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rows[i].name, names[i]);
    EXPECT_NEAR(rows[i].saved.value, saved[i], 5e-5);
    EXPECT_NEAR(rows[i].rank, rank[i], 5e-6);
    EXPECT_NEAR(rows[i].engram_score, score[i], 5e-5);
    EXPECT_FALSE(rows[i].tie);
  }
  EXPECT_NEAR(rows[0].end_to_end.value, 2.0588, 5e-5);
  std::vector<Part> all;
  for (const PlanRow& r : rows) all.push_back({r.share, r.speedup});
  EXPECT_NEAR(amdahl(all).value, 4.9412, 5e-5);
}

TEST(Roi, ASmallShareWithAHugeSpeedUpIsNotFirstAndNeverOffloadedNow) {
  auto rows = engram();
  rows.push_back(row("tiny", 0.03, 100, 1, 2));
  order_rows(rows);
  EXPECT_EQ(rows.front().name, "cosine");
  const auto tiny = std::find_if(rows.begin(), rows.end(), [](const PlanRow& r) { return r.name == "tiny"; });
  EXPECT_NEAR(tiny->rank, 0.01485, 1e-5);
  EXPECT_NEAR(tiny->engram_score, 1.5, 1e-9);  // would be first by that score
  EXPECT_GT(tiny->engram_score, rows.front().engram_score);
  for (PlanRow& r : rows) decide(r);
  EXPECT_EQ(tiny->verdict, PlanVerdict::offload_next);
  EXPECT_NE(tiny->why.find("3.0 %"), std::string::npos);
  EXPECT_EQ(rows.front().verdict, PlanVerdict::offload_now);
}

TEST(Amdahl, TimeBlockedOnInputCountsInTheWhole) {
  EXPECT_NEAR(amdahl(0.60, 7), 2.0588, 5e-5);
  const Part part{wall_share(sure(0.60), 0.5), sure(7)};
  EXPECT_NEAR(amdahl(std::span(&part, 1)).value, 1.35, 0.005);
}

TEST(Amdahl, IntervalsOfShareAndSpeedUpReachTheWhole) {
  const Part part{{0.5, 0.4, 0.6, false}, {4, 2, 8, true}};
  const Doubtful whole = amdahl(std::span(&part, 1));
  EXPECT_NEAR(whole.low, 1 / (1 - 0.4 * 0.5), 1e-12);
  EXPECT_NEAR(whole.high, 1 / (1 - 0.6 * (1 - 1.0 / 8)), 1e-12);
  EXPECT_TRUE(whole.assumed);
  // A part that may become slower: the low end is a loss on the larger share.
  const Part doubtful{{0.5, 0.4, 0.6, false}, {2, 0.5, 4, false}};
  EXPECT_NEAR(amdahl(std::span(&doubtful, 1)).low, 1 / (1 + 0.6), 1e-12);
}

TEST(Roi, OverlappingIntervalsAreMarkedAsTiesAndTheOrderIsOfTheRanks) {
  std::vector<PlanRow> rows{row("b", 0.20, 4, 1, 2), row("a", 0.21, 4, 1, 2)};
  for (PlanRow& r : rows) {
    r.share.low = r.share.value - 0.03;
    r.share.high = r.share.value + 0.03;
    assess(r);
  }
  order_rows(rows);
  EXPECT_EQ(rows[0].name, "a");
  EXPECT_FALSE(rows[0].tie);
  EXPECT_TRUE(rows[1].tie);
}

TEST(Roi, RowsOfEqualRankStandInTheOrderOfTheirNames) {
  std::vector<PlanRow> rows{row("z", 0.2, 4, 1, 2), row("m", 0.2, 4, 1, 2)};
  order_rows(rows);
  EXPECT_EQ(rows[0].name, "m");
  EXPECT_TRUE(rows[1].tie);
}

TEST(Roi, TheBestCpuStandsBesideTheGpu) {
  PlanRow r = row("x", 0.5, 10, 1, 2);
  r.now = seconds(10e-3);
  r.best_cpu = seconds(2e-3);
  assess(r);
  EXPECT_NEAR(r.end_to_end_cpu.value, 1 / (0.5 + 0.5 / 5), 1e-9);
}

// Verdicts: each row differs from a clear `offload now` in one thing.

PlanRow winner() {
  PlanRow r = row("x", 0.5, 10, 1, 2);
  r.now = seconds(10e-3);
  r.best_cpu = seconds(8e-3);
  r.best_gpu = seconds(1e-3);
  r.best_gpu.where = "gpu";
  r.now.bound = "memory";
  r.breakeven.kind = BreakEven::Kind::at;
  return r;
}

PlanVerdict verdict(PlanRow r, const VerdictFacts& facts = {}) {
  decide(r, facts);
  EXPECT_FALSE(r.why.empty());
  return r.verdict;
}

TEST(Verdict, IsTheFirstTestThatHolds) {
  EXPECT_EQ(verdict(winner()), PlanVerdict::offload_now);

  PlanRow r = winner();
  r.share = sure(0.049);
  assess(r);
  EXPECT_EQ(verdict(r), PlanVerdict::offload_next);

  VerdictFacts together;
  together.needs_others = true;
  EXPECT_EQ(verdict(winner(), together), PlanVerdict::offload_next);

  r = winner();
  r.best_gpu.grade = Grade::c;
  EXPECT_EQ(verdict(r), PlanVerdict::measure_first);
  r = winner();
  r.speedup.low = 0.9;
  assess(r);
  EXPECT_EQ(verdict(r), PlanVerdict::measure_first);
  VerdictFacts weak;
  weak.weak_evidence = true;
  EXPECT_EQ(verdict(winner(), weak), PlanVerdict::measure_first);
  r = winner();
  r.op.clear();
  EXPECT_EQ(verdict(r), PlanVerdict::measure_first);

  VerdictFacts fix;
  fix.cpu_fix_rank = winner().rank * 1.01;
  fix.cpu_fix = "using all cores";
  EXPECT_EQ(verdict(winner(), fix), PlanVerdict::fix_on_cpu_first);
  fix.cpu_fix_rank = winner().rank * 0.99;
  EXPECT_EQ(verdict(winner(), fix), PlanVerdict::offload_now);

  r = winner();
  r.breakeven.kind = BreakEven::Kind::never;
  r.breakeven.text = "never: link";
  EXPECT_EQ(verdict(r, fix), PlanVerdict::keep_on_cpu);
  r.breakeven.kind = BreakEven::Kind::indifferent;
  EXPECT_EQ(verdict(r), PlanVerdict::keep_on_cpu);
  r = winner();
  r.share = sure(0.02);
  assess(r);
  EXPECT_EQ(verdict(r), PlanVerdict::keep_on_cpu);  // 1.8 % saved
  r = winner();
  r.best_cpu = seconds(0.9e-3);
  EXPECT_EQ(verdict(r), PlanVerdict::keep_on_cpu);
  VerdictFacts serial;
  serial.serial = "2 malloc per iteration";
  EXPECT_EQ(verdict(winner(), serial), PlanVerdict::keep_on_cpu);

  r = winner();
  r.best_cpu = seconds(0.9e-3);
  r.ceiling_fraction = 0.8;
  EXPECT_EQ(verdict(r, serial), PlanVerdict::already_right);
  r.ceiling_fraction = 0.79;
  EXPECT_EQ(verdict(r, serial), PlanVerdict::keep_on_cpu);
}

TEST(Verdict, OfADataSheetIsDecidedOnTheLowEndAndSaysSo) {
  PlanRow r = winner();
  r.best_gpu.grade = Grade::d;
  decide(r);
  EXPECT_EQ(r.verdict, PlanVerdict::offload_now);
  EXPECT_NE(r.why.find("not measured"), std::string::npos);
  r.speedup = {10, 1.01, 20, true};
  assess(r);
  decide(r);
  EXPECT_EQ(r.verdict, PlanVerdict::keep_on_cpu);
  EXPECT_NE(r.why.find("low end"), std::string::npos);
}

TEST(Verdict, NoPredictionIsNoOffload) {
  PlanRow r = winner();
  r.best_gpu = Prediction();
  r.best_gpu.where = "gpu";
  r.best_gpu.missing = "the profile has no dense fp16 peak";
  decide(r);
  EXPECT_EQ(r.verdict, PlanVerdict::keep_on_cpu);
  EXPECT_NE(r.why.find("fp16"), std::string::npos);
}

TEST(Budget, StatusFollowsTheTimeAndItsInterval) {
  EXPECT_EQ(budget_status(100e-6, 300e-6, 500e-6), "within");
  EXPECT_EQ(budget_status(390e-6, 400e-6, 500e-6), "within");
  EXPECT_EQ(budget_status(390e-6, 401e-6, 500e-6), "near limit");
  EXPECT_EQ(budget_status(501e-6, 600e-6, 500e-6), "over");
  EXPECT_EQ(budget_status(450e-6, 550e-6, 500e-6), "unresolved");
  EXPECT_EQ(budget_status(1e-6, 1e-6, 0), "");
}

TEST(Budget, PrismsOwnRangesReachTheirLimitsAndNeverPassThem) {
  // Seven rows with a budget: the low end is within, the high end is the limit itself. Which two of them that system
  // calls "near limit" does not follow from its numbers, so it stays a claim.
  int rows = 0, near = 0;
  const Suite suite = load_suite("production").value();
  for (const SuiteRow& r : suite.rows) {
    const auto claim = r.claims.find("seconds");
    if (!r.budget_seconds || claim == r.claims.end()) continue;
    ++rows;
    const double low = claim->second.figure.low.value(), high = claim->second.figure.high.value();
    EXPECT_EQ(budget_status(low, low, *r.budget_seconds), "within") << r.name;
    EXPECT_EQ(budget_status(high, high, *r.budget_seconds), "near limit") << r.name;
    EXPECT_EQ(budget_status(1.01 * high, 1.02 * high, *r.budget_seconds), "over") << r.name;
    near += r.claims.at("status").figure.text == "near limit";
  }
  EXPECT_EQ(rows, 7);
  EXPECT_EQ(near, 2);
}

}  // namespace
}  // namespace fulcrum::model::test
