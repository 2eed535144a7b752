// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Image kernels of the CUDA module on a device: every variant gives the bits of the CPU's scalar kernel, on noise and on
// images that make histograms degenerate, at sizes around the tiles of the kernels, and after many replays.
#include <fulcrum/backends/device.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fulcrum::backends {
namespace {

/// What an image holds.
enum class Content { drawn, constant, two_values, checkerboard, ramp, with_nan };
constexpr Content kContents[] = {Content::drawn,        Content::constant, Content::two_values,
                                 Content::checkerboard, Content::ramp,     Content::with_nan};

float pixel(Content content, std::size_t y, std::size_t x, float drawn) {
  switch (content) {
    case Content::constant:
      return 0.25F;
    case Content::two_values:
      return drawn < 0.5F ? 0.125F : 0.75F;
    case Content::checkerboard:
      return (x + y) % 2 == 0 ? 0.0F : 1.0F;
    case Content::ramp:
      return static_cast<float>((x + 3 * y) % 97) / 97;
    case Content::with_nan:
      if ((y * 131 + x) % 997 == 5) return std::numeric_limits<float>::quiet_NaN();
      return (y * 31 + x) % 313 == 7 ? -std::numeric_limits<float>::infinity() : drawn;
    default:
      return drawn;
  }
}

/// An op and the dims that carry height and width of its first input.
struct Case {
  const char* op;
  const char* shape;
  int h, w;
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = std::string(info.param.op) + '_' + info.param.shape;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

class CudaImage : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto found = find("cuda");
    if (!found.ok()) GTEST_SKIP() << "SKIPPED: no GPU backend: " << found.error().message;
    if (!(*found)->available()) GTEST_SKIP() << "SKIPPED: no GPU: " << (*found)->why_not();
  }

  static ops::Problem problem_of(const Case& c, Content content) {
    const auto op = ops::find(c.op);
    const auto shape = parse_shape(c.shape);
    EXPECT_TRUE(op.ok() && shape.ok());
    auto made = ops::Problem::make(**op, *shape);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    ops::Problem problem = std::move(*made);
    const auto bytes = problem.buffer(0);
    auto* x = reinterpret_cast<float*>(bytes.data());
    const auto width = static_cast<std::size_t>(problem.args().dim[c.w]);
    for (std::size_t i = 0; i < bytes.size() / sizeof(float); ++i)
      x[i] = pixel(content, i / width, i % width, x[i]);
    problem.adopt_inputs();
    return problem;
  }

  /// The outputs' bytes, NaN of any payload as one.
  static std::vector<std::byte> outputs(ops::Problem& problem) {
    std::vector<std::byte> result;
    const ops::Op& op = problem.op();
    for (int slot = 0; slot < op.pointers(); ++slot) {
      if (op.slots[static_cast<std::size_t>(slot)].kind != ops::SlotKind::out) continue;
      const auto bytes = problem.buffer(slot);
      std::vector<std::byte> copy(bytes.begin(), bytes.end());
      if (op.slots[static_cast<std::size_t>(slot)].dtype == DType::f32) {
        for (std::size_t i = 0; i + sizeof(float) <= copy.size(); i += sizeof(float)) {
          float value = 0;
          std::memcpy(&value, copy.data() + i, sizeof(float));
          if (std::isnan(value)) std::memset(copy.data() + i, 0x7F, sizeof(float));
        }
      }
      result.insert(result.end(), copy.begin(), copy.end());
    }
    return result;
  }
};

TEST_P(CudaImage, HasTheBitsOfTheScalarKernelInEveryVariant) {
  const auto scalar = kernel(GetParam().op, "scalar");
  const auto device = kernels(GetParam().op, "cuda");
  ASSERT_TRUE(scalar.ok() && device.ok());
  for (const Content content : kContents) {
    ops::Problem problem = problem_of(GetParam(), content);
    problem.reset();
    auto on_host = Call::make(*scalar, problem.args());
    ASSERT_TRUE(on_host.ok()) << on_host.error().message;
    ASSERT_EQ(on_host->run().code, FULCRUM_OK);
    const std::vector<std::byte> expected = outputs(problem);
    for (const Kernel& kernel : *device) {
      if (kernel.dtype() != scalar->dtype() || !kernel.supports(problem.args())) continue;
      problem.reset();
      auto call = DeviceCall::make(kernel, problem.args());
      ASSERT_TRUE(call.ok()) << call.error().message;
      ASSERT_TRUE(call->upload().ok());
      ASSERT_TRUE(call->run(3).ok());
      const Status back = call->download();
      ASSERT_TRUE(back.ok()) << kernel.name() << ": " << back.error().message;
      ASSERT_TRUE(outputs(problem) == expected) << kernel.name() << " content " << static_cast<int>(content);
    }
  }
}

