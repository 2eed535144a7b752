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

TEST(GoldensPixelEntropy, AConstantWindowOfTheLargestSizeStaysWithinTheTable) {
  // A column enters before another leaves: the table says something about so many pixels, too.
  for (std::int64_t c = ops::kEntropyLargestCount; c < ops::kEntropyLargestCount + ops::kEntropyLargestWindow;
       ++c)
    EXPECT_EQ(ops::entropy_steps()[c], 0);
  auto problem = ops::Problem::make(op_of(kEntropy), shape_of("h=255,w=258,W=255,range=fixed"));
  const auto kernel = backends::kernel(kEntropy, "simd", "default");
  ASSERT_TRUE(problem.ok() && kernel.ok());
  set(*problem, 0, std::vector<float>(255 * 258, 0.5F));
  problem->adopt_inputs();
  ASSERT_TRUE(run(*kernel, *problem));
  for (const float bits : values(*problem, 1)) ASSERT_EQ(bits, 0);
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

TEST(GoldensPixelEntropy, LevelsOfEightBitsAreTheirOwnBins) {
  std::vector<std::uint8_t> image(256);
  std::iota(image.begin(), image.end(), std::uint8_t{0});
  on_each_kernel_of_levels(kEntropy, "h=16,w=16,W=16,dtype=u8", image, [](ops::Problem& problem) {
    EXPECT_EQ(floats(problem, 1)[8 * 16 + 8], 8);
    EXPECT_EQ(floats(problem, 1)[0], 6);
    EXPECT_EQ(clamped(problem, 2), 0);
  });
  on_each_kernel_of_levels(kEntropy, "h=16,w=16,W=3,dtype=u8", image, [](ops::Problem& problem) {
    EXPECT_NEAR(floats(problem, 1)[17], 3.169925, 1e-6);
    EXPECT_EQ(floats(problem, 1)[0], 2);
    EXPECT_NEAR(floats(problem, 1)[1], 2.584963, 1e-6);
  });
}

TEST(GoldensPixelEntropy, ARangeSaysNothingAboutLevels) {
  // Neighbouring levels: between 0 and 255/2 they would share bins, stretched to the image's own they would not.
  std::vector<std::uint8_t> image(100);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(200 + (i / 10 + i) % 2);
  for (const std::string_view range : {"", ",range=auto", ",lo=0,hi=0.5", ",lo=-1000,hi=1000"}) {
    on_each_kernel_of_levels(kEntropy, fmt::format("h=10,w=10,W=3,dtype=u8{}", range), image,
                             [](ops::Problem& problem) {
                               EXPECT_NEAR(floats(problem, 1)[55], 0.9910761, 1e-6);
                               EXPECT_EQ(clamped(problem, 2), 0);
                             });
  }
  on_each_kernel_of_levels(kEntropy, "h=10,w=10,W=2,dtype=u8", image, [](ops::Problem& problem) {
    EXPECT_EQ(floats(problem, 1)[55], 1);
    EXPECT_EQ(floats(problem, 1)[0], 0);
  });
  on_each_kernel_of_levels(kEntropy, "h=10,w=10,W=9,dtype=u8", std::vector<std::uint8_t>(100, 255),
                           [](ops::Problem& problem) {
                             for (const float bits : values(problem, 1))
                               ASSERT_TRUE(bits == 0 && !std::signbit(bits));
                           });
}

TEST(GoldensPixelEntropy, LevelsGiveTheBitsOfTheSameImageInF32) {
  for (const std::string_view size :
       {"h=1,w=1,W=3", "h=37,w=61,W=9", "h=64,w=70,W=8,data=smooth", "h=20,w=300,W=25"}) {
    auto levels = ops::Problem::make(op_of(kEntropy), shape_of(fmt::format("{},dtype=u8", size)));
    auto wide = ops::Problem::make(op_of(kEntropy), shape_of(size));
    ASSERT_TRUE(levels.ok() && wide.ok());
    const auto from = levels->buffer(0);
    const auto to = floats(*wide, 0);
    ASSERT_EQ(from.size(), to.size());
    for (std::size_t i = 0; i < to.size(); ++i) {
      EXPECT_EQ(to[i], static_cast<float>(std::to_integer<int>(from[i])) / 255)
          << "inputs are drawn alike: " << i;
    }
    for (const std::string_view backend : {"scalar", "simd", "threads"}) {
      ASSERT_TRUE(run(*backends::kernel(kEntropy, backend, "u8"), *levels));
      ASSERT_TRUE(run(*backends::kernel(kEntropy, backend), *wide));
      EXPECT_EQ(output_bytes(*levels), output_bytes(*wide)) << backend << " " << size;
    }
  }
}

TEST(GoldensPixelEntropy, LevelsMoveAQuarterOfTheBytesIn) {
  const Args args = *ops::resolve(op_of(kEntropy), shape_of("h=10,w=20,range=auto"));
  const Work wide = backends::work_of(op_of(kEntropy), args, DType::f32);
  const Work levels = backends::work_of(op_of(kEntropy), args, DType::u8);
  EXPECT_EQ(wide.bytes(), 8 * 200);
  EXPECT_EQ(wide.streamed(), 12 * 200);
  EXPECT_EQ(levels.bytes(), 5 * 200);
  EXPECT_EQ(levels.streamed(), 6 * 200);
  EXPECT_EQ(levels.link_in_bytes, 200);
  EXPECT_EQ(levels.link_out_bytes, 4 * 200);
  EXPECT_EQ(levels.flops, wide.flops);
}

TEST(GoldensPixelEntropy, AKernelTakesItsOwnTypeOnly) {
  auto levels = ops::Problem::make(op_of(kEntropy), shape_of("h=9,w=9,dtype=u8"));
  auto wide = ops::Problem::make(op_of(kEntropy), shape_of("h=9,w=9"));
  ASSERT_TRUE(levels.ok() && wide.ok());
  for (const backends::Kernel& kernel : host_kernels(kEntropy)) {
    EXPECT_EQ(run(kernel, *levels), kernel.variant() == "u8") << kernel.name();
    EXPECT_EQ(run(kernel, *wide), kernel.variant() != "u8") << kernel.name();
  }
  expect_refused(kEntropy, "h=9,w=9,dtype=f16", Code::usage);
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
