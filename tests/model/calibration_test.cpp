// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What measurements add to the closed form: factors between sizes, grades, intervals.
#include "model/interpolate.h"
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

std::vector<Sample> on_line(const std::vector<std::pair<double, double>>& points) {
  std::vector<Sample> out;
  for (const auto& [x, y] : points) out.push_back({{x, x, x, x}, y, 0.01, "op"});
  return out;
}

TEST(Interpolate, GoesThroughItsSamplesAndStraightBetweenThem) {
  const auto samples = on_line({{1, 0.1}, {3, 0.5}, {5, 0.2}});
  EXPECT_NEAR(interpolate(samples, {3, 3, 3, 3}).value, 0.5, 1e-12);
  EXPECT_NEAR(interpolate(samples, {2, 2, 2, 2}).value, 0.3, 1e-12);
  EXPECT_TRUE(interpolate(samples, {2, 2, 2, 2}).inside);
}

TEST(Interpolate, BeyondItsSamplesKeepsTheNearestAndDoubtsMore) {
  const auto samples = on_line({{1, 0.1}, {3, 0.5}, {5, 0.2}});
  const Interpolated near = interpolate(samples, {6, 6, 6, 6}), far = interpolate(samples, {12, 12, 12, 12});
  EXPECT_NEAR(near.value, 0.2, 1e-12);
  EXPECT_NEAR(far.value, 0.2, 1e-12);
  EXPECT_FALSE(near.inside);
  EXPECT_GT(far.sigma, near.sigma);
  EXPECT_GT(near.sigma, interpolate(samples, {4.9, 4.9, 4.9, 4.9}).sigma);
}

TEST(Interpolate, InSeveralDimsPassesNearItsSamplesAndReturnsToTheMiddleAway) {
  std::vector<Sample> samples;
  for (const double a : {0.0, 4.0}) {
    for (const double b : {0.0, 4.0}) samples.push_back({{a, b, 1, 1}, 0.1 * a + 0.05 * b, 0.01, "op"});
  }
  for (const Sample& s : samples) EXPECT_NEAR(interpolate(samples, s.at).value, s.value, 0.02);
  const Interpolated middle = interpolate(samples, {2, 2, 1, 1});
  EXPECT_NEAR(middle.value, 0.3, 0.05);
  EXPECT_TRUE(middle.inside);
  const Interpolated away = interpolate(samples, {40, -40, 1, 1});
  EXPECT_NEAR(away.value, 0.3, 0.05);
  EXPECT_FALSE(away.inside);
  EXPECT_GT(away.sigma, middle.sigma);
}

TEST(Interpolate, StaysBetweenItsSamplesHoweverNearOnesDiffer) {
  const std::vector<Sample> samples{{{0, 0, 1, 1}, 0.0, 0.01, "op"},
                                    {{0, 4, 1, 1}, 0.1, 0.01, "op"},
                                    {{2, 2, 1, 1}, 0.0, 0.01, "op"},
                                    {{2.05, 2.05, 1, 1}, 0.8, 0.01, "op"}};
  for (double x = 2; x < 5; x += 0.25) EXPECT_LE(interpolate(samples, {x, x, 1, 1}).value, 0.8) << x;
}

TEST(Interpolate, AClassCurveCountsEveryOpAlike) {
  std::vector<Sample> samples(20, {{5, 5, 5, 5}, 1.0, 0, "talkative"});
  samples.push_back({{5, 5, 5, 5}, 0.0, 0, "quiet"});
  EXPECT_NEAR(class_curve(samples, {5, 5, 5, 5}).value, 0.5, 1e-6);
}

TEST(Cells, AreTheFastestOfTheirKindAndLeaveProbesAndInvalidRowsOut) {
  Measurement slow = measurement("relu", "n=1000", 2e-6), fast = measurement("relu", "n=1000", 1e-6);
  slow.variant = "slow";
  Measurement invalid = measurement("relu", "n=1000", 1e-9);
  invalid.quality = Quality::invalid;
  Measurement scalar = measurement("relu", "n=1000", 5e-6);
  scalar.backend = "scalar";
  Measurement peer = measurement("relu", "n=1000", 1e-8);
  peer.backend = "peers";
  Measurement crowded = measurement("relu", "n=1000", 4e-7, Regime::resident);
  crowded.flags = {"shared_device"};
  const auto cells = cells_of(std::vector{slow, fast, invalid, scalar, peer, crowded});
  ASSERT_EQ(cells.size(), 2U);
  double best = 1, plain = 0;
  for (const Cell& cell : cells) (cell.backend == "scalar" ? plain : best) = cell.seconds;
  EXPECT_EQ(best, 1e-6);
  EXPECT_EQ(plain, 5e-6);
}

