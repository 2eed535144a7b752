// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our own products on a device at sizes that take each of their tiles, with edges that no tile fits, bias and
// activation, and with NaN and Inf among the inputs. Products by the library, which replay what their plan recorded.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/backends/dtypes.h>
#include <gtest/gtest.h>

#include "support/instances.h"
#include "support/on_device.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;

void expect_right(const backends::Kernel& kernel, const std::string& text, Special special) {
  const ops::Op& op = op_of("matmul");
  Shape shape = ops::complete(op, parse_shape(text).value()).value();
  shape.dtype = backends::dtype_of(kernel).value();
  auto problem = ops::Problem::make(op, shape, {.special = special, .optional_inputs = true});
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  auto call = backends::DeviceCall::make(kernel, problem->args());
  ASSERT_TRUE(call.ok()) << call.error().message;
  const std::string where = fmt::format("{} {} special={}", kernel.name(), text, static_cast<int>(special));
  ASSERT_TRUE(call->upload().ok());
  const Status ran = call->run(2);
  ASSERT_TRUE(ran.ok()) << where << ": " << ran.error().message;
  const Status back = call->download();
  ASSERT_TRUE(back.ok()) << where << ": " << back.error().message;
  const Oracle oracle = problem->check(kernel.precision());
  EXPECT_TRUE(oracle.passed) << where << ": " << oracle.detail;
}

std::vector<const char*> sizes_of(const std::string& variant) {
  // Tiles of 32x32, 64x32 and 64x64 on a device of 132 multiprocessors; fewer slabs than a ring has, and more.
  if (variant == "own_tf32") {
    return {"M=77,N=88,K=104",   "M=77,N=88,K=300",  "M=500,N=520,K=72",
            "M=500,N=520,K=516", "M=750,N=760,K=40", "M=1000,N=1000,K=260"};
  }
  // Tiles of 128x128: terms shared by two CTAs, of which one may have none, and not shared; a slab, more than a ring has
  // and less than a whole one.
  return {"M=77,N=88,K=104",   "M=1,N=8,K=8",        "M=130,N=136,K=64",   "M=500,N=520,K=72",
          "M=500,N=520,K=520", "M=1024,N=256,K=712", "M=2000,N=2000,K=264"};
}

class CudaGemm : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaGemm, OwnTilesAreRightAtTheirEdges) {
  const auto found = backends::find("cuda");
  if (!found.ok()) GTEST_SKIP() << "SKIPPED: no GPU backend: " << found.error().message;
  if (!(*found)->available()) GTEST_SKIP() << "SKIPPED: no GPU: " << (*found)->why_not();
  const auto kernel = backends::kernel("matmul", "cuda", GetParam());
  ASSERT_TRUE(kernel.ok()) << kernel.error().message;
  for (const char* epilogue : {"none", "relu", "gelu"}) {
    for (const char* sizes : sizes_of(GetParam())) {
      const std::string text = fmt::format("{},epilogue={}", sizes, epilogue);
      ASSERT_NO_FATAL_FAILURE(expect_right(*kernel, text, Special::none));
      ASSERT_NO_FATAL_FAILURE(expect_right(*kernel, text, Special::mixed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, CudaGemm,
                         ::testing::Values("own_tf32", "own_f16", "own_bf16", "group_tf32", "group_fp32"),
                         [](const auto& info) { return std::string(info.param); });

class CudaProducts : public backends::OnDevice {
 protected:
  void call(const fulcrum_kernel& kernel, const fulcrum_args& args, std::int64_t count = 1) {
    EXPECT_EQ(kernel.run(&args, nullptr, count).code, FULCRUM_OK) << kernel.variant;
    EXPECT_EQ(backend_->table().stream_wait(nullptr).code, FULCRUM_OK) << kernel.variant;
  }
};

/// What a plan keeps of the call that it was made for belongs to that call's memory and to no other's.
TEST_F(CudaProducts, ReadAndWriteTheMemoryOfEachCallWhateverTheirPlanWasMadeFor) {
  constexpr std::int64_t kSide = 256;  // the library is the fastest here, in f32
  constexpr auto kElements = static_cast<std::size_t>(kSide * kSide);
  std::vector<float> a(kElements), b(kElements), twice(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    a[i] = static_cast<float>(i % 17) - 8;
    b[i] = static_cast<float>(i % 13) - 6;
    twice[i] = 2 * a[i];
  }
  const std::vector<float> empty(kElements, -1.0F);
  fulcrum_args args = {};
  args.dim[0] = args.dim[1] = args.dim[2] = kSide;
  float* const left = place(a, 0);
  float* const first = place(empty, 0);
  args.ptr[0] = left;
  args.ptr[1] = place(b, 0);
  args.ptr[3] = first;
  for (const fulcrum_kernel* kernel : kernels_of("matmul", args)) {
    if (std::string_view(kernel->dtype ? kernel->dtype : "f32") != "f32" || !kernel->plan) continue;
    SCOPED_TRACE(kernel->variant);
    fulcrum_args planned = args;
    ASSERT_EQ(kernel->plan(kernel, &planned, &planned.plan).code, FULCRUM_OK);
    call(*kernel, planned, 3);
    const std::vector<float> product = fetch(first, kSide * kSide);
    EXPECT_EQ(product[0], [&] {
      float sum = 0;
      for (std::size_t k = 0; k < kSide; ++k) sum += a[k] * b[k * kSide];
      return sum;
    }());

    fulcrum_args elsewhere = planned;
    float* const second = place(empty, 0);
    elsewhere.ptr[3] = second;
    elsewhere.ptr[0] = place(twice, 0);
    call(*kernel, elsewhere);
    const std::vector<float> doubled = fetch(second, kSide * kSide);
    std::vector<float> expected = product;
    for (float& value : expected) value *= 2;  // whole numbers: exact in every precision
    EXPECT_EQ(doubled, expected);
    EXPECT_EQ(fetch(first, kSide * kSide), product) << "a call on other memory wrote into the plan's";

    // New numbers in the plan's memory.
    ASSERT_EQ(backend_->table().copy(left, twice.data(), twice.size() * sizeof(float), nullptr).code,
              FULCRUM_OK);
    call(*kernel, planned);
    EXPECT_EQ(fetch(first, kSide * kSide), expected);
    ASSERT_EQ(backend_->table().copy(left, a.data(), a.size() * sizeof(float), nullptr).code, FULCRUM_OK);
    kernel->drop(planned.plan);
  }
}

}  // namespace
}  // namespace fulcrum::test
