// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv_entropy_segment by heart and against the three ops it is made of, bit for bit, on every kernel and instruction
// set; and what it refuses.
#include <fulcrum/ops/conv_entropy_segment.h>

#include "support/images.h"

namespace fulcrum::test {
namespace {

constexpr std::string_view kPipelineOp = "conv_entropy_segment";

std::vector<float> edge_image() {
  std::vector<float> image(32 * 32);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = i % 32 < 16 ? 0 : 1;
  return image;
}

TEST(GoldensPipeline, TheRangeOfAKernelNeedsNoPassOverTheData) {
  const ops::Pipeline pipeline(
      *ops::resolve(op_of(kPipelineOp), shape_of("h=32,w=32,kh=3,kw=3,pad_y=1,pad_x=1")));
  const ops::EntropyBins bins = pipeline.bins(kSobel.data());
  EXPECT_EQ(bins.lo, -4);
  EXPECT_EQ(bins.hi, 4);
  const std::vector<float> zeros(9, 0);
  EXPECT_EQ(pipeline.bins(zeros.data())(1.0F), 0) << "an empty range has one bin";
}

TEST(GoldensPipeline, AnEdgeIsFoundWithSmallWindows) {
  on_each_kernel(kPipelineOp, "h=32,w=32,kh=3,kw=3,pad_y=1,pad_x=1,W=3,t=0.5", {edge_image(), kSobel},
                 [](ops::Problem& problem) {
                   const auto map = labels(problem, 2);
                   for (std::size_t i = 0; i < map.size(); ++i) {
                     const std::size_t x = i % 32;
                     ASSERT_EQ(map[i], (x >= 14 && x <= 17) || x >= 30 ? 1 : 0) << i;
                   }
                   EXPECT_EQ(clamped(problem, 3), 0);
                 });
}

TEST(GoldensPipeline, AnEdgeIsFoundWithEvenWindows) {
  on_each_kernel(kPipelineOp, "h=32,w=32,kh=3,kw=3,pad_y=1,pad_x=1,W=8,t=0.5", {edge_image(), kSobel},
                 [](ops::Problem& problem) {
                   const auto map = labels(problem, 2);
                   const std::int64_t counts[] = {608, 238, 178, 0};
                   for (int label = 0; label < 4; ++label)
                     EXPECT_EQ(std::count(map.begin(), map.end(), label), counts[label]) << label;
                   EXPECT_EQ(map[16 * 32 + 12], 2);
                   EXPECT_EQ(map[16 * 32 + 20], 2);
                   for (std::size_t x = 13; x <= 19; ++x) EXPECT_EQ(map[16 * 32 + x], 1) << x;
                 });
}

TEST(GoldensPipeline, AFixedRangeThatIsTooSmallClampsAndSaysSo) {
  on_each_kernel(kPipelineOp, "h=32,w=32,kh=3,kw=3,pad_y=1,pad_x=1,W=8,range=fixed,t=0.5",
                 {edge_image(), kSobel},
                 [](ops::Problem& problem) { EXPECT_NEAR(clamped(problem, 3) / 1024.0, 0.094, 0.0005); });
}

/// Runs one op of the composition and returns its first output's bytes.
std::vector<std::byte> stage(std::string_view op, std::string_view shape, std::span<const std::byte> x,
                             std::span<const std::byte> k, const backends::Kernel& kernel) {
  auto problem = ops::Problem::make(op_of(op), shape_of(shape));
  EXPECT_TRUE(problem.ok()) << problem.error().message;
  std::copy(x.begin(), x.end(), problem->buffer(0).begin());
  if (!k.empty()) std::copy(k.begin(), k.end(), problem->buffer(1).begin());
  problem->adopt_inputs();
  EXPECT_TRUE(run(kernel, *problem));
  const auto out = problem->buffer(k.empty() ? 1 : 2);
  return {out.begin(), out.end()};
}

struct Composition {
  std::string_view size, kernel, padding, output;
  int window;
  double t;
};

/// The three ops one after the other on the same backend and instruction set.
std::vector<std::byte> composed(const Composition& c, std::string_view range, ops::Problem& fused,
                                const backends::Kernel& kernel) {
  const auto with = [&](std::string_view op) { return *backends::kernel(op, kernel.backend().name()); };
  const auto conv = stage("conv2d", fmt::format("{},{},{}", c.size, c.kernel, c.padding), fused.buffer(0),
                          fused.buffer(1), with("conv2d"));
  const ops::Pipeline pipeline(fused.args());
  const ops::EntropyBins bins = pipeline.bins(fused.args().in<float>(1));
  const std::string bounds =
      range == "auto" ? "range=auto" : fmt::format("lo={:.17g},hi={:.17g}", bins.lo, bins.hi);
  const auto bits = stage("pixel_entropy", fmt::format("{},W={},{}", c.output, c.window, bounds), conv, {},
                          with("pixel_entropy"));
  return stage("image_segmentation", fmt::format("{},t={}", c.output, c.t), bits, {},
               with("image_segmentation"));
}

TEST(GoldensPipeline, FusedAndUnfusedGiveTheSameBits) {
  const Composition compositions[] = {
      {"h=61,w=83", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=61,w=83", 9, 4},
      {"h=61,w=83", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=61,w=83", 8, 3.6},
      {"h=40,w=150", "kh=5,kw=4", "pad_y=0,pad_x=3", "h=36,w=153", 3, 2},
      {"h=50,w=70", "kh=3,kw=3", "pad_y=0,pad_x=0", "h=48,w=68", 25, 4.6},
      {"h=9,w=200", "kh=7,kw=7", "pad_y=3,pad_x=3", "h=9,w=200", 16, 4.5},
      // Thresholds in the midst of what the windows have.
      {"h=90,w=161", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=90,w=161", 9, 3.7},
      {"h=33,w=130", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=33,w=130", 11, 4},
      {"h=16,w=65", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=16,w=65", 10, 3.9},
      {"h=49,w=40", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=49,w=40", 5, 4},
      {"h=18,w=31", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=18,w=31", 2, 1.5},
      {"h=17,w=20", "kh=3,kw=3", "pad_y=1,pad_x=1", "h=17,w=20", 1, 0},
  };
  for (const Composition& c : compositions) {
    for (const std::string_view range : {"kernel_bound", "auto"}) {
      for (const auto special : {ops::Problem::Special::none, ops::Problem::Special::mixed}) {
        const std::string shape =
            fmt::format("{},{},{},W={},range={},t={}", c.size, c.kernel, c.padding, c.window, range, c.t);
        for (const backends::Kernel& kernel : host_kernels(kPipelineOp)) {
          for (const std::string& isa : isas_of(kernel)) {
            SCOPED_TRACE(fmt::format("{} {} {}", kernel.name(), isa, shape));
            const ForcedIsa forced(isa);
            auto problem = ops::Problem::make(op_of(kPipelineOp), shape_of(shape), {.special = special});
            ASSERT_TRUE(problem.ok()) << problem.error().message;
            ASSERT_TRUE(run(kernel, *problem));
            const auto out = problem->buffer(2);
            ASSERT_EQ(std::vector<std::byte>(out.begin(), out.end()), composed(c, range, *problem, kernel));
          }
        }
      }
    }
  }
}

/// Blocks of `size` pixels a side, each of one of four values.
std::vector<float> patches(std::size_t h, std::size_t w, std::size_t size) {
  std::vector<float> image(h * w);
  for (std::size_t i = 0; i < image.size(); ++i) {
    const std::size_t row = i / w / size, column = i % w / size;
    image[i] = 0.25F * static_cast<float>((7 * row * row + 3 * column * row + column) % 4);
  }
  return image;
}

TEST(GoldensPipeline, ManyPixelsOfAWindowMayShareABin) {
  constexpr std::size_t kHigh = 45, kWide = 150;
  for (const std::size_t size : {2u, 5u, 11u, 40u}) {
    for (const auto& [window, t] : {std::pair{3, 0.6}, {8, 1.0}, {9, 0.9}, {11, 1.2}}) {
      const Composition c{"h=45,w=150", "kh=1,kw=1", "pad_y=0,pad_x=0", "h=45,w=150", window, t};
      const std::string shape = fmt::format("{},{},{},W={},t={}", c.size, c.kernel, c.padding, window, t);
      for (const backends::Kernel& kernel : host_kernels(kPipelineOp)) {
        for (const std::string& isa : isas_of(kernel)) {
          SCOPED_TRACE(fmt::format("{} {} {} patches of {}", kernel.name(), isa, shape, size));
          const ForcedIsa forced(isa);
          auto problem = ops::Problem::make(op_of(kPipelineOp), shape_of(shape));
          ASSERT_TRUE(problem.ok()) << problem.error().message;
          set(*problem, 0, patches(kHigh, kWide, size));
          set(*problem, 1, std::vector<float>{1});
          problem->adopt_inputs();
          ASSERT_TRUE(run(kernel, *problem));
          const auto out = problem->buffer(2);
          ASSERT_EQ(std::vector<std::byte>(out.begin(), out.end()),
                    composed(c, "kernel_bound", *problem, kernel));
        }
      }
    }
  }
}

/// Every second column is 1: each window of an even width has an entropy of 1 bit.
std::vector<float> stripes(std::size_t h, std::size_t w) {
  std::vector<float> image(h * w);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = i % w % 2 == 0 ? 0 : 1;
  return image;
}

TEST(GoldensPipeline, EveryWindowMayLieOnAThreshold) {
  constexpr std::size_t kHigh = 300, kWide = 90;
  const auto is_below = [](std::size_t x) {  // where the border leaves 5 or 7 columns of a window of 8
    return x == 1 || x == 3 || x == kWide - 3 || x == kWide - 1;
  };
  for (const bool reached : {false, true}) {
    // A threshold is to be exceeded.
    const double t = reached ? std::nextafter(1.0F, 0.0F) : 1.0;
    on_each_kernel(kPipelineOp, fmt::format("h=300,w=90,kh=1,kw=1,W=8,range=fixed,lo=0,hi=0.5,t={:.17g}", t),
                   {stripes(kHigh, kWide), {1}}, [&](ops::Problem& problem) {
                     const auto map = labels(problem, 2);
                     for (std::size_t i = 0; i < map.size(); ++i) {
                       const std::size_t x = i % kWide;
                       const bool border = x == 0 || x + 1 == kWide || i < kWide || i >= map.size() - kWide;
                       if (reached && !border && (is_below(x - 1) || is_below(x) || is_below(x + 1)))
                         continue;
                       ASSERT_EQ(map[i], reached && !is_below(x) ? 2 : 3) << i / kWide << ", " << x;
                     }
                     EXPECT_EQ(clamped(problem, 3), static_cast<std::int64_t>(kHigh * kWide / 2));
                   });
  }
}

TEST(GoldensPipeline, RefusesWhatItsPartsRefuse) {
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,pad_y=3", Code::invalid_argument);
  expect_refused(kPipelineOp, "h=2,w=9,kh=3,kw=3", Code::invalid_shape);
  expect_refused(kPipelineOp, "h=9,w=9,kh=32,kw=3", Code::invalid_shape);
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,W=0", Code::invalid_argument);
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,W=256", Code::invalid_argument);
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,range=fixed,lo=1,hi=1", Code::invalid_argument);
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,lo=2,hi=1", Code::invalid_argument);
  expect_refused(kPipelineOp, "h=9,w=9,kh=3,kw=3,t=-1", Code::invalid_argument);
}

}  // namespace
}  // namespace fulcrum::test
