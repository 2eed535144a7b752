// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d by heart, on every kernel and instruction set; what it refuses; and its bits across backends.
#include <fulcrum/ops/conv2d.h>

#include <numeric>

#include "support/images.h"

namespace fulcrum::test {
namespace {

constexpr std::string_view kConv2d = "conv2d";

TEST(GoldensConv2d, SobelOfAColumnRampIsEightAndLosesItsPaddingAtTheBorder) {
  std::vector<float> ramp(256 * 256);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i % 256);
  on_each_kernel(kConv2d, "h=256,w=256,kh=3,kw=3,pad_y=1,pad_x=1", {ramp, kSobel}, [](ops::Problem& problem) {
    const auto y = floats(problem, 2);
    const auto at = [&](std::size_t row, std::size_t column) { return y[row * 256 + column]; };
    EXPECT_EQ(at(100, 100), 8);
    EXPECT_EQ(at(100, 0), 4);
    EXPECT_EQ(at(100, 255), -1016);
    EXPECT_EQ(at(0, 100), 6);
    EXPECT_EQ(at(0, 0), 3);
    EXPECT_EQ(at(0, 255), -762);
    EXPECT_EQ(std::accumulate(y.begin(), y.end(), 0.0), 260610);
  });
}

TEST(GoldensConv2d, OnesCountTheTapsInsideTheImage) {
  const std::vector<float> image(16, 1), kernel(9, 1);
  on_each_kernel(kConv2d, "h=4,w=4,kh=3,kw=3", {image, kernel}, [](ops::Problem& problem) {
    EXPECT_EQ(values(problem, 2), (std::vector<float>{9, 9, 9, 9}));
  });
  on_each_kernel(kConv2d, "h=4,w=4,kh=3,kw=3,pad_y=1,pad_x=1", {image, kernel}, [](ops::Problem& problem) {
    EXPECT_EQ(values(problem, 2), (std::vector<float>{4, 6, 6, 4, 6, 9, 9, 6, 6, 9, 9, 6, 4, 6, 6, 4}));
  });
}

TEST(GoldensConv2d, TheKernelIsNotFlipped) {
  on_each_kernel(kConv2d, "h=1,w=4,kh=1,kw=3", {{1, 2, 3, 4}, {0, 0, 1}}, [](ops::Problem& problem) {
    EXPECT_EQ(values(problem, 2), (std::vector<float>{3, 4}));
  });
}

TEST(GoldensConv2d, StrideTwoHalvesEachAxis) {
  const ops::Conv2d g = ops::conv2d_geometry(
      *ops::resolve(op_of(kConv2d), shape_of("h=256,w=256,kh=3,kw=3,stride_y=2,stride_x=2,"
                                             "pad_y=1,pad_x=1")));
  EXPECT_EQ(g.ho, 128);
  EXPECT_EQ(g.wo, 128);
}

TEST(GoldensConv2d, ANanSpreadsToTheWindowsThatHoldItAndNoFurther) {
  std::vector<float> image(12 * 40, 1);
  image[5 * 40 + 20] = kNan;
  on_each_kernel(kConv2d, "h=12,w=40,kh=3,kw=3,pad_y=1,pad_x=1", {image, kSobel}, [](ops::Problem& problem) {
    const auto y = floats(problem, 2);
    for (std::int64_t i = 0; i < 12 * 40; ++i) {
      const bool near = std::abs(i / 40 - 5) <= 1 && std::abs(i % 40 - 20) <= 1;
      EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(i)]), near) << i;
    }
  });
}

TEST(GoldensConv2d, RefusesWhatItsRangesExclude) {
  expect_refused(kConv2d, "h=9,w=9,kh=0,kw=3", Code::invalid_shape);
  expect_refused(kConv2d, "h=40,w=40,kh=3,kw=32", Code::invalid_shape);
  expect_refused(kConv2d, "h=0,w=9,kh=3,kw=3", Code::invalid_shape);
  expect_refused(kConv2d, "h=2,w=9,kh=3,kw=3", Code::invalid_shape);
  expect_refused(kConv2d, "h=9,w=9,kh=3,kw=3,stride_y=0", Code::invalid_argument);
  expect_refused(kConv2d, "h=9,w=9,kh=3,kw=3,stride_x=-1", Code::invalid_argument);
  expect_refused(kConv2d, "h=9,w=9,kh=3,kw=3,pad_y=3", Code::invalid_argument);
  expect_refused(kConv2d, "h=9,w=9,kh=3,kw=3,pad_x=-1", Code::invalid_argument);
  expect_refused(kConv2d, "h=4611686018427387904,w=4,kh=3,kw=3", Code::invalid_shape);
}

TEST(GoldensConv2d, AWeightThatIsNotFiniteIsRefusedBeforeAByteIsWritten) {
  for (const float weight : {kNan, std::numeric_limits<float>::infinity()}) {
    auto problem = ops::Problem::make(op_of(kConv2d), shape_of("h=9,w=9,kh=3,kw=3"));
    ASSERT_TRUE(problem.ok());
    floats(*problem, 1)[4] = weight;
    const auto untouched = output_bytes(*problem);
    for (const backends::Kernel& kernel : host_kernels(kConv2d)) {
      const auto call = backends::Call::make(kernel, problem->args());
      ASSERT_FALSE(call.ok()) << kernel.name();
      EXPECT_EQ(call.error().code, Code::invalid_argument);
    }
    EXPECT_EQ(untouched, output_bytes(*problem));
  }
}

}  // namespace
}  // namespace fulcrum::test
