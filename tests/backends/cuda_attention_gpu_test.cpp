// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Our attention kernels on a device: lengths around the tiles, masks, layouts, rows that are no whole vectors, NaN and
// Inf among the inputs, the logarithm of the sum, odd addresses, and the choice between kernels.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/backends/dtypes.h>
#include <gtest/gtest.h>

#include "conformance/device.h"
#include "support/instances.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;
enum Pointer { kQ, kK, kV, kO, kLse };

/// All but the library's.
std::vector<backends::Kernel> own_kernels() {
  std::vector<backends::Kernel> result;
  for (const backends::Kernel& kernel : device_kernels([](const ops::Op&op, const fulcrum_kernel&entry) {
         return op.name == "attention" && !std::string_view(entry.variant).starts_with("cudnn");
       })) {
    if (kernel.backend().name() == "cuda") result.push_back(kernel);
  }
  return result;
}

class CudaAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels_.empty())
      GTEST_SKIP() << "SKIPPED: no GPU backend is available here; `fulcrum doctor` says why";
  }
  const std::vector<backends::Kernel> kernels_ = own_kernels();
};

Result<ops::Problem> problem_for(const backends::Kernel& kernel, const std::string& text, Special special) {
  Shape shape = shape_of(text);
  shape.dtype = backends::dtype_of(kernel).value();
  return ops::Problem::make(op_of("attention"), shape, {.special = special, .optional_inputs = true});
}

void expect_right(const backends::Kernel& kernel, const std::string& text, Special special, int& ran) {
  auto problem = problem_for(kernel, text, special);
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  auto call = backends::DeviceCall::make(kernel, problem->args());
  if (!call.ok()) {
    ASSERT_EQ(call.error().code, Code::unsupported) << call.error().message;
    return;
  }
  const std::string where = fmt::format("{} {} special={}", kernel.name(), text, static_cast<int>(special));
  ASSERT_TRUE(call->upload().ok());
  const Status status = call->run(2);
  ASSERT_TRUE(status.ok()) << where << ": " << status.error().message;
  const Status back = call->download();
  ASSERT_TRUE(back.ok()) << where << ": " << back.error().message;
  const Oracle oracle = problem->check(kernel.precision());
  EXPECT_TRUE(oracle.passed) << where << ": " << oracle.detail;
  ++ran;
}

TEST_F(CudaAttention, IsRightAtLengthsAroundItsTiles) {
  for (const backends::Kernel& kernel : kernels_) {
    int ran = 0;
    for (const int length : {1, 17, 31, 32, 33, 64, 127, 128, 200, 256, 500, 512}) {
      for (const char* causal : {"no", "yes"}) {
        const std::string text = fmt::format("H=2,Sq={0},Skv={0},D=64,causal={1}", length, causal);
        ASSERT_NO_FATAL_FAILURE(expect_right(kernel, text, Special::none, ran));
      }
    }
    EXPECT_EQ(ran, 24) << kernel.name();
  }
}

TEST_F(CudaAttention, IsRightForEveryKindOfRowAndLayout) {
  for (const backends::Kernel& kernel : kernels_) {
    int ran = 0;
    for (const char* text :
         {"B=2,H=3,Sq=33,Skv=200,D=128,causal=yes,layout=bshd", "Sq=500,Skv=513,D=64,layout=bshd",
          "H=8,Sq=129,Skv=130,D=64,layout=bshd", "Sq=1,Skv=512,D=64", "Sq=70,Skv=1,D=128",
          "B=2,H=2,Sq=100,Skv=480,D=64,causal=yes,layout=bshd", "H=2,Sq=190,Skv=400,D=128,layout=bshd",
          "B=3,H=2,Sq=65,Skv=66,D=80", "H=2,Sq=40,Skv=300,D=96,causal=yes", "Sq=30,Skv=77,D=256,layout=bshd",
          "H=3,Sq=70,Skv=71,D=7,layout=bshd", "H=2,Sq=66,Skv=66,D=129,causal=yes", "Sq=20,Skv=20,D=1"}) {
      for (const Special special : {Special::none, Special::nan, Special::infinity, Special::mixed})
        ASSERT_NO_FATAL_FAILURE(expect_right(kernel, text, special, ran));
    }
    // `staged` keeps all keys of a head in one CTA's memory: neither 513 of 64 elements nor 400 of 128 fit.
    const bool is_staged = kernel.variant().starts_with("staged");
    EXPECT_GE(ran, is_staged ? 20 : 28) << kernel.name();
  }
}

/// Rows that begin between vectors.
TEST_F(CudaAttention, IsRightAtOddAddresses) {
  constexpr std::size_t kShiftBytes = 2;
  for (const backends::Kernel& kernel : kernels_) {
    auto problem = problem_for(kernel, "H=2,Sq=70,Skv=90,D=64,causal=yes", Special::none);
    ASSERT_TRUE(problem.ok());
    const fulcrum_backend& table = kernel.backend().table();
    Args args = problem->args();
    std::vector<std::unique_ptr<DeviceBuffer>> buffers;
    for (int slot = kQ; slot <= kLse; ++slot) {
      const auto bytes = problem->buffer(slot);
      buffers.push_back(std::make_unique<DeviceBuffer>(table, bytes.size() + kShiftBytes));
      ASSERT_TRUE(buffers.back()->ok());
      std::byte* to = buffers.back()->data() + (slot == kLse ? 0 : kShiftBytes);
      ASSERT_EQ(table.copy(to, bytes.data(), bytes.size(), nullptr).code, FULCRUM_OK);
      args.ptr[slot] = to;
    }
    ASSERT_NO_FATAL_FAILURE(run_on_device(kernel, args));
    for (int slot = kO; slot <= kLse; ++slot) {
      const auto bytes = problem->buffer(slot);
      ASSERT_EQ(table.copy(bytes.data(), args.ptr[slot], bytes.size(), nullptr).code, FULCRUM_OK);
    }
    ASSERT_EQ(table.stream_wait(nullptr).code, FULCRUM_OK);
    const Oracle oracle = problem->check(kernel.precision());
    EXPECT_TRUE(oracle.passed) << kernel.name() << ": " << oracle.detail;
  }
}

/// Sizes between those where one kernel is sure to win, so that both are tried.
TEST_F(CudaAttention, IsRightWhereATrialChoosesTheKernel) {
  for (const backends::Kernel& kernel : kernels_) {
    if (kernel.variant() != "default" && kernel.variant() != "bf16") continue;
    int ran = 0;
    for (const char* text : {"H=4,Sq=515,Skv=515,D=64", "H=3,Sq=700,Skv=700,D=128,causal=yes,layout=bshd",
                             "H=2,Sq=600,Skv=900,D=96"})
      ASSERT_NO_FATAL_FAILURE(expect_right(kernel, text, Special::none, ran));
    EXPECT_EQ(ran, 3);
  }
}

}  // namespace
}  // namespace fulcrum::test
