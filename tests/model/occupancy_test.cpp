// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// CTAs against SMs.
#include "model/model_support.h"

namespace fulcrum::model::test {
namespace {

GpuCeilings with_sms(std::int64_t sms) {
  GpuCeilings gpu;
  gpu.sms = sms;
  return gpu;
}

// periodicdent42's attention at S = 128, B = H = 1: 64-row query tiles, the sum over keys not split.
std::vector<TiledDim> attention(double tile, double splits) {
  return {{"BH", 1, 1, 1, 0}, {"Sq", 128, tile, 16, 0}, {"Skv", 128, tile, 16, splits}};
}

TEST(Occupancy, TwoCtasOn58SmsAreUnderfilledAndSmallerTilesAreNamed) {
  const Occupancy o = occupancy(attention(64, 1), with_sms(58));
  EXPECT_EQ(o.filling, Filling::underfilled);
  EXPECT_EQ(to_string(o.filling), "UNDERFILLED");
  EXPECT_EQ(o.ctas, 2);
  ASSERT_EQ(o.choices.size(), 3U);
  EXPECT_EQ(o.choices[0].ctas, 4);  // 2 query tiles x 2 key splits, never 256
  EXPECT_EQ(o.choices[1].ctas, 16);
  EXPECT_EQ(o.choices[2].ctas, 64);
  EXPECT_EQ(o.most_ctas, 64);
  EXPECT_NE(o.text.find("3.4 %"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("at most 4 CTAs with tiles Sq 64 x Skv 64"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("64 CTAs with tiles Sq 16 x Skv 16"), std::string::npos) << o.text;
  EXPECT_EQ(o.text.find("256"), std::string::npos);
}

TEST(Occupancy, TheSmallestTilesFill58SmsAndNot132) {
  EXPECT_EQ(occupancy(attention(16, 8), with_sms(58)).filling, Filling::tail);  // 64 on 58: a tail, not empty
  const Occupancy o = occupancy(attention(16, 8), with_sms(132));
  EXPECT_EQ(o.filling, Filling::shape_limited);
  EXPECT_NE(o.text.find("batch it or use the CPU"), std::string::npos);
}

TEST(Occupancy, ManyEqualCtasAreFineAndALastWaveIsATail) {
  const auto grid = [](double n) { return std::vector<TiledDim>{{"n", n, 1, 1, 0}}; };
  EXPECT_EQ(occupancy(grid(4 * 132), with_sms(132)).filling, Filling::ok);
  EXPECT_EQ(occupancy(grid(4 * 132 + 1), with_sms(132)).filling, Filling::tail);
  EXPECT_EQ(occupancy(grid(4 * 132 * 20 + 1), with_sms(132)).filling, Filling::ok);
}

TEST(Utilisation, CountsBusySms) {
  EXPECT_NEAR(utilisation(2, 58, 1), 2.0 / 58, 1e-12);
  EXPECT_NEAR(utilisation(58, 58, 1), 1, 1e-12);
  EXPECT_NEAR(utilisation(59, 58, 1), 59.0 / 116, 1e-12);
  EXPECT_EQ(utilisation(0, 58, 1), 0);
  EXPECT_LE(utilisation(1e9, 58, 4), 1);
}

}  // namespace
}  // namespace fulcrum::model::test
