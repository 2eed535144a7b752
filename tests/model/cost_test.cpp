// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The closed forms: every term has its seconds, and a missing field is no number.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

TEST(Link, IsLinearInBytesBetweenKnotsAndKeepsItsRateBeyondThem) {
  const std::vector<std::pair<std::int64_t, Quantity>> table{
      {1000, rate(10)}, {3000, rate(20)}, {7000, rate(60)}};
  EXPECT_DOUBLE_EQ(link_seconds(table, 1).value(), 10);
  EXPECT_DOUBLE_EQ(link_seconds(table, 2000).value(), 15);
  EXPECT_DOUBLE_EQ(link_seconds(table, 5000).value(), 40);
  EXPECT_DOUBLE_EQ(link_seconds(table, 11000).value(), 100);
  EXPECT_FALSE(link_seconds({}, 1).has_value());
}

TEST(Ctas, FewOfThemCannotAskForTheWholeRate) {
  const Machine h200 = profile("share/machines/h200.json");
  const GpuCeilings& gpu = h200.gpus[0];
  const double full = gpu.rates.at("hbm_read").value;
  EXPECT_LT(rate_of_ctas(gpu, 1), 0.05 * full);
  EXPECT_NEAR(rate_of_ctas(gpu, 528), full, 0.01 * full);
  double before = 0;
  for (const double ctas : {1.0, 2.0, 3.0, 10.0, 100.0, 300.0}) {
    EXPECT_GT(rate_of_ctas(gpu, ctas), before);
    before = rate_of_ctas(gpu, ctas);
  }
  // Without a table the knee stands in for it.
  GpuCeilings plain = gpu;
  plain.tables.clear();
  EXPECT_LT(rate_of_ctas(plain, 8), 0.2 * full);
  EXPECT_NEAR(rate_of_ctas(plain, 1056), full, 0.02 * full);
}

TEST(CpuCost, TermsAddUpAndTheRoofThatDoesNotBindIsHidden) {
  const Prediction p = reference().cpu(call("vec_add", "n=100000000"));
  ASSERT_TRUE(p.valid());
  EXPECT_NEAR(counted(p), p.seconds, 1e-12 * p.seconds);
  EXPECT_EQ(p.bound, "memory");
  EXPECT_EQ(p.level, "DRAM");
  EXPECT_EQ(p.way, "16 threads");
  EXPECT_NEAR(p.seconds, 1.2e9 / 73e9, 0.01 * p.seconds);
  ASSERT_NE(term(p, "compute"), nullptr);
  EXPECT_FALSE(term(p, "compute")->counted);
  EXPECT_TRUE(term(p, "memory")->counted);
  EXPECT_EQ(p.losers.size(), 4U);  // 1, 2, 4, 8 threads
  EXPECT_LE(p.low, p.seconds / 1.5);
  EXPECT_EQ(p.grade, Grade::c);
}

TEST(CpuCost, SmallCallsStayOnOneThread) {
  const Prediction p = reference().cpu(call("vec_add", "n=1000"));
  EXPECT_EQ(p.way, "1 thread");
  EXPECT_EQ(p.level, "L1");
}

TEST(CpuCost, AMillionAddsTakeSixteenThreadsNotTheGpuAndNotOneThread) {
  const Call c = call("vec_add", "n=1048576");
  const Prediction cpu = reference().cpu(c), gpu = reference().gpu(c, {});
  EXPECT_EQ(cpu.way, "16 threads");
  EXPECT_GT(reference().cpu(c, 1).seconds, gpu.seconds);  // the win that is none
  EXPECT_GT(gpu.seconds / cpu.seconds, 5);
}

TEST(CpuCost, GrowsWithoutStepsBetweenLevels) {
  double before = 0;
  for (double n = 1024; n < 1e8; n *= 1.1) {
    const double now = reference().cpu(call("relu", fmt_size(std::floor(n))), 1).seconds;
    EXPECT_GT(now, before);
    if (before > 0) {
      EXPECT_LT(now, 1.6 * before) << n;
    }
    before = now;
  }
}

TEST(CpuCost, WithoutMeasuredRatesThereIsNoNumber) {
  const Prediction p = closed_form_cpu(call("relu", "n=1000"), Machine{}, 1);
  EXPECT_FALSE(p.valid());
  EXPECT_FALSE(p.missing.empty());
  EXPECT_EQ(p.seconds, 0);
}

