// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of decisions: what is written reads back, and what was edited is refused by name.
#include <fulcrum/core/plan.h>

#include <nlohmann/json.hpp>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

Prediction prediction() {
  Prediction p;
  p.machine = "m";
  p.where = "gpu";
  p.regime = Regime::roundtrip;
  p.way = "mapped";
  p.seconds = 2e-6;
  p.low = 1e-6;
  p.high = 3e-6;
  p.grade = Grade::b;
  p.bound = "link";
  p.level = "link";
  p.ceiling_fraction = 0.5;
  p.terms = {{"in", 1.5e-6, "8 B", true}, {"kernel", 1e-6, "hidden", false}};
  p.losers = {{"copy", 4e-6}};
  return p;
}

BreakEven break_even() {
  BreakEven b;
  b.kind = BreakEven::Kind::at;
  b.op = "relu";
  b.dim = "n";
  b.machine = "m";
  b.shape.set("rows", std::int64_t{4});
  b.shape.dtype = DType::f16;
  b.n = 200;
  b.low = 100;
  b.high = 300;
  b.windows = {{200, 1000}};
  b.text = "GPU from n = 200";
  b.practical_n = 512;
  b.cpu = {{1, 1e-6, 1e-6, 1e-6, true}};
  b.gpu = {{1, 2e-6, 2e-6, 2e-6, false}};
  return b;
}

Plan sample_plan() {
  Plan p;
  p.title = "t";
  p.subject = "s";
  p.machine = "m";
  p.gpu = "g";
  p.gpu_measured = true;
  p.verdict = "Keep.";
  PlanRow r;
  r.name = "a";
  r.action = "offload";
  r.op = "relu";
  r.shape.set("n", std::int64_t{1000});
  r.share = {0.5, 0.4, 0.6, false};
  r.speedup = {2, 1.5, 2.5, true};
  r.saved = {0.25, 0.1, 0.3, true};
  r.now = r.best_cpu = r.best_gpu = prediction();
  r.breakeven = break_even();
  r.rank = 2;
  r.verdict = PlanVerdict::fix_on_cpu_first;
  r.why = "because";
  PlanRow second = r;
  second.name = "b";
  second.rank = 1;
  second.tie = true;
  p.rows = {r, second};
  p.best_set = {{"a"}, {2, 1, 3, false}, {1.5, 1, 2, false}, 1.33, 80};
  p.notes = {"note"};
  return p;
}

TEST(PlanJson, ReadsBackAsItWasWritten) {
  const Json json = to_json(sample_plan());
  EXPECT_EQ(json["schema"], "fulcrum.plan/1");
  EXPECT_EQ(json["rows"][0]["verdict"], "fix on the CPU first");
  EXPECT_EQ(json["rows"][0]["now"]["grade"], "B");
  const auto back = plan_from_json(json_parse(json_text(json), "plan").value(), "plan");
  ASSERT_TRUE(back.ok()) << error_text(back);
  EXPECT_EQ(json_text(to_json(*back)), json_text(json));
}

TEST(PlanJson, ABreakEvenReadsBackWithItsTypeAndCurves) {
  const Json json = to_json(break_even());
  EXPECT_EQ(json["schema"], "fulcrum.breakeven/1");
  const auto back = breakeven_from_json(json_parse(json_text(json), "b").value(), "b");
  ASSERT_TRUE(back.ok()) << error_text(back);
  EXPECT_EQ(back->shape.dtype, DType::f16);
  EXPECT_EQ(json_text(to_json(*back)), json_text(json));
}

TEST(PlanJson, NamesTheFileAndTheFieldThatIsWrong) {
  const auto message = [](const std::function<void(Json&)>& spoil) {
    Json json = to_json(sample_plan());
    spoil(json);
    const auto read = plan_from_json(json, "plan.json");
    EXPECT_FALSE(read.ok());
    return read.ok() ? std::string() : read.error().message;
  };
  EXPECT_TRUE(
      contains(message([](Json& j) { j["rows"][1]["now"]["seconds"] = "fast"; }), "rows[1].now.seconds"));
  EXPECT_TRUE(contains(message([](Json& j) { j["rows"][1]["now"]["seconds"] = "fast"; }), "plan.json"));
  EXPECT_TRUE(contains(message([](Json& j) { j["rows"][0].erase("why"); }), "rows[0].why"));
  EXPECT_TRUE(
      contains(message([](Json& j) { j["rows"][0]["verdict"] = "offload soon"; }), "rows[0].verdict"));
  EXPECT_TRUE(contains(message([](Json& j) { j["rows"][0]["best_gpu"]["grade"] = "E"; }), "best_gpu.grade"));
  EXPECT_TRUE(contains(message([](Json& j) { j["rows"][0]["share"]["low"] = 0.9; }), "rows[0].share"));
  EXPECT_TRUE(contains(message([](Json& j) { j["rows"][1]["rank"] = 3; }), "rows[1].rank"));
  EXPECT_TRUE(contains(message([](Json& j) { j["schema"] = "fulcrum.bench/1"; }), "fulcrum.bench/1"));
  Json json = to_json(break_even());
  json["low"] = 250;
  EXPECT_FALSE(breakeven_from_json(json, "b.json").ok());
}

TEST(PlanJson, AReportHoldsEverythingOfAPage) {
  Report report;
  report.title = "t";
  report.plans = {sample_plan()};
  report.breakevens = {break_even()};
  report.roofline.roofs = {{"DRAM", "cpu", 1e9, 0, Source::measured}};
  report.advice = {{"row", "SLOW", "do this"}};
  report.commands = {{"what", "fulcrum bench"}};
  const Json json = to_json(report);
  EXPECT_EQ(json["schema"], "fulcrum.report/1");
  EXPECT_EQ(json["plans"][0]["rows"].size(), 2U);
  EXPECT_EQ(json["roofline"]["roofs"][0]["name"], "DRAM");
  EXPECT_EQ(json["advice"][0]["flag"], "SLOW");
  EXPECT_EQ(json["machine"]["schema"], "fulcrum.machine/1");
}

TEST(PlanVocabulary, WordsAreThoseOfTheDocuments) {
  EXPECT_EQ(to_string(Grade::a), "A");
  EXPECT_EQ(to_string(PlanVerdict::offload_now), "offload now");
  EXPECT_EQ(to_string(BreakEven::Kind::indifferent), "indifferent");
  EXPECT_EQ(parse_enum<PlanVerdict>("verdict", "keep on the CPU").value(), PlanVerdict::keep_on_cpu);
}

}  // namespace
}  // namespace fulcrum
