// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Break-even points: read off curves, and by the model.
#include <fulcrum/core/suite.h>

#include <map>

#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

using Kind = BreakEven::Kind;

// What Trueno measured of each op, from the suite: seconds by the first dim.
struct Timed {
  std::vector<std::pair<double, double>> cpu, gpu;
};
std::map<std::string, Timed> trueno() {
  std::map<std::string, Timed> ops;
  const Suite suite = load_suite("vector-ops").value();
  for (const SuiteRow& row : suite.rows) {
    const auto gpu = row.claims.find("gpu_seconds"), cpu = row.claims.find("scalar_seconds");
    if (gpu == row.claims.end() || cpu == row.claims.end()) continue;
    const Shape shape = parse_shape(row.shape).value();
    const Shape::Value* size = shape.find("n") ? shape.find("n") : shape.find("M");
    const auto n = static_cast<double>(std::get<std::int64_t>(*size));
    ops[row.op].cpu.emplace_back(n, cpu->second.figure.value.value());
    ops[row.op].gpu.emplace_back(n, gpu->second.figure.value.value());
  }
  return ops;
}

BreakEven of(const Timed& timed) {
  CurveFacts facts;
  for (const auto& [n, s] : timed.gpu) {
    facts.floor_seconds = facts.floor_seconds > 0 ? std::min(facts.floor_seconds, s) : s;
  }
  return breakeven_of(curve(timed.cpu), curve(timed.gpu), facts);
}

TEST(BreakEvenGoldens, TruenosTwelveVectorOpsAreNever) {
  int never = 0;
  for (const auto& [op, timed] : trueno()) {
    if (op == "matmul") continue;
    const BreakEven b = of(timed);
    EXPECT_EQ(b.kind, Kind::never) << op;
    EXPECT_EQ(b.reason, "floor") << op << ": " << b.text;
    EXPECT_TRUE(b.windows.empty()) << op;
    EXPECT_EQ(b.n, 0) << op;
    ++never;
  }
  EXPECT_EQ(never, 12);
}

TEST(BreakEvenGoldens, TruenosMatmulCrossesBetween390And400) {
  const BreakEven b = of(trueno().at("matmul"));
  ASSERT_EQ(b.cpu.size(), 3U);
  EXPECT_EQ(b.kind, Kind::at);
  EXPECT_GE(b.n, 390);
  EXPECT_LE(b.n, 400);
  // Nothing was measured between the last loss and the first win: the answer is no narrower than that.
  EXPECT_EQ(b.low, 100);
  EXPECT_EQ(b.high, 500);
  EXPECT_EQ(b.practical_n, 1024);
  EXPECT_TRUE(b.measured);
}

TEST(BreakEven, EngramsPracticalConstantIs16) {
  EXPECT_EQ(practical(10 / (2.1 - 0.3)), 16);
  EXPECT_EQ(practical(0), 0);
}

TEST(BreakEven, AMillionElementsOfHostDataLoseTo16ThreadsWhateverOneThreadSays) {
  // Pinned round trip and CPU of the reference machine, microseconds.
  const auto gpu = curve({{1e3, 10.5e-6}, {1e4, 13.5e-6}, {1e5, 31e-6}, {1e6, 236e-6}, {1e7, 1754e-6}});
  const auto one = curve({{1e3, 0.15e-6}, {1e4, 2.2e-6}, {1e5, 20.7e-6}, {1e6, 530e-6}, {1e7, 5941e-6}});
  const BreakEven fake = breakeven_of(one, gpu);
  EXPECT_EQ(fake.kind, Kind::at);
  EXPECT_GT(fake.n, 135e3);
  EXPECT_LT(fake.n, 317e3);
  const auto all = curve({{1e3, 3e-6}, {1e4, 3e-6}, {1e5, 4e-6}, {1e6, 20e-6}, {1e7, 1644e-6 * 0.8}});
  CurveFacts facts;
  facts.floor_seconds = 7e-6;
  facts.link_share = 0.9;
  facts.link_text = "link 55 GB/s < CPU memory 73 GB/s; wins if resident";
  const BreakEven honest = breakeven_of(all, gpu, facts);
  EXPECT_EQ(honest.kind, Kind::never);
  EXPECT_EQ(honest.reason, "link");
  EXPECT_EQ(honest.text, "never: link 55 GB/s < CPU memory 73 GB/s; wins if resident");
}

