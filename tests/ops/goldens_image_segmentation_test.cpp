// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// image_segmentation by heart, on every kernel and instruction set, and what it refuses.
#include "support/images.h"

namespace fulcrum::test {
namespace {

constexpr std::string_view kSegmentation = "image_segmentation";

TEST(GoldensImageSegmentation, ThresholdsAreStrict) {
  const std::vector<float> image = {49, 50, 50.5F, 100, 100.5F, 150, 150.5F, kNan};
  on_each_kernel(kSegmentation, "h=1,w=8,t=100,smooth=off", {image}, [](ops::Problem& problem) {
    EXPECT_EQ(labels(problem, 1), (std::vector<int>{0, 0, 3, 3, 2, 2, 1, 0}));
  });
}

TEST(GoldensImageSegmentation, FlatThirdsStayAsTheyAre) {
  std::vector<float> image(65536);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = i < 21845 ? 50.0F : i < 43690 ? 150.0F : 250.0F;
  for (const std::string_view shape : {"h=256,w=256,t=100", "h=256,w=256,t=100,smooth=off"}) {
    on_each_kernel(kSegmentation, shape, {image}, [](ops::Problem& problem) {
      const auto map = labels(problem, 1);
      EXPECT_EQ(std::count(map.begin(), map.end(), 0), 21845);
      EXPECT_EQ(std::count(map.begin(), map.end(), 2), 21845);
      EXPECT_EQ(std::count(map.begin(), map.end(), 1), 21846);
    });
  }
}

TEST(GoldensImageSegmentation, VotesReadTheFirstPassOnly) {
  std::vector<float> image(36, 150);
  for (const std::size_t at : {13, 14, 15, 20}) image[at] = 250;
  on_each_kernel(kSegmentation, "h=6,w=6,t=100", {image}, [](ops::Problem& problem) {
    std::vector<int> expected(36, 2);
    expected[2 * 6 + 2] = expected[3 * 6 + 2] = 1;
    EXPECT_EQ(labels(problem, 1), expected);
  });
}

TEST(GoldensImageSegmentation, ALonePixelIsOutvotedInsideAndKeptAtTheBorder) {
  std::vector<float> inside(25, 150), border(25, 150);
  inside[12] = border[2] = 250;
  on_each_kernel(kSegmentation, "h=5,w=5,t=100", {inside},
                 [](ops::Problem& problem) { EXPECT_EQ(labels(problem, 1), std::vector<int>(25, 2)); });
  on_each_kernel(kSegmentation, "h=5,w=5,t=100", {border}, [](ops::Problem& problem) {
    std::vector<int> expected(25, 2);
    expected[2] = 1;
    EXPECT_EQ(labels(problem, 1), expected);
  });
}

TEST(GoldensImageSegmentation, RefusesThresholdsBelowZeroAndThoseThatAreNoNumber) {
  expect_refused(kSegmentation, "h=5,w=5,t=-1", Code::invalid_argument);
  Args args = *ops::resolve(op_of(kSegmentation), shape_of("h=5,w=5,t=1"));
  for (const double t : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    args.scalar[0].f = t;
    const Status status = ops::check_args(op_of(kSegmentation), args);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::invalid_argument);
  }
}

}  // namespace
}  // namespace fulcrum::test