TEST(Cells, ARowOfFewSamplesHasTheIntervalThatRepeatsHave) {
  Measurement once = measurement("relu", "n=1000", 10e-6);
  once.samples = 1;
  once.seconds.ci_low = once.seconds.ci_high = once.seconds.median;
  Measurement batch = once;
  batch.calls_per_sample = 80;
  const Cell one = cells_of(std::vector{once}).front(), many = cells_of(std::vector{batch}).front();
  EXPECT_LT(one.low, 9e-6);
  EXPECT_GT(one.high, 11e-6);
  EXPECT_LT(many.low, 10e-6);
  EXPECT_LT(many.high / many.low, one.high / one.low);
}

// A device that is 1.3 times slower than its closed form at every size.
std::vector<Measurement> slower(std::string_view op, const std::vector<double>& sizes, double factor) {
  std::vector<Measurement> out;
  const Model plain(desk(), {}, device(), {});
  for (const double n : sizes) {
    const std::string shape = fmt_size(n);
    for (const char* path : {"copy", "duplex"}) {
      out.push_back(measurement(op, shape, factor * plain.gpu(call(op, shape), {.path = path}).seconds,
                                Regime::roundtrip, path));
    }
  }
  return out;
}

TEST(Calibration, CarriesAFactorToSizesBetween) {
  const auto cells = slower("relu", {1e4, 1e5, 1e6, 1e7}, 1.3);
  const Model model(desk(), {}, device(), Calibration(device(), cells));
  const Call c = call("relu", "n=300000");
  const Prediction p = model.gpu(c, {.path = "copy"});
  const double plain = closed_form_gpu(c, device(), {.path = "copy"}).seconds;
  EXPECT_NEAR(p.seconds / plain, 1.3, 0.03);
  EXPECT_EQ(p.grade, Grade::b);
  EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds);
  EXPECT_LT(p.high / p.low, 1.5);
}

TEST(Calibration, GradesFollowWhereTheNumberComesFrom) {
  const auto cells = slower("relu", {1e4, 1e5, 1e6, 1e7}, 1.3);
  const Model model(desk(), {}, device(), Calibration(device(), cells));
  const auto at = [&](const char* op, const char* shape) {
    return model.gpu(call(op, shape), {.path = "copy"});
  };
  const Prediction measured = at("relu", "n=100000");
  EXPECT_EQ(measured.grade, Grade::a);
  EXPECT_NE(measured.way.find("cuda/default"), std::string::npos);
  EXPECT_NEAR(counted(measured), measured.seconds, 1e-9 * measured.seconds);
  EXPECT_EQ(at("relu", "n=200000").grade, Grade::b);
  const Prediction beyond = at("relu", "n=500000000");
  EXPECT_EQ(beyond.grade, Grade::c);
  EXPECT_GT(beyond.high / beyond.low, at("relu", "n=200000").high / at("relu", "n=200000").low);
  const Prediction other =
      at("tanh", "n=200000");  // an op of the same class lends its factor, with more doubt
  EXPECT_EQ(other.grade, Grade::c);
  EXPECT_NEAR(other.seconds / closed_form_gpu(call("tanh", "n=200000"), device(), {.path = "copy"}).seconds,
              1.3, 0.1);
  EXPECT_EQ(model.without_cells().gpu(call("relu", "n=100000"), {.path = "copy"}).grade, Grade::b);
}

TEST(Calibration, FindsTheCellsOfRegimesThatLeaveThePathToTheBackend) {
  Measurement shared = measurement("relu", "n=1000000", 7e-6, Regime::reuse, "auto");
  shared.reuse = 16;
  const std::vector<Measurement> rows{
      shared, measurement("relu", "n=1000000", 50e-6, Regime::overlapped, "overlapped")};
  const Model model(desk(), {}, device(), Calibration(device(), rows));
  const Call c = call("relu", "n=1000000");
  EXPECT_EQ(model.gpu(c, {.regime = Regime::reuse, .reuse = 16}).seconds, 7e-6);
  EXPECT_NE(model.gpu(c, {.regime = Regime::reuse, .reuse = 17}).grade, Grade::a);
  EXPECT_EQ(model.gpu(c, {.regime = Regime::overlapped}).grade, Grade::a);
}