TEST(BreakEven, APathSlowerThanOneThreadNeverWins) {
  // Pageable copies against one thread of the reference machine.
  const auto gpu = curve({{1e3, 24e-6}, {1e4, 41e-6}, {1e5, 146e-6}, {1e6, 1150e-6}, {1e7, 11424e-6}});
  const auto one = curve({{1e3, 0.15e-6}, {1e4, 2.2e-6}, {1e5, 20.7e-6}, {1e6, 530e-6}, {1e7, 5941e-6}});
  CurveFacts facts;
  facts.link_share = 0.95;
  const BreakEven b = breakeven_of(one, gpu, facts);
  EXPECT_EQ(b.kind, Kind::never);
  EXPECT_EQ(b.reason, "link");
}

TEST(BreakEven, EqualSlopesDecideNothing) {
  std::vector<std::pair<double, double>> cpu, gpu;
  for (double n = 1e4; n <= 1e9; n *= 10) {
    cpu.emplace_back(n, 3e-6 + n * 12 / 73e9);
    gpu.emplace_back(n, 10e-6 + n * 12 / 71.7e9);
  }
  const BreakEven b = breakeven_of(curve(cpu, 0.06), curve(gpu, 0.06));
  EXPECT_EQ(b.kind, Kind::indifferent);
  EXPECT_NE(b.text.find("stays on CPU"), std::string::npos);
  // The same slopes, known to a tenth of a per cent, do decide.
  EXPECT_EQ(breakeven_of(curve(cpu, 0.001), curve(gpu, 0.001)).kind, Kind::never);
}

TEST(BreakEven, CacheStepsGiveSeveralWindowsAndTheLastOneCounts) {
  const auto cpu = curve({{1, 1}, {2, 5}, {4, 5}, {8, 1}, {16, 9}, {32, 30}});
  const auto gpu = curve({{1, 3}, {2, 3}, {4, 3}, {8, 3}, {16, 3}, {32, 3}});
  const BreakEven b = breakeven_of(cpu, gpu);
  ASSERT_EQ(b.windows.size(), 2U);
  EXPECT_GT(b.windows[0].from, 1);
  EXPECT_LT(b.windows[0].to, 8);
  EXPECT_EQ(b.kind, Kind::at);
  EXPECT_DOUBLE_EQ(b.n, b.windows[1].from);
  EXPECT_GT(b.n, 8);
  EXPECT_EQ(b.windows[1].to, 32);
}

TEST(BreakEven, AWinThatEndsInsideTheRangeIsNoBreakEven) {
  const BreakEven b = breakeven_of(curve({{1, 1}, {2, 5}, {4, 1}}), curve({{1, 3}, {2, 3}, {4, 3}}));
  EXPECT_EQ(b.kind, Kind::never);
  EXPECT_EQ(b.windows.size(), 1U);
}

TEST(BreakEven, BeyondTheLargestCallItIsNeverByRange) {
  CurveFacts facts;
  facts.largest_seen = 2e6;
  const BreakEven b =
      breakeven_of(curve({{1e6, 1e-3}, {1e8, 1e-1}}), curve({{1e6, 2e-2}, {1e8, 5e-2}}), facts);
  EXPECT_EQ(b.kind, Kind::never);
  EXPECT_EQ(b.reason, "range");
  EXPECT_NE(b.text.find("your largest call is 2M"), std::string::npos) << b.text;
}

TEST(BreakEven, EvidenceAgainstParallelismEndsIt) {
  CurveFacts facts;
  facts.serial_text = "a dependency between iterations";
  const BreakEven b = breakeven_of(curve({{1, 2}, {2, 4}}), curve({{1, 1}, {2, 1}}), facts);
  EXPECT_EQ(b.kind, Kind::never);
  EXPECT_EQ(b.reason, "serial");
}

TEST(BreakEven, AWinEverywhereIsAlwaysAndTooFewSizesAreUnknown) {
  EXPECT_EQ(breakeven_of(curve({{1, 2}, {2, 4}}), curve({{1, 1}, {2, 1}})).kind, Kind::always);
  EXPECT_EQ(breakeven_of(curve({{1, 2}}), curve({{1, 1}})).kind, Kind::unknown);
  EXPECT_EQ(breakeven_of({}, {}).kind, Kind::unknown);
}

TEST(BreakEven, ReuseIsCountedAgainstTheResidentCall) {
  EXPECT_EQ(reuse_needed(10, 2, 40), 5);
  EXPECT_EQ(reuse_needed(10, 10, 40), 0);
  EXPECT_EQ(reuse_needed(10, 2, 1), 1);
}

// By the model.

Sizes along(std::string op, std::string dim, double from, double to) {
  Sizes s;
  s.op = std::move(op);
  s.dim = std::move(dim);
  s.from = from;
  s.to = to;
  return s;
}