TEST_P(CudaImage, GivesTheSameBitsInEveryReplay) {
  const auto device = kernel(GetParam().op, "cuda");
  ASSERT_TRUE(device.ok());
  ops::Problem problem = problem_of(GetParam(), Content::drawn);
  auto call = DeviceCall::make(*device, problem.args(), 2);
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_TRUE(call->upload().ok());
  auto replay = call->record(20);
  ASSERT_TRUE(replay.ok()) << replay.error().message;
  std::vector<std::byte> first;
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(replay->run().ok());
    for (const int set : {0, 1}) {
      ASSERT_TRUE(call->download(set).ok());
      if (first.empty()) first = outputs(problem);
      ASSERT_TRUE(outputs(problem) == first) << "round " << round << " set " << set;
    }
  }
}

constexpr Case kCases[] = {
    {"conv2d", "h=64,w=128,kh=3,kw=3,pad_y=1,pad_x=1", 1, 2},
    {"conv2d", "B=3,h=37,w=260,kh=3,kw=3,pad_y=2,pad_x=1", 1, 2},
    {"conv2d", "h=131,w=516,kh=5,kw=5,pad_y=2,pad_x=2", 1, 2},
    {"conv2d", "h=70,w=132,kh=7,kw=7,pad_y=0,pad_x=3", 1, 2},
    {"conv2d", "h=61,w=259,kh=3,kw=3", 1, 2},
    {"conv2d", "h=300,w=1024,kh=3,kw=3,pad_y=1,pad_x=1", 1, 2},
    {"conv2d", "h=75,w=141,kh=31,kw=30,pad_y=30,pad_x=11", 1, 2},
    {"conv2d", "B=2,h=64,w=99,kh=4,kw=5,stride_y=3,stride_x=2,pad_y=1,pad_x=4", 1, 2},
    {"pixel_entropy", "h=61,w=127,W=3", 0, 1},
    {"pixel_entropy", "h=133,w=260,W=9", 0, 1},
    {"pixel_entropy", "h=133,w=257,W=9,range=auto", 0, 1},
    {"pixel_entropy", "h=70,w=128,W=8", 0, 1},
    {"pixel_entropy", "h=50,w=66,W=15", 0, 1},
    {"pixel_entropy", "h=90,w=65,W=16", 0, 1},
    {"pixel_entropy", "h=77,w=131,W=25", 0, 1},
    {"pixel_entropy", "h=40,w=64,W=32,range=auto", 0, 1},
    {"pixel_entropy", "h=40,w=50,W=101", 0, 1},
    {"pixel_entropy", "h=400,w=700,W=9", 0, 1},
    {"image_segmentation", "h=65,w=128", 0, 1},
    {"image_segmentation", "h=66,w=131,t=0.4", 0, 1},
    {"image_segmentation", "h=300,w=516,smooth=off", 0, 1},
    {"conv_entropy_segment", "h=64,w=128,kh=3,kw=3,pad_y=1,pad_x=1,W=9,t=2", 0, 1},
    {"conv_entropy_segment", "h=133,w=381,kh=3,kw=3,pad_y=1,pad_x=1,W=9,range=auto,t=3", 0, 1},
    {"conv_entropy_segment", "h=70,w=260,kh=3,kw=3,pad_y=1,pad_x=1,W=8,t=1", 0, 1},
    // Windows behind the last column that have 16 pixels, whose entropy may be exactly t.
    {"conv_entropy_segment", "h=61,w=184,kh=3,kw=3,pad_y=1,pad_x=1,W=8,t=4", 0, 1},
    {"conv_entropy_segment", "h=61,w=132,kh=5,kw=5,pad_y=2,pad_x=2,W=3,range=fixed,lo=-1,hi=1,t=1", 0, 1},
    {"conv_entropy_segment", "h=61,w=99,kh=4,kw=2,W=12,t=2.5", 0, 1},
    {"conv_entropy_segment", "h=500,w=640,kh=3,kw=3,pad_y=1,pad_x=1,W=9,t=3", 0, 1},
};
INSTANTIATE_TEST_SUITE_P(All, CudaImage, ::testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace fulcrum::backends
