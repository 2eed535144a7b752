// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What no kernel can beat: no measurement does, and no prediction.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

constexpr double kLargest = 268435456;

// Small calls whose times promise that twice the size takes hardly longer, for ever.
Model promising(const char* op, Regime regime, std::string path) {
  std::vector<Measurement> rows;
  for (const double n : {262144.0, 1048576.0, 4194304.0}) {
    Measurement m = measurement(op, fmt_size(n), 12e-6 * std::pow(n / 262144, 0.02), regime, path);
    if (regime == Regime::resident) {
      m.device_seconds = m.seconds;
      m.device_seconds->median = m.seconds.median - 9e-6;
    }
    rows.push_back(m);
  }
  return Model(desk(), {}, device(), Calibration(device(), rows));
}

TEST(Floor, AResidentCallReadsAndWritesItsBytesAtTheMemorysRateAtMost) {
  const Prediction p = promising("tanh", Regime::resident, "")
                           .gpu(call("tanh", fmt_size(kLargest)), {.regime = Regime::resident});
  ASSERT_TRUE(p.valid());
  const double least = (8 * kLargest - 62914560) / (1.05 * 4.5e12);
  EXPECT_GE(p.seconds, least);
  EXPECT_GE(p.low, least);
  EXPECT_LE(p.low, p.seconds);
  EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds);
  ASSERT_NE(term(p, "kernel at its roof"), nullptr);
}

TEST(Floor, ARoundTripTakesTheLongerDirectionAtTheLinksRateAtLeast) {
  const Prediction p =
      promising("tanh", Regime::roundtrip, "auto").gpu(call("tanh", fmt_size(kLargest)), {.path = "auto"});
  ASSERT_TRUE(p.valid());
  EXPECT_GE(p.seconds, 4 * kLargest / (1.05 * 55.4e9) * 0.999);
  EXPECT_GE(p.low, 4 * kLargest / (1.05 * 55.4e9) * 0.999);
  EXPECT_NEAR(counted(p), p.seconds, 1e-9 * p.seconds);
}

TEST(Floor, OfTheHostIsItsMemoryBeyondTheCachesAndItsPeak) {
  const CpuCeilings cpu = desk().cpu;
  const double caches = 16.0 * (49152 + 2097152);
  EXPECT_NEAR(least_seconds(call("relu", fmt_size(kLargest)), cpu, 16),
              (8 * kLargest - caches) / (1.25 * 73e9), 1e-9);
  EXPECT_NEAR(least_seconds(call("relu", fmt_size(kLargest)), cpu, 1),
              (8 * kLargest - caches) / (1.25 * 21e9), 1e-9);
  EXPECT_LT(least_seconds(call("relu", "n=1000"), cpu, 1), 1e-7);  // caches hold it
  const double products = 2.0 * 4096 * 4096 * 4096;
  EXPECT_NEAR(least_seconds(call("matmul", "M=4096,N=4096,K=4096"), cpu, 16), products / (1.25 * 1500e9),
              1e-6);
  EXPECT_EQ(least_seconds(call("relu", "n=1000"), CpuCeilings{}, 1), 0);
}

TEST(Floor, OfProductsIsThePeakOfWhatMayComputeThem) {
  const GpuCeilings gpu = device().gpus[0];
  const GpuUse resident{.regime = Regime::resident};
  const double products = 2.0 * 4096 * 4096 * 4096;
  // Tensor units may do most of an fp32 result.
  for (const char* precision : {"fp32", "tf32"}) {
    EXPECT_NEAR(least_seconds(call("matmul", "M=4096,N=4096,K=4096", precision), gpu, resident),
                products / (1.05 * 411e12), 1e-7);
  }
  GpuCeilings plain = gpu;
  plain.flops.erase("tf32");
  EXPECT_NEAR(least_seconds(call("matmul", "M=4096,N=4096,K=4096"), plain, resident),
              products / (1.05 * 65e12), 1e-7);
}

TEST(Floor, ColdCallsAreHeldByNoCacheAndReuseSharesTheLink) {
  const GpuCeilings gpu = device().gpus[0];
  Call c = call("relu", "n=1000000");
  const GpuUse resident{.regime = Regime::resident};
  const double warm = least_seconds(c, gpu, resident);
  c.cache = Cache::cold;
  EXPECT_LT(warm, 1e-7);
  EXPECT_NEAR(least_seconds(c, gpu, resident), 8e6 / (1.05 * 4.5e12), 1e-9);
  const Call large = call("relu", fmt_size(kLargest));
  const double trip = least_seconds(large, gpu, {.path = "auto"});
  EXPECT_NEAR(least_seconds(large, gpu, {.regime = Regime::reuse, .reuse = 10}), trip / 10, 1e-3 * trip);
}

TEST(Floor, NoTimeThatWasMeasuredOnTheDeviceLiesBelowIt) {
  const Machine h200 = profile("share/machines/h200.json");
  int checked = 0;
  for (const Cell& cell : cells_of(results("share/measured"))) {
    if (cell.where != "gpu") continue;
    const double least = least_seconds(
        cell.call, h200.gpus[0],
        {.regime = cell.regime, .path = cell.path, .reuse = std::max<std::int64_t>(1, cell.reuse)});
    EXPECT_LE(least, cell.device_seconds.value_or(cell.seconds))
        << cell.call.op << " " << cell.call.shape.text() << " " << cell.call.precision;
    ++checked;
  }
  EXPECT_GT(checked, 500);
}

TEST(Floor, NoPredictionOfTheShippedDeviceIsBelowItAtTheLargestSizes) {
  const Machine h200 = profile("share/machines/h200.json");
  const Model model(desk(), {}, h200, Calibration(h200, results("share/measured")));
  const GpuCeilings& gpu = h200.gpus[0];
  for (const char* op :
       {"vec_add", "relu", "leaky_relu", "elu", "clip", "sigmoid", "tanh", "swish", "gelu", "dot"}) {
    for (const double n : {16777216.0, kLargest, 4 * kLargest}) {
      for (const Regime regime : {Regime::resident, Regime::roundtrip}) {
        const Call c = call(op, fmt_size(n));
        const GpuUse use{.regime = regime, .path = regime == Regime::roundtrip ? "auto" : ""};
        const Prediction p = model.without_cells().gpu(c, use);
        ASSERT_TRUE(p.valid());
        EXPECT_GE(p.low, 0.999 * least_seconds(c, gpu, use)) << op << " " << n << " " << to_string(regime);
        EXPECT_GE(p.seconds, p.low);
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::model::test