TEST(BreakEvenModel, DotOnHostDataIsNeverByTheLinkAndResidentDataFlipsIt) {
  const auto host = breakeven(reference(), along("dot", "n", 1024, 268435456), {});
  ASSERT_TRUE(host.ok());
  EXPECT_EQ(host->kind, Kind::never);
  EXPECT_EQ(host->reason, "link") << host->text;
  EXPECT_NE(host->text.find("wins if resident"), std::string::npos) << host->text;
  EXPECT_GE(host->reuse_needed, 2);
  const auto resident =
      breakeven(reference(), along("dot", "n", 1024, 268435456), {.regime = Regime::resident});
  EXPECT_EQ(resident->kind, Kind::at) << resident->text;
  const Call big = call("dot", "n=268435456");
  const double ratio =
      reference().cpu(big).seconds / reference().gpu(big, {.regime = Regime::resident}).seconds;
  EXPECT_GT(ratio, 50);
  EXPECT_LT(ratio, 70);
}

TEST(BreakEvenModel, SmallAddsAreNeverBecauseOfTheFloor) {
  const auto b = breakeven(reference(), along("vec_add", "n", 1, 4096), {});
  EXPECT_EQ(b->kind, Kind::never);
  EXPECT_EQ(b->reason, "floor") << b->text;
}

TEST(BreakEvenModel, SquareProductsHaveAFiniteBreakEven) {
  Sizes s = along("matmul", "M", 1, 4096);
  s.dims = {"N", "K"};
  const auto b = breakeven(reference(), s, {});
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->kind, Kind::at) << b->text;
  EXPECT_GT(b->n, 50);
  EXPECT_LT(b->n, 2000);
  EXPECT_EQ(b->cpu.size(), b->gpu.size());
  EXPECT_FALSE(b->measured);
}

TEST(BreakEvenModel, RefusesARangeThatIsNoneAndAnOpThatIsNone) {
  EXPECT_EQ(breakeven(reference(), along("dot", "n", 8, 8), {}).error().code, Code::usage);
  EXPECT_FALSE(breakeven(reference(), along("doot", "n", 1, 8), {}).ok());
}

TEST(BreakEvenModel, SaysWhyThereIsNoPrediction) {
  Machine gpu = device();
  gpu.gpus[0].flops.erase("fp32");
  const auto b = breakeven(Model(desk(), {}, gpu, {}), along("dot", "n", 1, 1024), {});
  EXPECT_EQ(b->kind, Kind::unknown);
  EXPECT_NE(b->text.find("fp32"), std::string::npos) << b->text;
}

TEST(BreakEvenMeasured, ComesFromTheCellsOfBothSides) {
  std::vector<Measurement> host, gpu;
  for (const double n : {1024.0, 16384.0, 262144.0, 4194304.0}) {
    const std::string shape = fmt_size(n);
    host.push_back(measurement("relu", shape, n * 1e-9));
    host.push_back(measurement("relu", shape, 3e-6 + n * 0.5e-9, Regime::host, {}, 16));
    gpu.push_back(measurement("relu", shape, 20e-6 + n * 0.2e-9, Regime::roundtrip, "copy"));
    gpu.push_back(measurement("relu", shape, 60e-6 + n * 0.1e-9, Regime::roundtrip, "duplex"));
  }
  const Model model(desk(), Calibration(desk(), host), device(), Calibration(device(), gpu));
  const auto b = breakeven_measured(model, along("relu", "n", 1, 1e7), {});
  ASSERT_TRUE(b.ok());
  EXPECT_TRUE(b->measured);
  EXPECT_EQ(b->grade, Grade::a);
  EXPECT_EQ(b->kind, Kind::at) << b->text;
  // 3e-6 + 0.5e-9 n = 20e-6 + 0.2e-9 n
  EXPECT_GT(b->n, 56666 / 1.5);  // sizes lie a factor of 16 apart
  EXPECT_LT(b->n, 56666 * 1.5);
  EXPECT_EQ(b->cpu.size(), 4U);
}

TEST(BreakEvenModel, PassesThroughWhatWasMeasured) {
  const std::vector<Measurement> host{measurement("relu", "n=5000", 1.5e-6),
                                      measurement("relu", "n=700000", 90e-6)};
  const Model model(desk(), Calibration(desk(), host), device(), {});
  const auto b = breakeven(model, along("relu", "n", 1000, 1e6), {});
  ASSERT_TRUE(b.ok());
  int measured = 0;
  for (const CurvePoint& p : b->cpu) {
    measured += p.measured;
    if (p.n == 5000) {
      EXPECT_EQ(p.seconds, 1.5e-6);
    }
  }
  EXPECT_EQ(measured, 2);
}