TEST(CpuCost, ColdDataComeFromMemory) {
  Call c = call("relu", "n=1000");
  c.cache = Cache::cold;
  EXPECT_EQ(reference().cpu(c, 1).level, "DRAM");
}

TEST(GpuCost, AGraphIsReadOnceForEachHopAndEveryEdgeFetchesASector) {
  const auto memory = [](const char* shape) {
    const Prediction p = reference().gpu(call("activation_spreading", shape), {.regime = Regime::resident});
    return term(p, "kernel memory")->seconds;
  };
  const double one = memory("n=1000000,nnz=5000000,hops=1"), three = memory("n=1000000,nnz=5000000,hops=3");
  EXPECT_NEAR(three / one, 3, 0.05);
  EXPECT_GT(one, 32 * 5e6 / 9e12);  // sectors alone, at the rate of the cache that may hold them
}

TEST(GpuCost, AFewBytesInTheHostsMemoryTakeNoLongerThanMore) {
  Machine odd = device();
  odd.gpus[0].link["mapped_read"].front().second = rate(20e-6);  // a probe's first touch
  const Model model(desk(), {}, odd, {});
  const GpuUse use{.path = "latency"};
  EXPECT_LE(model.gpu(call("relu", "n=1"), use).seconds, model.gpu(call("relu", "n=1000"), use).seconds);
}

TEST(GpuCost, EveryPathNamesItsTermsAndTheyAddUp) {
  for (const char* shape : {"n=1000", "n=100000", "n=30000000"}) {
    for (const Regime regime : {Regime::roundtrip, Regime::managed}) {
      for (const std::string_view path : paths_of(regime)) {
        const Prediction p =
            reference().gpu(call("vec_add", shape), {.regime = regime, .path = std::string(path)});
        ASSERT_TRUE(p.valid()) << path << p.missing;
        EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds) << path;
        EXPECT_LT(p.low, p.seconds);
        EXPECT_GT(p.high, p.seconds);
      }
    }
    for (const Regime regime : {Regime::resident, Regime::overlapped, Regime::reuse}) {
      const Prediction p = reference().gpu(call("vec_add", shape), {.regime = regime, .reuse = 10});
      ASSERT_TRUE(p.valid());
      EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds) << to_string(regime);
    }
  }
}

TEST(GpuCost, TheBackendsOwnChoiceIsTheAnswerAndAllPathsStandBesideIt) {
  const Prediction p = reference().gpu(call("vec_add", "n=10000000"), {});
  EXPECT_EQ(p.way, "auto: duplex");
  ASSERT_EQ(p.losers.size(), paths_of(Regime::roundtrip).size());
  for (const auto& loser : p.losers) EXPECT_GE(loser.seconds, p.seconds) << loser.way;
  EXPECT_EQ(p.losers.back().way, "pageable");
  EXPECT_EQ(p.bound, "link");
  EXPECT_EQ(reference().gpu(call("vec_add", "n=1000"), {}).way, "auto: latency");
}

TEST(GpuCost, WhereSinglePathsAloneWereMeasuredTheyAreCandidates) {
  const Machine h200 = profile("share/machines/h200.json");
  const std::vector<Measurement> rows{measurement("vec_add", "n=1000", 1e-6, Regime::roundtrip, "copy"),
                                      measurement("vec_add", "n=4000", 1e-6, Regime::roundtrip, "copy")};
  const Model model({}, {}, h200, Calibration(h200, rows));
  EXPECT_TRUE(model.gpu(call("vec_add", "n=2000"), {}).way.starts_with("copy"));
  const Model bare({}, {}, h200, {});
  EXPECT_EQ(bare.gpu(call("vec_add", "n=2000"), {}).way, "auto: latency");
}

