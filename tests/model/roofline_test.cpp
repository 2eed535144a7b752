// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Roofs, and points under them.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

const Roof* find(const std::vector<Roof>& roofs, std::string_view name) {
  for (const Roof& roof : roofs) {
    if (roof.name == name) return &roof;
  }
  return nullptr;
}

TEST(Roofs, AreThereForEveryLevelThreadCountAndPeak) {
  Machine both = desk();
  both.gpus = device().gpus;
  const auto roofs = roofs_of(both);
  ASSERT_NE(find(roofs, "DRAM, 16 threads"), nullptr);
  EXPECT_EQ(find(roofs, "DRAM, 16 threads")->bytes_per_second, 73e9);
  EXPECT_EQ(find(roofs, "L1, 1 thread")->bytes_per_second, 300e9);
  EXPECT_EQ(find(roofs, "avx3, 16 threads")->flops_per_second, 1500e9);
  EXPECT_EQ(find(roofs, "HBM")->where, "gpu");
  EXPECT_EQ(find(roofs, "tf32")->flops_per_second, 411e12);
  EXPECT_NE(find(roofs, "L2"), nullptr);
}

TEST(Roofline, AStreamingOpStandsUnderTheMemoryThatHoldsItsData) {
  const RooflinePoint p =
      roofline_point(measurement("vec_add", "n=100000000", 1.2e9 / 36.5e9, Regime::host, {}, 16), desk());
  EXPECT_EQ(p.bound, "memory");
  EXPECT_EQ(p.level, "DRAM");
  EXPECT_NEAR(p.fraction, 0.5, 0.01);
  EXPECT_NEAR(p.intensity, 1.0 / 12, 1e-9);
  EXPECT_NEAR(p.roof_flops, p.intensity * 73e9, 0.01 * p.roof_flops);
  EXPECT_NEAR(p.flops / p.roof_flops, p.fraction, 1e-9);
}

TEST(Roofline, AnExponentialHasItsInCacheRateAsComputeRoof) {
  const Measurement m = measurement("sigmoid", "n=100000", 100e-6);
  const double in_cache = m.work.issue_slots / 80e-6;
  const RooflinePoint p = roofline_point(m, desk(), in_cache);
  EXPECT_EQ(p.bound, "compute");
  EXPECT_NEAR(p.fraction, 0.8, 1e-9);
  EXPECT_EQ(roofline_point(m, desk()).bound, "compute");  // from issue slots and the peak
}

TEST(Roofline, TakesTheDevicesOwnTimeOfAResidentCall) {
  Measurement m = measurement("relu", "n=100000000", 1e-3, Regime::resident);
  m.device_seconds = Estimate{};
  m.device_seconds->median = 0.8e9 / 4.5e12 / 0.9;
  const RooflinePoint p = roofline_point(m, device());
  EXPECT_EQ(p.level, "HBM");
  EXPECT_NEAR(p.fraction, 0.9, 0.01);
}

TEST(Roofline, HoldsHostAndDeviceAndLeavesRoundTripsOut) {
  const Machine gpu = device();
  const std::vector<Measurement> rows{measurement("relu", "n=1000", 1e-6),
                                      measurement("relu", "n=1000", 1e-5, Regime::resident),
                                      measurement("relu", "n=1000", 2e-5, Regime::roundtrip, "copy")};
  const Roofline r = roofline(desk(), &gpu, rows);
  ASSERT_EQ(r.points.size(), 2U);
  EXPECT_EQ(r.points[0].where, "cpu");
  EXPECT_EQ(r.points[1].where, "gpu");
  EXPECT_NE(find(r.roofs, "HBM"), nullptr);
}

}  // namespace
}  // namespace fulcrum::model::test