TEST(Calibration, BeyondTheCacheAColdCellIsThisVeryCell) {
  Measurement large = measurement("relu", "n=100000000", 200e-6, Regime::resident);
  Measurement small = measurement("relu", "n=1000000", 20e-6, Regime::resident);
  large.cache = small.cache = Cache::cold;
  const Model model(desk(), {}, device(), Calibration(device(), std::vector{large, small}));
  EXPECT_EQ(model.gpu(call("relu", "n=100000000"), {.regime = Regime::resident}).grade, Grade::a);
  EXPECT_NE(model.gpu(call("relu", "n=1000000"), {.regime = Regime::resident}).grade, Grade::a);
}

TEST(Calibration, WhatOneSizeSaysFadesBeyondIt) {
  auto cells = slower("relu", {1e4, 1e5, 1e6, 1e7}, 1.0);
  for (Measurement& m : cells) {
    if (m.shape.dim("n") == 10'000'000) m.seconds.median *= 1.6;
  }
  const Model model(desk(), {}, device(), Calibration(device(), cells));
  const auto factor = [&](const char* shape) {
    const Call c = call("relu", shape);
    return model.gpu(c, {.path = "copy"}).seconds / closed_form_gpu(c, device(), {.path = "copy"}).seconds;
  };
  EXPECT_GT(factor("n=11000000"), 1.4);
  EXPECT_LT(factor("n=3000000000"), factor("n=11000000") - 0.05);
}