TEST(Pieces, ShareWhatDoesNotGrowWithTheDimThatIsCut) {
  const Call product = call("matmul", "M=512,N=256,K=128");
  EXPECT_TRUE(product.sliceable);
  EXPECT_FALSE(product.shares_nothing);
  EXPECT_EQ(product.whole_bytes, 4 * 256 * 128);
  EXPECT_EQ(product.whole_operands, 1);
  const Call row = call("softmax", "rows=1,n=4096");  // one row is one piece, and shares nothing
  EXPECT_FALSE(row.sliceable);
  EXPECT_TRUE(row.shares_nothing);
  const Call rows = call("softmax", "rows=64,n=4096");
  EXPECT_TRUE(rows.sliceable);
  EXPECT_EQ(rows.whole_bytes, 0);
  const Call windows = call("pixel_entropy", "h=64,w=64,W=9");
  EXPECT_FALSE(windows.sliceable);
  EXPECT_FALSE(windows.shares_nothing);
}

TEST(GpuCost, KernelsWorkOnTheHostsMemoryOnlyWhereBytesCrossOnceOrAreFew) {
  // 3 MB of a product: the backend copies them, however fast the link looks.
  EXPECT_EQ(reference().gpu(call("matmul", "M=512,N=512,K=512"), {}).way, "auto: copy");
  EXPECT_EQ(reference().gpu(call("matmul", "M=32,N=32,K=32"), {}).way, "auto: latency");
  EXPECT_EQ(reference().gpu(call("softmax", "rows=1,n=65536"), {}).way, "auto: latency");
  EXPECT_EQ(reference().gpu(call("pixel_entropy", "h=200,w=64,W=9"), {}).way, "auto: copy");
}

TEST(GpuCost, AKernelThatComesBackToItsOperandsWaitsForTheLink) {
  const Prediction once = reference().gpu(call("softmax", "rows=1,n=4096"), {.path = "latency"});
  EXPECT_EQ(term(once, "waits over the link"), nullptr);
  const Prediction again = reference().gpu(call("pixel_entropy", "h=8,w=64,W=9"), {.path = "latency"});
  ASSERT_NE(term(again, "waits over the link"), nullptr);
  EXPECT_GT(term(again, "waits over the link")->seconds, 0);
  EXPECT_NEAR(counted(again), again.seconds, 1e-9 * again.seconds);
}

TEST(GpuCost, WhatEveryPieceNeedsIsThereBeforeTheFirst) {
  const Call c = call("matmul", "M=4096,N=4096,K=4096");
  const Prediction p = reference().gpu(c, {.path = "duplex"});
  ASSERT_NE(term(p, "shared in"), nullptr);
  EXPECT_NEAR(term(p, "shared in")->seconds, c.whole_bytes / 55.4e9, 0.01 * c.whole_bytes / 55.4e9);
  EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds);
  EXPECT_EQ(term(reference().gpu(call("relu", "n=10000000"), {.path = "duplex"}), "shared in"), nullptr);
}

TEST(GpuCost, SerialCopiesPayBothDirectionsAndOverlapPaysTheLonger) {
  const Call c = call("vec_add", "n=100000000");
  const double in = 0.8e9 / 55.4e9, out = 0.4e9 / 55.2e9;
  EXPECT_NEAR(reference().gpu(c, {.path = "copy"}).seconds, in + out, 0.03 * (in + out));
  const double overlapped = reference().gpu(c, {.regime = Regime::overlapped}).seconds;
  EXPECT_NEAR(overlapped, in, 0.02 * in);
  EXPECT_LT(reference().gpu(c, {.path = "duplex"}).seconds, 0.85 * (in + out));
}

TEST(GpuCost, ReuseSharesTheTransfers) {
  const Call c = call("vec_add", "n=1048576");
  const double one = reference().gpu(c, {.regime = Regime::reuse, .reuse = 1}).seconds;
  const double many = reference().gpu(c, {.regime = Regime::reuse, .reuse = 256}).seconds;
  const double endless = reference().gpu(c, {.regime = Regime::reuse, .reuse = 1 << 30}).seconds;
  EXPECT_NEAR(many - endless, (one - endless) / 256, 1e-9);
}

TEST(GpuCost, AResultThatIsNotThereIsCharged) {
  Call c = call("vec_add", "n=1000000");
  const double whole = reference().gpu(c, {.path = "copy"}).seconds;
  c.work.link_out_bytes = 0;
  EXPECT_GT(whole, reference().gpu(c, {.path = "copy"}).seconds + 4e6 / 60e9);
}

