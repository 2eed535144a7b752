// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of conv2d_channels that are known by heart, on every kernel and instruction set of this machine.
#include "support/known_results.h"
#include "support/special_values.h"

namespace fulcrum::test {
namespace {

constexpr float kTaps[] = {-1, 0, 1, -2, 0, 2, -1, 0, 1};

/// `channels` images of size x size whose pixels are their columns.
std::vector<float> column_ramp(int channels, int size) {
  std::vector<float> x;
  for (int i = 0; i < channels * size * size; ++i) x.push_back(static_cast<float>(i % size));
  return x;
}

TEST(Conv2dChannelsGoldens, OneChannelOfAColumnRampUnderSobel) {
  std::vector<double> first_row(256, 6), second_row(256, 8);
  first_row.front() = 3;
  first_row.back() = -762;
  second_row.front() = 4;
  second_row.back() = -1016;
  std::vector<double> expected = first_row;
  for (int i = 0; i < 254; ++i) expected.insert(expected.end(), second_row.begin(), second_row.end());
  expected.insert(expected.end(), first_row.begin(), first_row.end());
  double total = 0;
  for (const double value : expected) total += value;
  ASSERT_EQ(total, 260610);
  expect_known({"conv2d_channels",
                "N=1,Cin=1,h=256,w=256,Cout=1,kh=3,kw=3,pad_y=1,pad_x=1",
                {column_ramp(1, 256), std::vector<float>(kTaps, kTaps + 9)},
                {{2, expected}},
                0});
}

TEST(Conv2dChannelsGoldens, OnesUnderOnes) {
  expect_known({"conv2d_channels",
                "N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3",
                {repeated(16, 1), repeated(9, 1)},
                {{2, {9, 9, 9, 9}}},
                0});
  expect_known({"conv2d_channels",
                "N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,pad_y=1,pad_x=1",
                {repeated(16, 1), repeated(9, 1)},
                {{2, {4, 6, 6, 4, 6, 9, 9, 6, 6, 9, 9, 6, 4, 6, 6, 4}}},
                0});
}

TEST(Conv2dChannelsGoldens, TheKernelIsNotFlipped) {
  expect_known(
      {"conv2d_channels", "N=1,Cin=1,h=1,w=4,Cout=1,kh=1,kw=3", {{1, 2, 3, 4}, {0, 0, 1}}, {{2, {3, 4}}}, 0});
}

TEST(Conv2dChannelsGoldens, ChannelsAreNotSwapped) {
  expect_known(
      {"conv2d_channels", "N=1,Cin=2,h=1,w=1,Cout=2,kh=1,kw=1", {{1, 10}, {1, 2, 3, 4}}, {{2, {21, 43}}}, 0});
}

TEST(Conv2dChannelsGoldens, EveryOutputChannelHasItsOwnWeights) {
  std::vector<float> x, k;
  for (int i = 0; i < 3 * 16; ++i) x.push_back(static_cast<float>(i / 16 + 1));
  for (int i = 0; i < 5 * 27; ++i) k.push_back(static_cast<float>(i / 27 + 1));
  std::vector<double> expected;
  for (int o = 1; o <= 5; ++o) {
    for (const double value : {24, 36, 36, 24, 36, 54, 54, 36, 36, 54, 54, 36, 24, 36, 36, 24})
      expected.push_back(o * value);
  }
  expect_known(
      {"conv2d_channels", "N=1,Cin=3,h=4,w=4,Cout=5,kh=3,kw=3,pad_y=1,pad_x=1", {x, k}, {{2, expected}}, 0});
}

TEST(Conv2dChannelsGoldens, ScaledSobelKernelsOverThreeRamps) {
  constexpr int kSize = 256;
  std::vector<float> k;
  for (int o = 1; o <= 2; ++o) {
    for (int c = 1; c <= 3; ++c) {
      for (const float tap : kTaps) k.push_back(static_cast<float>(o * c) * tap);
    }
  }
  const KnownResult known{"conv2d_channels",
                          "N=1,Cin=3,h=256,w=256,Cout=2,kh=3,kw=3,pad_y=1,pad_x=1",
                          {column_ramp(3, kSize), k},
                          {},
                          0};
  for (const backends::Kernel& kernel : host_kernels("conv2d_channels")) {
    SCOPED_TRACE(kernel.name());
    ops::Problem problem = known_problem(known);
    if (!run(kernel, problem)) continue;
    const auto y = floats(problem, 2);
    for (int o = 0; o < 2; ++o) {
      for (int row = 1; row < kSize - 1; ++row) {
        for (int column = 1; column < kSize - 1; ++column) {
          ASSERT_EQ(y[static_cast<std::size_t>((o * kSize + row) * kSize + column)], 48.0f * (o + 1));
        }
      }
    }
  }
}

TEST(Conv2dChannelsGoldens, NanAndInfReachExactlyTheWindowsThatHoldThem) {
  // 16 channels, so that Winograd variants take part: a NaN in one corner, an Inf in the other.
  std::vector<float> x = repeated(16 * 36, 0);
  x[0] = kNan;
  x[35] = kInf;
  std::vector<double> expected(36, 0);
  for (const int at : {0, 1, 6, 7}) expected[static_cast<std::size_t>(at)] = kNan;
  for (const int at : {28, 29, 34, 35}) expected[static_cast<std::size_t>(at)] = kInf;
  expect_known({"conv2d_channels",
                "N=1,Cin=16,h=6,w=6,Cout=16,kh=3,kw=3,pad_y=1,pad_x=1",
                {x, repeated(16 * 16 * 9, 1)},
                {{2, expected}},
                0});
}

TEST(Conv2dChannelsGoldens, HalvedByAStrideOfTwo) {
  const auto args = ops::resolve(op_of("conv2d_channels"),
                                 shape_of("N=1,Cin=1,h=256,w=256,Cout=1,kh=3,kw=3,stride_y=2,stride_x=2,"
                                          "pad_y=1,pad_x=1"));
  ASSERT_TRUE(args.ok());
  EXPECT_EQ(op_of("conv2d_channels").extent(*args, 2), 128 * 128);
}

TEST(Conv2dChannels, RefusesWhatHasNoMeaning) {
  const auto refused = [](std::string_view shape, Code code, std::string_view reason) {
    expect_refused("conv2d_channels", shape, code, reason);
  };
  refused("N=1,Cin=0,h=4,w=4,Cout=1,kh=3,kw=3", Code::invalid_shape, "Cin=0");
  refused("N=1,Cin=1,h=4,w=4,Cout=0,kh=3,kw=3", Code::invalid_shape, "Cout=0");
  refused("N=1,Cin=1,h=0,w=4,Cout=1,kh=3,kw=3", Code::invalid_shape, "h=0");
  refused("N=1,Cin=1,h=40,w=40,Cout=1,kh=32,kw=3", Code::invalid_shape, "kh=32");
  refused("N=1,Cin=1,h=40,w=40,Cout=1,kh=3,kw=0", Code::invalid_shape, "kw=0");
  refused("N=1,Cin=1,h=2,w=4,Cout=1,kh=3,kw=3", Code::invalid_shape, "h=2");
  refused("N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,stride_x=0", Code::invalid_argument, "stride_x=0");
  refused("N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,stride_y=-1", Code::invalid_argument, "stride_y=-1");
  refused("N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,pad_y=3", Code::invalid_argument, "pad_y=3");
  refused("N=1,Cin=1,h=4,w=4,Cout=1,kh=3,kw=3,pad_x=-1", Code::invalid_argument, "pad_x=-1");
}

TEST(Conv2dChannels, RefusesWeightsThatAreNotFinite) {
  ops::Problem problem = known_problem(
      {"conv2d_channels", "N=1,Cin=1,h=4,w=4,Cout=1,kh=1,kw=2", {repeated(16, 1), {1, kNan}}, {}, 0});
  for (const backends::Kernel& kernel : host_kernels("conv2d_channels")) {
    const auto call = backends::Call::make(kernel, problem.args());
    ASSERT_FALSE(call.ok()) << kernel.name();
    EXPECT_EQ(call.error().code, Code::invalid_argument);
  }
}

}  // namespace
}  // namespace fulcrum::test
