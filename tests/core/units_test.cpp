// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers and names for people.
#include <ctime>
#include <limits>

#include "core_support.h"

namespace fulcrum {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

TEST(Units, SecondsHaveThreeDigits) {
  const std::pair<double, std::string_view> table[] = {
      {20.3e-6, "20.3 us"},   {2.034e-5, "20.3 us"},
      {1e-9, "1.00 ns"},      {0.3124e-9, "0.312 ns"},
      {999.4e-6, "999 us"},   {999.6e-6, "1.00 ms"},
      {9.996e-3, "10.0 ms"},  {99.96e-3, "100 ms"},
      {0.5, "500 ms"},        {1, "1.00 s"},
      {75.04, "75.0 s"},      {7200, "7200 s"},
      {-20.3e-6, "-20.3 us"}, {0, "0 s"},
      {kNotANumber, "n/a"},   {1 / 0.0, "n/a"},
  };
  for (const auto& [value, text] : table) EXPECT_EQ(human_seconds(value), text) << value;
}

TEST(Units, BytesAreBinary) {
  const std::pair<double, std::string_view> table[] = {
      {0, "0 B"},
      {1, "1 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {49152, "48.0 KiB"},
      {2 << 20, "2.0 MiB"},
      {1023.6 * 1024, "1.0 MiB"},
      {256.0 * (1 << 20), "256 MiB"},
      {32.5 * (1 << 20), "32.5 MiB"},
      {99.96 * (1 << 20), "100 MiB"},
      {139.0 * (1 << 30), "139 GiB"},
      {0x1p60, "1024 PiB"},
      {kNotANumber, "n/a"},
  };
  for (const auto& [value, text] : table) EXPECT_EQ(human_bytes(value), text) << value;
}

TEST(Units, RatesAreDecimal) {
  EXPECT_EQ(human_rate(31.2e9), "31.2 GB/s");
  EXPECT_EQ(human_rate(4.8e12), "4.80 TB/s");
  EXPECT_EQ(human_rate(12), "12.0 B/s");
  EXPECT_EQ(human_rate(0), "0 B/s");
  EXPECT_EQ(human_rate(kNotANumber), "n/a");
  EXPECT_EQ(human_flops(179e9), "179 GFLOP/s");
  EXPECT_EQ(human_flops(66.91e12), "66.9 TFLOP/s");
  EXPECT_EQ(human_flops(999.9e9), "1.00 TFLOP/s");
  EXPECT_EQ(human_flops(1.5e3), "1.50 kFLOP/s");
}

TEST(Units, CountsAreGrouped) {
  const std::pair<double, std::string_view> table[] = {
      {0, "0"},
      {7, "7"},
      {999, "999"},
      {1000, "1,000"},
      {100000, "100,000"},
      {1234567, "1,234,567"},
      {-1234, "-1,234"},
      {-999, "-999"},
      {0.5, "0.500"},
      {310.54, "311"},
      {1e15, "1e+15"},
      {kNotANumber, "n/a"},
  };
  for (const auto& [value, text] : table) EXPECT_EQ(human_count(value), text) << value;
}

TEST(NearestName, FindsTypingSlipsAndNothingElse) {
  const std::vector<std::string> known = {"vec_add", "dot",     "matmul",           "relu",
                                          "sigmoid", "softmax", "cosine_similarity"};
  const std::pair<std::string_view, std::string_view> table[] = {
      {"sigmiod", "sigmoid"},
      {"sigmoi", "sigmoid"},
      {"SIGMOID", "sigmoid"},
      {"matmull", "matmul"},
      {"rleu", "relu"},
      {"dto", "dot"},
      {"cosine", "cosine_similarity"},
      {"vecadd", "vec_add"},
      {"softmin", "softmax"},
      {"fft", ""},
      {"", ""},
      {"x", ""},
      {"convolution", ""},
      {"dot", "dot"},
  };
  for (const auto& [wanted, expected] : table) EXPECT_EQ(nearest_name(wanted, known), expected) << wanted;
  EXPECT_EQ(nearest_name("dot", {}), "");
}

TEST(UtcNow, IsAnIsoTimeOfNow) {
  const std::string text = utc_now();
  std::tm parts{};
  ASSERT_NE(::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts), nullptr) << text;
  EXPECT_EQ(text.size(), 20u);
  EXPECT_LE(std::abs(std::difftime(::timegm(&parts), std::time(nullptr))), 3600);
}

}  // namespace
}  // namespace fulcrum
