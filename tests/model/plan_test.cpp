// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans: rows, order, sets, and the sentence on top.
#include "model/model_support.h"
#include "model/plan_parts.h"

namespace fulcrum::model::test {
namespace {

PlanItem item(std::string name, std::string op, const char* shape, double share) {
  PlanItem i;
  i.name = std::move(name);
  i.op = std::move(op);
  i.shape = parse_shape(shape).value();
  i.share = sure(share);
  i.effort_days = sure(2);
  return i;
}

PlanInput two_items() {
  PlanInput input;
  input.title = "test";
  input.items = {item("add", "vec_add", "n=100000000", 0.3),
                 item("product", "matmul", "M=4096,N=4096,K=4096", 0.6)};
  return input;
}

const PlanRow& row(const Plan& plan, std::string_view name, std::string_view action = "offload") {
  for (const PlanRow& r : plan.rows) {
    if (r.name == name && r.action == action) return r;
  }
  ADD_FAILURE() << name;
  return plan.rows.front();
}

TEST(Plan, RowsStandInTheOrderOfTheirRankAndSayWhy) {
  const Plan p = plan(reference(), two_items());
  ASSERT_EQ(p.rows.size(), 2U);
  EXPECT_EQ(p.rows[0].name, "product");
  for (std::size_t i = 1; i < p.rows.size(); ++i) EXPECT_LE(p.rows[i].rank, p.rows[i - 1].rank);
  for (const PlanRow& r : p.rows) {
    EXPECT_FALSE(r.why.empty()) << r.name;
    EXPECT_FALSE(r.command.empty());
    EXPECT_FALSE(r.breakeven.text.empty());
    EXPECT_TRUE(r.best_cpu.valid());
    EXPECT_TRUE(r.best_gpu.valid());
  }
  EXPECT_EQ(row(p, "add").verdict, PlanVerdict::keep_on_cpu);
  EXPECT_NE(row(p, "add").why.find("slopes equal"), std::string::npos) << row(p, "add").why;
  EXPECT_FALSE(p.verdict.empty());
}

TEST(Plan, TheOrderCanBeRecomputedFromTheJson) {
  const Plan p = plan(reference(), two_items());
  const auto back = plan_from_json(to_json(p), "plan");
  ASSERT_TRUE(back.ok()) << back.error().message;
  auto rows = back->rows;
  for (PlanRow& r : rows) assess(r);
  order_rows(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].name, p.rows[i].name);
    EXPECT_NEAR(rows[i].rank, p.rows[i].rank, 1e-12);
    EXPECT_EQ(rows[i].tie, p.rows[i].tie);
  }
}

TEST(Plan, PlainCodeGetsARowForTheCpuThatCompetes) {
  PlanInput input;
  input.items = {item("add", "vec_add", "n=100000", 0.5)};
  input.items[0].now = seconds(500e-6, Grade::a);
  const Plan p = plan(reference(), input);
  ASSERT_EQ(p.rows.size(), 2U);
  const PlanRow& fix = row(p, "add", "threads");
  EXPECT_EQ(fix.verdict, PlanVerdict::fix_on_cpu_first);
  EXPECT_GT(fix.rank, row(p, "add").rank);
  EXPECT_GT(fix.end_to_end.value, 1.5);
  EXPECT_NEAR(row(p, "add").end_to_end_cpu.value, fix.end_to_end.value, 1e-9);
  input.cpu_rows = false;
  EXPECT_EQ(plan(reference(), input).rows.size(), 1U);
}

TEST(Plan, UnknownCodeIsMeasuredFirst) {
  PlanInput input;
  PlanItem unknown;
  unknown.name = "mystery";
  unknown.share = sure(0.5);
  unknown.now = seconds(1e-3);
  input.items = {unknown};
  const Plan p = plan(reference(), input);
  EXPECT_EQ(p.rows[0].verdict, PlanVerdict::measure_first);
  EXPECT_NE(p.rows[0].why.find("independent"), std::string::npos) << p.rows[0].why;
}

TEST(Plan, UnknownCodeWithASmallShareOrEvidenceAgainstItStays) {
  PlanInput input;
  PlanItem trifle;
  trifle.name = "trifle";
  trifle.share = sure(0.01);
  trifle.now = seconds(1e-3);
  PlanItem serial = trifle;
  serial.name = "serial";
  serial.share = sure(0.5);
  serial.facts.serial = "2 malloc per iteration";
  input.items = {trifle, serial};
  const Plan p = plan(reference(), input);
  for (const PlanRow& row : p.rows) EXPECT_EQ(row.verdict, PlanVerdict::keep_on_cpu) << row.name << row.why;
}