TEST(GpuCost, DataThatL2HoldsIsFasterWarmThanCold) {
  Call c = call("relu", "n=1048576");
  const double warm = reference().gpu(c, {.regime = Regime::resident}).seconds;
  c.cache = Cache::cold;
  EXPECT_LT(warm, reference().gpu(c, {.regime = Regime::resident}).seconds);
}

TEST(GpuCost, AGraphSavesWhatItsLaunchSaves) {
  const Call c = call("relu", "n=1000");
  const double eager = reference().gpu(c, {.regime = Regime::resident}).seconds;
  const double graph = reference().gpu(c, {.regime = Regime::resident, .graph = true}).seconds;
  EXPECT_NEAR(eager - graph, 2.2e-6, 1e-9);
}

TEST(GpuCost, AMissingPeakTableOrLatencyIsNamedAndGivesNoNumber) {
  const auto missing = [](const auto& remove, const GpuUse& use, std::string_view precision = "fp32") {
    Machine m = device();
    remove(m.gpus[0]);
    const Prediction p = closed_form_gpu(call("relu", "n=1000", precision), m, use);
    EXPECT_FALSE(p.valid());
    EXPECT_EQ(p.seconds, 0);
    return p.missing;
  };
  const auto nothing = [](GpuCeilings&) {};
  EXPECT_NE(missing(nothing, {.regime = Regime::resident}, "fp16").find("fp16"), std::string::npos);
  EXPECT_NE(missing([](GpuCeilings& g) { g.rates.clear(); }, {.regime = Regime::resident}).find("memory"),
            std::string::npos);
  EXPECT_NE(missing([](GpuCeilings& g) { g.link.erase("pageable_h2d"); }, {.path = "pageable"})
                .find("pageable_h2d"),
            std::string::npos);
  EXPECT_FALSE(missing([](GpuCeilings& g) { g.latencies.erase("launch_sync"); }, {.regime = Regime::resident})
                   .empty());
  EXPECT_FALSE(missing(nothing, {.regime = Regime::first_call}).empty());
  EXPECT_FALSE(missing([](GpuCeilings& g) { g.link.clear(); }, {}).empty());
}

TEST(GpuCost, SmallProductsDoNotFillTheDevice) {
  const auto rate_of = [](const char* shape) {
    const Call c = call("matmul", shape);
    return c.work.flops / reference().gpu(c, {.regime = Regime::resident}).seconds;
  };
  EXPECT_LT(rate_of("M=128,N=128,K=128"), 0.02 * 65e12);
  EXPECT_GT(rate_of("M=8192,N=8192,K=8192"), 0.6 * 65e12);
}

TEST(DataSheet, PredictionsHaveGradeDAndAnIntervalOfAtLeastAHalfEachWay) {
  const Machine l4 = profile("share/machines/l4.json");
  const Model model(desk(), {}, l4, {});
  const Prediction p = model.gpu(call("gelu", "n=1048576"), {});
  ASSERT_TRUE(p.valid()) << p.missing;
  EXPECT_EQ(p.grade, Grade::d);
  EXPECT_LE(p.low, p.seconds / 1.5);
  EXPECT_GE(p.high, p.seconds * 1.5);
  EXPECT_TRUE(model.gpu_from_data_sheet());
  EXPECT_FALSE(reference().gpu_from_data_sheet());
}

TEST(DataSheet, FiguresAreDeratedToWhatAMeasuredGpuReaches) {
  const Call c = call("vec_add", "n=300000000");
  const double measured = closed_form_gpu(c, device(), {.regime = Regime::resident}).seconds;
  const double sheet = closed_form_gpu(c, device(Source::datasheet), {.regime = Regime::resident}).seconds;
  EXPECT_NEAR(sheet / measured, 1 / 0.91, 0.005);
}

TEST(DataSheet, APeakThatNobodyPublishedDenseGivesNoPrediction) {
  const Machine card = profile("share/machines/rtx3060.json");
  Shape shape = parse_shape("M=512,N=512,K=512").value();
  shape.dtype = DType::f16;
  const auto c = call_of("matmul", shape, "fp16");
  ASSERT_TRUE(c.ok());
  const Prediction p = Model(desk(), {}, card, {}).gpu(*c, {.regime = Regime::resident});
  EXPECT_FALSE(p.valid());
  EXPECT_NE(p.missing.find("fp16"), std::string::npos) << p.missing;
}

}  // namespace
}  // namespace fulcrum::model::test