TEST(BreakEvenModel, PredictionsStayBetweenTheMeasuredSizesAroundThem) {
  // One size was disturbed: what lies beyond it does not come back below it.
  const std::vector<Measurement> host{measurement("relu", "n=1000", 1e-6),
                                      measurement("relu", "n=2000", 2e-6),
                                      measurement("relu", "n=200000", 2e-3)};
  const Model model(desk(), Calibration(desk(), host), device(), {});
  const auto b = breakeven(model, along("relu", "n", 1000, 1e6), {});
  ASSERT_TRUE(b.ok());
  for (const CurvePoint& p : b->cpu) {
    EXPECT_GE(p.seconds, p.n > 200000 ? 0.99 * 2e-3 : 0.99e-6) << p.n;
    EXPECT_LE(p.seconds, p.n < 200000 ? 1.01 * 2e-3 : 1) << p.n;
    EXPECT_LE(p.low, p.seconds) << p.n;
    EXPECT_GE(p.high, p.seconds) << p.n;
  }
}

// The search.

TEST(BreakEvenSearch, ClimbsTheLadderThenClosesInOnTheBoundary) {
  const double boundary = 3000;
  std::vector<CurvePoint> cpu, gpu;
  const Search search{.from = 1, .to = 1 << 20, .ratio = 1.05, .most = 60};
  std::vector<double> asked;
  while (const auto n = next_size(cpu, gpu, search)) {
    ASSERT_LT(asked.size(), 60U);
    asked.push_back(*n);
    cpu.push_back({*n, *n, *n * 0.999, *n * 1.001, true});
    gpu.push_back({*n, boundary, boundary * 0.999, boundary * 1.001, true});
  }
  ASSERT_GT(asked.size(), 16U);
  for (std::size_t i = 0; i <= 10; ++i) EXPECT_EQ(asked[i], std::exp2(static_cast<double>(i)));
  const BreakEven b = breakeven_of(cpu, gpu);
  EXPECT_NEAR(b.n, boundary, 0.05 * boundary);
}

TEST(BreakEvenSearch, WorksWithAPredictedSide) {
  // The CPU is measured where asked, the GPU only predicted; sizes below 10 are refused by the op.
  const auto cpu_seconds = [](double n) { return 1e-6 + 1e-9 * n; };
  std::vector<double> measured;
  const Search search{.from = 1, .to = 1 << 20, .ratio = 1.1, .most = 60};
  double closest = 1e9;
  for (int i = 0; i < 60; ++i) {
    std::vector<CurvePoint> cpu, gpu;
    std::vector<double> sizes = measured;
    for (double n = 10; n < 1 << 20; n = std::floor(n * 1.3) + 1) sizes.push_back(n);
    std::sort(sizes.begin(), sizes.end());
    for (const double n : sizes) {
      const bool known = std::find(measured.begin(), measured.end(), n) != measured.end();
      cpu.push_back({n, cpu_seconds(n), cpu_seconds(n) * 0.99, cpu_seconds(n) * 1.01, known});
      gpu.push_back({n, 10e-6, 9.9e-6, 10.1e-6, false});
    }
    const auto next = next_size(cpu, gpu, search);
    if (!next) break;
    ASSERT_GE(*next, 10);
    ASSERT_EQ(std::find(measured.begin(), measured.end(), *next), measured.end());
    measured.push_back(*next);
    closest = std::min(closest, std::abs(std::log(*next / 9000)));
  }
  EXPECT_LT(closest, 0.1);
  EXPECT_LT(measured.size(), 30U);
}

TEST(BreakEvenSearch, StopsInsideTheNoiseAndAtItsLimit) {
  std::vector<CurvePoint> cpu, gpu;
  const Search search{.from = 1, .to = 1 << 14, .ratio = 1.001, .most = 200};
  int asked = 0;
  while (const auto n = next_size(cpu, gpu, search)) {
    ++asked;
    ASSERT_LT(asked, 60);
    cpu.push_back({*n, *n, *n * 0.8, *n * 1.2, true});
    gpu.push_back({*n, 500, 400, 600, true});
  }
  const Search short_search{.from = 1, .to = 1 << 14, .ratio = 1.001, .most = 3};
  EXPECT_FALSE(next_size(cpu, gpu, short_search).has_value());
}

}  // namespace
}  // namespace fulcrum::model::test