TEST(Plan, EachRowPaysItsOwnTransfersUnlessObjectsAreShared) {
  PlanInput input;
  input.items = {item("a", "dot", "n=20000000", 0.4), item("b", "dot", "n=20000000", 0.4)};
  const Plan apart = plan(reference(), input);
  EXPECT_TRUE(apart.best_set.rows.empty());
  // b reads what a made, on the device: only the ends travel.
  const double once = 0.2;
  input.objects = {{"x", DataObject::kHost, {0}, once, 0, 80e6},
                   {"y", 0, {1}, once, once, 80e6},
                   {"z", 1, {DataObject::kHost}, 0, 0.01, 80e6}};
  const Plan shared = plan(reference(), input);
  EXPECT_EQ(shared.best_set.rows, (std::vector<std::string>{"a", "b"}));
  EXPECT_GT(shared.best_set.end_to_end.value, 1.5);
  EXPECT_GT(shared.best_set.gpu_adds, 1);
  EXPECT_EQ(shared.best_set.device_bytes, 240e6);
  EXPECT_DOUBLE_EQ(shared.best_set.transfers, once + 0.01);
}

TEST(Plan, APriceGivesTheCostOfAMillionCalls) {
  PlanInput input = two_items();
  input.price_per_hour = 3.6;
  const Plan p = plan(reference(), input);
  const PlanRow& r = row(p, "product");
  EXPECT_NEAR(r.cost_per_million, r.best_gpu.seconds * 1e-3 * 1e6, 1e-9);
}

TEST(Plan, WithoutAGpuItSaysWhatTheCpuCanGain) {
  const Plan p = plan(Model(desk(), {}), two_items());
  for (const PlanRow& r : p.rows) EXPECT_EQ(r.verdict, PlanVerdict::keep_on_cpu);
  ASSERT_FALSE(p.notes.empty());
  EXPECT_NE(p.notes[0].find("no GPU"), std::string::npos);
}

TEST(Plan, ADeviceOfThisMachineIsCalledByItsName) {
  Machine both = desk();
  both.gpus = device().gpus;
  const auto sentence = [](const Machine& with) {
    const Model model(desk(), {}, with, {});
    Plan p = plan(model, two_items());
    for (PlanRow& r : p.rows) r.verdict = PlanVerdict::offload_now;
    return verdict_text(model, p);
  };
  EXPECT_NE(sentence(both).find(" to this machine's Device:"), std::string::npos) << sentence(both);
  EXPECT_NE(sentence(device()).find(" to device:"), std::string::npos) << sentence(device());
}

TEST(Plan, ItsAnswerSaysWhereTheDataIsTakenToBe) {
  const Model model(desk(), {}, device(), {});
  Plan p = plan(model, two_items());
  ASSERT_EQ(p.rows.size(), 2u);
  const auto sentence = [&](Regime first, Regime second) {
    for (PlanRow& r : p.rows) r.verdict = PlanVerdict::offload_now;
    p.rows[0].best_gpu.regime = first, p.rows[1].best_gpu.regime = second;
    return verdict_text(model, p);
  };
  using enum Regime;
  EXPECT_NE(sentence(resident, resident).find("x) with their data there, against "), std::string::npos);
  EXPECT_NE(sentence(roundtrip, roundtrip).find(" with their data moved at every call,"), std::string::npos);
  EXPECT_EQ(sentence(resident, roundtrip).find("their data"), std::string::npos)
      << "the table says whose is where";
}

TEST(Plan, OfADataSheetSaysSoEverywhere) {
  const Plan p = plan(Model(desk(), {}, profile("share/machines/l4.json"), {}), two_items());
  EXPECT_FALSE(p.gpu_measured);
  EXPECT_NE(p.verdict.find("Not measured"), std::string::npos) << p.verdict;
  for (const PlanRow& r : p.rows) EXPECT_EQ(r.best_gpu.grade, Grade::d);
}

TEST(PlanInput, OfASuiteTakesItsSharesAndNoneOfItsClaims) {
  const Suite suite = load_suite("memory-recall").value();
  const auto input = plan_input_of(suite);
  ASSERT_TRUE(input.ok()) << input.error().message;
  ASSERT_EQ(input->items.size(), 3U);
  EXPECT_EQ(input->items[0].name, "cosine");
  EXPECT_DOUBLE_EQ(input->items[0].share.value, 0.6);
  EXPECT_TRUE(input->items[0].share.assumed);
  // Without shares every row counts alike.
  const Suite flat = load_suite("production").value();
  const auto equal = plan_input_of(flat);
  ASSERT_TRUE(equal.ok());
  double whole = 0;
  for (const PlanItem& i : equal->items) whole += i.share.value;
  EXPECT_NEAR(whole, 1, 1e-9);
}

TEST(PlanInput, OfResultsHasOneItemAShape) {
  const std::vector<Measurement> rows{
      measurement("relu", "n=1000", 1e-6), measurement("relu", "n=1000", 2e-6, Regime::host, {}, 4),
      measurement("gelu", "n=1000", 1e-6), measurement("gelu", "n=1000", 1e-5, Regime::resident)};
  EXPECT_EQ(plan_input_of(rows).items.size(), 2U);
  const PlanInput shared = plan_input_of(rows, {{"gelu n=1000", 0.7}});
  EXPECT_DOUBLE_EQ(shared.items[0].share.value, 0.7);
  EXPECT_FALSE(shared.items[0].share.assumed);
}

}  // namespace
}  // namespace fulcrum::model::test
