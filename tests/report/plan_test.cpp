// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans and reports as text: what must be in them, in which order, and what must never be taken for markup.
#include <fulcrum/report.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fulcrum {
namespace {

Prediction prediction(std::string_view where, Regime regime, double seconds, Grade grade) {
  Prediction made;
  made.machine = "h200";
  made.where = where;
  made.regime = regime;
  made.way = where == "cpu" ? "16 threads" : "mapped";
  made.seconds = seconds;
  made.low = 0.9 * seconds;
  made.high = 1.1 * seconds;
  made.grade = grade;
  made.bound = "memory";
  made.level = "DRAM";
  made.terms = {{"launch", 2e-6, "one kernel", true}, {"kernel", 1e-6, "behind the copy", false}};
  made.losers = {{"copy", 2 * seconds}};
  return made;
}

PlanRow row(const std::string& name, double rank, PlanVerdict verdict) {
  PlanRow made;
  made.name = name;
  made.action = "offload";
  made.op = "gelu";
  made.shape.set("n", std::int64_t{1000});
  made.share = {.value = 0.6, .low = 0.55, .high = 0.65};
  made.frequency = {.value = 1, .low = 1, .high = 1, .assumed = true};
  made.effort_days = {.value = 3, .low = 3, .high = 3, .assumed = true};
  made.now = prediction("cpu", Regime::host, 1e-3, Grade::a);
  made.best_cpu = prediction("cpu", Regime::host, 5e-4, Grade::a);
  made.best_gpu = prediction("gpu", Regime::resident, 1e-5, Grade::b);
  made.speedup = {.value = 7, .low = 6, .high = 8};
  made.end_to_end = {.value = 2.0588, .low = 1.9, .high = 2.2};
  made.end_to_end_cpu = {.value = 1.4, .low = 1.4, .high = 1.4};
  made.saved = {.value = 0.514, .low = 0.5, .high = 0.53};
  made.rank = rank;
  made.verdict = verdict;
  made.why = "saves 51 % of the program's time";
  made.breakeven.kind = BreakEven::Kind::never;
  made.breakeven.reason = "link";
  made.breakeven.text = "never: link 55 GB/s < CPU memory 73 GB/s; wins if resident";
  made.command = "fulcrum bench gelu";
  return made;
}

Plan plan() {
  Plan made;
  made.title = "recall";
  made.subject = "recall";
  made.machine = "this";
  made.gpu = "h200";
  made.verdict = "move cosine: 2.06x end to end";
  // Ranks that fall and names that do not: whoever sorts by anything else is found out.
  made.rows = {row("zebra", 0.17, PlanVerdict::offload_now), row("apple", 0.05, PlanVerdict::keep_on_cpu)};
  made.best_set.rows = {"zebra"};
  made.best_set.end_to_end = {.value = 4.94, .low = 4.5, .high = 5.3};
  made.best_set.end_to_end_cpu = {.value = 2, .low = 2, .high = 2};
  made.best_set.gpu_adds = 2.47;
  return made;
}

Report full_report() {
  Report made;
  made.title = "a </script><b>title</b>";
  made.created_utc = "2026-01-31T12:00:00Z";
  made.plans = {plan()};
  made.commands = {{"this page", "fulcrum report"}};
  return made;
}

TEST(PlanText, BeginsWithTheVerdictAndKeepsTheOrderOfThePlan) {
  const std::string text = report::plan_text(plan(), false, 200);
  EXPECT_EQ(text.rfind("move cosine: 2.06x end to end", 0), 0u) << text;
  EXPECT_LT(text.find("zebra"), text.find("apple"));
  EXPECT_NE(text.find("offload now"), std::string::npos);
  EXPECT_NE(text.find("never (link)"), std::string::npos);
  EXPECT_NE(text.find("the GPU adds 2.47x"), std::string::npos) << text;
}

TEST(PlanText, RowsThatMoveWithOthersSayWhatTheyWouldBeAlone) {
  Plan made = plan();
  made.best_set.rows = {"apple", "zebra"};
  EXPECT_NE(
      report::plan_text(made, false, 200).find("Moved together (zebra; alone 'keep on the CPU': apple)"),
      std::string::npos)
      << report::plan_text(made, false, 200);
}

TEST(PlanText, WhatCrossesTheLinkIsNamedWhereItTakesTime) {
  Plan made = plan();
  EXPECT_EQ(report::plan_text(made, false, 200).find("over the link"), std::string::npos);
  made.best_set.transfers = 0.106;
  EXPECT_NE(
      report::plan_text(made, false, 200).find("end to end, of the time before 11 % for data over the link"),
      std::string::npos)
      << report::plan_text(made, false, 200);
}

TEST(PlanText, MarksATieWithTheRowAbove) {
  Plan tied = plan();
  tied.rows[1].tie = true;
  EXPECT_NE(report::plan_text(tied, false, 200).find("apple ="), std::string::npos);
}

TEST(PlanText, EveryTimeCarriesItsGradeAndAMissingOneSaysWhy) {
  Plan made = plan();
  made.rows[1].best_gpu = {};
  made.rows[1].best_gpu.missing = "no fp16 peak in this profile";
  const std::string text = report::plan_text(made, false, 200);
  EXPECT_NE(text.find("500 us A"), std::string::npos) << text;
  EXPECT_NE(text.find("10.0 us B"), std::string::npos) << text;
  EXPECT_NE(report::explain_text(made.rows[1], false, 200).find("no number: no fp16 peak"),
            std::string::npos);
}

TEST(PlanText, AMillionCallsHaveACostWhereTheGpuHasAPrice) {
  Plan priced = plan();
  EXPECT_EQ(report::plan_text(priced, false, 200).find("cost"), std::string::npos);
  EXPECT_EQ(report::explain_text(priced.rows[0], false, 200).find("cost"), std::string::npos);
  priced.rows[0].cost_per_million = 0.15495;
  const std::string text = report::plan_text(priced, false, 200);
  EXPECT_NE(text.find("1M calls cost"), std::string::npos) << text;
  EXPECT_NE(text.find("0.155"), std::string::npos) << text;
  EXPECT_NE(report::explain_text(priced.rows[0], false, 200).find("a million calls cost 0.155 on the GPU"),
            std::string::npos);
  EXPECT_NE(report::plan_table(priced).markdown().find("1M calls cost"), std::string::npos);
}

TEST(PlanText, ExplainsTheTermsInMicrosecondsAndTheLosers) {
  const std::string text = report::explain_text(plan().rows[0], false, 200);
  EXPECT_NE(text.find("2.000"), std::string::npos) << text;
  EXPECT_NE(text.find("hidden behind a longer part"), std::string::npos);
  EXPECT_NE(text.find("slower ways: copy 20.0 us"), std::string::npos) << text;
  EXPECT_NE(text.find("frequency 1.00 (assumed)"), std::string::npos) << text;
  EXPECT_NE(text.find("link 55 GB/s < CPU memory 73 GB/s"), std::string::npos);
}

TEST(BreakEvenText, SetsBothSidesBesideEachOtherAndMarksPredictions) {
  BreakEven b;
  b.kind = BreakEven::Kind::at;
  b.op = "gelu";
  b.dim = "n";
  b.machine = "h200";
  b.n = 1500;
  b.practical_n = 4096;
  b.text = "GPU from 1,500";
  b.cpu = {{1000, 1e-6, 0.9e-6, 1.1e-6, true}, {2000, 4e-6, 3.9e-6, 4.1e-6, true}};
  b.gpu = {{1000, 2e-6, 1.9e-6, 2.1e-6, false}, {2000, 2e-6, 1.9e-6, 2.1e-6, false}};
  const std::string text = report::breakeven_text(b, false, 100);
  EXPECT_NE(text.find("0.5x"), std::string::npos) << text;
  EXPECT_NE(text.find("2x"), std::string::npos);
  EXPECT_NE(text.find("2.00 us +-5 % *"), std::string::npos) << text;
  EXPECT_NE(text.find("4,096"), std::string::npos);
}

TEST(Html, HoldsTheWholeDocumentAndNothingInItEndsItsElement) {
  const Report made = full_report();
  const std::string text = report::html(made);
  const std::string open = R"(<script type="application/json" id="report">)";
  const std::size_t begin = text.find(open) + open.size();
  const std::size_t end = text.find("</script>", begin);
  ASSERT_NE(end, std::string::npos);
  const auto read = json_parse(text.substr(begin, end - begin), "page");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, to_json(made));
}

TEST(Html, AsksForNothingFromAnyServer) {
  const std::string text = report::html(full_report());
  const std::string head = text.substr(0, text.find("<body>"));
  EXPECT_EQ(head.find("src="), std::string::npos);
  EXPECT_EQ(head.find("@import"), std::string::npos);
  EXPECT_EQ(head.find("url("), std::string::npos);
  EXPECT_EQ(text.find("<script src"), std::string::npos);
}

TEST(Markdown, HasTheVerdictTheMatrixAndTheCommands) {
  const std::string text = report::markdown(full_report());
  EXPECT_NE(text.find("**move cosine: 2.06x end to end**"), std::string::npos) << text;
  EXPECT_LT(text.find("| zebra"), text.find("| apple")) << text;
  EXPECT_NE(text.find("Times on h200 are predictions"), std::string::npos);
  EXPECT_NE(text.find("fulcrum report  # this page"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum
