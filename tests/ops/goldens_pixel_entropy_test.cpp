// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// pixel_entropy by heart, on every kernel and instruction set; its table; what it refuses; W=auto.
#include <fulcrum/ops/pixel_entropy.h>

#include <numeric>

#include "support/images.h"

namespace fulcrum::test {
namespace {

constexpr std::string_view kEntropy = "pixel_entropy";

TEST(GoldensPixelEntropy, TheTableIsExact) {
  const std::int64_t* table = ops::entropy_table();
  EXPECT_EQ(table[0], 0);
  EXPECT_EQ(table[1], 0);
  EXPECT_EQ(table[3], 20422086318);
  EXPECT_EQ(table[9], 122532517908);
  EXPECT_EQ(table[256], std::int64_t{1} << 43);
  EXPECT_EQ(table[65025], 4465330027644818);
  std::uint64_t sum = 0;
  for (std::int64_t c = 0; c <= ops::kEntropyLargestCount; ++c) sum += static_cast<std::uint64_t>(table[c]);
  EXPECT_EQ(sum, 0x83e58eea4fe42483u);
}

TEST(GoldensPixelEntropy, AConstantImageHasNone) {
  for (const std::string_view shape : {"h=20,w=30,W=9", "h=20,w=30,W=9,range=auto", "h=20,w=30,W=1"}) {
    on_each_kernel(kEntropy, shape, {std::vector<float>(600, 0.3F)}, [](ops::Problem& problem) {
      for (const float bits : values(problem, 1)) ASSERT_TRUE(bits == 0 && !std::signbit(bits));
      EXPECT_EQ(clamped(problem, 2), 0);
    });
  }
}

TEST(GoldensPixelEntropy, AllLevelsOnceAreEightBits) {
  std::vector<float> image(256);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i) / 255;
  on_each_kernel(kEntropy, "h=16,w=16,W=16", {image}, [](ops::Problem& problem) {
    EXPECT_EQ(floats(problem, 1)[8 * 16 + 8], 8);
    EXPECT_EQ(floats(problem, 1)[0], 6);
  });
  on_each_kernel(kEntropy, "h=16,w=16,W=3", {image}, [](ops::Problem& problem) {
    EXPECT_NEAR(floats(problem, 1)[17], 3.169925, 1e-6);
    EXPECT_EQ(floats(problem, 1)[0], 2);
    EXPECT_NEAR(floats(problem, 1)[1], 2.584963, 1e-6);
  });
}

TEST(GoldensPixelEntropy, ACheckerboardIsFiveAgainstFour) {
  std::vector<float> image(100);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>((i / 10 + i) % 2);
  on_each_kernel(kEntropy, "h=10,w=10,W=3", {image},
                 [](ops::Problem& problem) { EXPECT_NEAR(floats(problem, 1)[55], 0.9910761, 1e-6); });
  on_each_kernel(kEntropy, "h=10,w=10,W=2", {image}, [](ops::Problem& problem) {
    EXPECT_EQ(floats(problem, 1)[55], 1);
    EXPECT_EQ(floats(problem, 1)[0], 0);
  });
}

TEST(GoldensPixelEntropy, ASquareOnABackgroundShowsOnlyAlongItsEdge) {
  std::vector<float> image(512 * 512, 100);
  for (std::size_t y = 200; y < 300; ++y)
    std::fill_n(image.begin() + static_cast<std::ptrdiff_t>(y * 512 + 200), 100, 5000.0F);
  on_each_kernel(kEntropy, "h=512,w=512,W=16,range=auto", {image}, [](ops::Problem& problem) {
    const auto bits = floats(problem, 1);
    const auto at = [&](std::size_t y, std::size_t x) { return bits[y * 512 + x]; };
    EXPECT_EQ(at(250, 200), 1);
    EXPECT_NEAR(at(200, 200), 0.8112781, 1e-6);
    EXPECT_NEAR(at(250, 193), 0.3372901, 1e-6);
    EXPECT_NEAR(at(250, 207), 0.3372901, 1e-6);
    EXPECT_EQ(at(250, 192), 0);
    EXPECT_EQ(at(250, 208), 0);
    EXPECT_NEAR(at(299, 299), 0.9004305, 1e-6);
    EXPECT_NEAR(at(307, 307), 0.0368745, 1e-6);
    EXPECT_EQ(std::count_if(bits.begin(), bits.end(), [](float b) { return b != 0; }), 6000);
    EXPECT_EQ(clamped(problem, 2), 0);
  });
  on_each_kernel(kEntropy, "h=512,w=512,W=16", {image}, [](ops::Problem& problem) {
    const auto bits = values(problem, 1);
    EXPECT_EQ(std::count(bits.begin(), bits.end(), 0.0F), 512 * 512) << "every pixel is in the last bin";
    EXPECT_EQ(clamped(problem, 2), 512 * 512);
  });
}

TEST(GoldensPixelEntropy, InfinitiesAreTheOuterBinsAndNanIsNan) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  on_each_kernel(
      kEntropy, "h=1,w=8,W=2,range=auto", {{5, kInf, 5, -kInf, 5, 5, kNan, 5}}, [](ops::Problem& problem) {
        const auto bits = values(problem, 1);
        EXPECT_EQ(std::vector<float>(bits.begin(), bits.begin() + 6), (std::vector<float>{0, 1, 1, 0, 0, 0}));
        EXPECT_TRUE(std::isnan(bits[6]) && std::isnan(bits[7]));
        EXPECT_EQ(clamped(problem, 2), 2);
      });
}

TEST(GoldensPixelEntropy, AWindowBeyondTheImageIsTheImage) {
  on_each_kernel(kEntropy, "h=2,w=2,W=255", {{0, 0.25F, 0.5F, 0.75F}}, [](ops::Problem& problem) {
    EXPECT_EQ(values(problem, 1), (std::vector<float>{2, 2, 2, 2}));
  });
}

TEST(GoldensPixelEntropy, RefusesWhatItsRangesExclude) {
  expect_refused(kEntropy, "h=9,w=9,W=0", Code::invalid_argument);
  expect_refused(kEntropy, "h=9,w=9,W=256", Code::invalid_argument);
  expect_refused(kEntropy, "h=9,w=9,lo=1,hi=1", Code::invalid_argument);
  expect_refused(kEntropy, "h=9,w=9,lo=2,hi=1", Code::invalid_argument);
  expect_refused(kEntropy, "h=9,w=9,lo=1,hi=1.00000000001", Code::invalid_argument);
  expect_refused(kEntropy, "h=9,w=9,W=auto,w_rule=given", Code::usage);
  expect_refused(kEntropy, "h=9,w=9,W=many", Code::usage);
}

TEST(GoldensPixelEntropy, AutomaticWindowsFollowTheNumberOfPixelsAndAreReported) {
  const auto completed = [](std::string_view text) {
    return ops::complete(op_of(kEntropy), shape_of(text))->text();
  };
  EXPECT_NE(completed("h=512,w=512,W=auto").find("W=8,w_rule=auto"), std::string::npos);
  EXPECT_NE(completed("h=256,w=256,w_rule=auto").find("W=16,w_rule=auto"), std::string::npos);
  EXPECT_NE(completed("h=128,w=128,W=auto").find("W=32,w_rule=auto"), std::string::npos);
  EXPECT_NE(completed("h=512,w=512").find("W=9,w_rule=given"), std::string::npos);
  const auto args = ops::resolve(op_of(kEntropy), shape_of("h=512,w=512,W=auto"));
  ASSERT_TRUE(args.ok()) << args.error().message;
  EXPECT_EQ(ops::entropy_window(*args), 8);
  EXPECT_EQ(completed(completed("h=512,w=512,W=auto")), completed("h=512,w=512,W=auto"));
}

}  // namespace
}  // namespace fulcrum::test