TEST(Calibration, NeverSnapsToTheNearestSize) {
  const auto cells = slower("relu", {1e4, 1e7}, 1.2);
  const Model model(desk(), {}, device(), Calibration(device(), cells));
  double before = 0;
  for (double n = 1e4; n < 1e7; n *= 1.25) {
    const double now = model.gpu(call("relu", fmt_size(std::floor(n) + 1)), {.path = "copy"}).seconds;
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(Calibration, WaysThatTheBackendChoosesBetweenDoNotSpeakForEachOther) {
  // Up to 64 KiB on the host's memory, three times slower than the closed form; copies beyond, as the closed form says.
  const Model plain(desk(), {}, device(), {});
  std::vector<Measurement> rows;
  for (const double n : {500.0, 1e3, 2e3, 4e3, 3e4, 1e5, 1e6}) {
    const double factor = n < 8192 ? 3 : 1;
    const double seconds = plain.gpu(call("dot", fmt_size(n)), {.path = "auto"}).seconds;
    rows.push_back(measurement("dot", fmt_size(n), factor * seconds, Regime::roundtrip, "auto"));
  }
  const Model model(desk(), {}, device(), Calibration(device(), rows));
  const auto factor = [&](const char* shape) {
    return model.gpu(call("dot", shape), {.path = "auto"}).seconds /
           plain.gpu(call("dot", shape), {.path = "auto"}).seconds;
  };
  EXPECT_NEAR(factor("n=9000"), 1, 0.1);
  EXPECT_NEAR(factor("n=7000"), 3, 0.3);
}

TEST(Calibration, OfOneGpuCarriesOverToAnotherWithGradeD) {
  const auto cells = slower("relu", {1e4, 1e5, 1e6, 1e7}, 1.3);
  const Machine l4 = profile("share/machines/l4.json");
  const Call c = call("relu", "n=1000000");
  const Prediction with = Model(desk(), {}, l4, Calibration(device(), cells)).gpu(c, {.path = "copy"});
  const Prediction without = Model(desk(), {}, l4, {}).gpu(c, {.path = "copy"});
  EXPECT_EQ(with.grade, Grade::d);
  EXPECT_NEAR(with.seconds / without.seconds, 1.3, 0.1);
  EXPECT_LE(with.low, with.seconds / 1.5);
  EXPECT_EQ(with.way.find("cuda/default"),
            std::string::npos);  // a cell of another GPU is no measurement of this one
}

TEST(Calibration, OtherOpsInPiecesSayMoreAboutPiecesThanTheSameOpInCopies) {
  const GpuUse use{.path = "auto"};
  Machine copying = device();
  copying.gpus[0].link.erase("mapped_read");
  const Model plain(desk(), {}, copying, {});
  const auto closed = [&](const char* op, double n) { return plain.gpu(call(op, fmt_size(n)), use); };
  std::vector<Measurement> rows;
  for (const double n : {1e3, 1e4, 1e5}) {
    ASSERT_EQ(closed("elu", n).way, "auto: copy");
    rows.push_back(measurement("elu", fmt_size(n), 2 * closed("elu", n).seconds, Regime::roundtrip, "auto"));
  }
  for (const char* op : {"relu", "clip"}) {
    for (const double n : {4e6, 8e6, 3e7}) {
      ASSERT_EQ(closed(op, n).way, "auto: duplex");
      rows.push_back(measurement(op, fmt_size(n), closed(op, n).seconds, Regime::roundtrip, "auto"));
    }
  }
  const Model model(desk(), {}, copying, Calibration(copying, rows));
  const Prediction p = model.gpu(call("elu", "n=10000000"), use);
  EXPECT_NEAR(p.seconds / closed("elu", 1e7).seconds, 1, 0.1);
  EXPECT_EQ(p.grade, Grade::c);
}

TEST(Calibration, ResidentCallsAreKernelPlusLaunch) {
  std::vector<Measurement> rows;
  for (const double n : {1e4, 1e5, 1e6}) {
    Measurement m = measurement("gelu", fmt_size(n), 0, Regime::resident);
    m.device_seconds = Estimate{};
    m.device_seconds->median = 1e-6 + n * 2e-12;
    m.seconds.median = m.device_seconds->median + 12e-6;
    m.seconds.ci_low = m.seconds.median * 0.99;
    m.seconds.ci_high = m.seconds.median * 1.01;
    rows.push_back(m);
  }
  const Model model(desk(), {}, device(), Calibration(device(), rows));
  const Prediction p = model.gpu(call("gelu", "n=400000"), {.regime = Regime::resident});
  EXPECT_EQ(p.grade, Grade::b);
  EXPECT_NEAR(term(p, "launch and sync")->seconds, 12e-6, 0.2e-6);
  EXPECT_NEAR(p.seconds, 12e-6 + 1e-6 + 0.8e-6, 0.4e-6);
}

TEST(Calibration, TheCpuTakesOnlyThreadCountsThatWereMeasured) {
  std::vector<Measurement> rows;
  for (const double n : {1e3, 1e5, 1e7}) {
    rows.push_back(measurement("relu", fmt_size(n), 1e-7 + n * 0.5e-9));
    rows.push_back(measurement("relu", fmt_size(n), 5e-6 + n * 0.1e-9, Regime::host, {}, 16));
  }
  const Model model(desk(), Calibration(desk(), rows), {}, {});
  const Prediction small = model.cpu(call("relu", "n=2000")), large = model.cpu(call("relu", "n=3000000"));
  EXPECT_NE(small.way.find("1 thread"), std::string::npos);
  EXPECT_NE(large.way.find("16 threads"), std::string::npos);
  EXPECT_EQ(large.losers.size(), 1U);
  EXPECT_EQ(large.grade, Grade::b);
}

TEST(Calibration, WorksOnACpuWithoutCeilings) {
  std::vector<Measurement> rows;
  for (const double n : {1e3, 1e4, 1e5, 1e6}) rows.push_back(measurement("relu", fmt_size(n), n * 1e-9));
  Machine bare;
  bare.id = "bare";
  const Model model(bare, Calibration(bare, rows), {}, {});
  EXPECT_NEAR(model.cpu(call("relu", "n=30000")).seconds, 3e-5, 0.2e-5);
  EXPECT_FALSE(model.cpu(call("matmul", "M=8,N=8,K=8")).valid());
}

TEST(InCacheRate, IsTheComputeRoofOfOpsWithAnExponential) {
  // 1 ns an element in cache: far above what the peak would give for 19 slots.
  std::vector<Measurement> rows{measurement("sigmoid", "n=10000", 10e-6)};
  const auto cells = cells_of(rows);
  const double slots = in_cache_slots(cells, desk(), "sigmoid", 1);
  EXPECT_NEAR(slots, rows[0].work.issue_slots / 10e-6, 1);
  EXPECT_NEAR(in_cache_slots(cells, desk(), "sigmoid", 4), 4 * slots, 1);
  EXPECT_NEAR(in_cache_slots(cells, desk(), "sigmoid", 16), 10 * slots, 1);  // as the peaks scale
  EXPECT_EQ(in_cache_slots(cells, desk(), "tanh", 1), 0);
  // One slot for every 8 bytes: its rate in a cache is the cache's.
  const auto plain = cells_of(std::vector{measurement("relu", "n=10000", 10e-6)});
  EXPECT_EQ(in_cache_slots(plain, desk(), "relu", 1), 0);
  const Model model(desk(), Calibration(desk(), rows), {}, {});
  const Prediction p = model.cpu(call("sigmoid", "n=20000"));
  EXPECT_EQ(p.bound, "compute");
  EXPECT_NE(term(p, "compute")->detail.find("in cache"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::model::test
