// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN on a device: attention in both layouts, with and without mask and lse, for short and long sequences of equal
// and unequal lengths, and convolutions in both precisions. Each configuration is tried by itself and prints a line,
// so that one run tells which of them a version of the library does not take.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <gtest/gtest.h>

#include <iostream>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

using Special = ops::Problem::Special;

/// Why there is nothing to test here, or nothing.
std::string why_not() {
  const auto found = backends::find("cuda");
  if (!found.ok()) return fmt::format("SKIPPED: no GPU backend: {}", found.error().message);
  if (!(*found)->available()) return fmt::format("SKIPPED: no GPU: {}", (*found)->why_not());
  return {};
}

/// One line for one configuration; false where the result is wrong or a call fails.
bool tried(const backends::Kernel& kernel, const std::string& text, Special special, bool optional_outputs,
           bool& ran) {
  const ops::Op& op = op_of(kernel.op());
  Shape given = parse_shape(text).value();
  given.dtype = parse_enum<DType>("dtype", kernel.dtype()).value();
  auto problem = ops::Problem::make(op, ops::complete(op, given).value(),
                                    {.special = special, .optional_inputs = optional_outputs});
  if (!problem.ok()) {
    ADD_FAILURE() << text << ": " << problem.error().message;
    return false;
  }
  const std::string where = fmt::format("{} {} special={} optional={}", kernel.name(), text,
                                        static_cast<int>(special), optional_outputs);
  const auto tell = [&](const std::string& outcome) {
    std::cout << "  " << where << ": " << outcome << '\n';
  };
  auto call = backends::DeviceCall::make(kernel, problem->args());
  if (!call.ok()) {
    tell("refused: " + call.error().message);
    return call.error().code == Code::unsupported;
  }
  const Status uploaded = call->upload();
  const Status status = uploaded.ok() ? call->run(2) : uploaded;
  const Status back = status.ok() ? call->download() : status;
  if (!back.ok()) {
    tell("failed: " + back.error().message);
    return false;
  }
  const Oracle oracle = problem->check(kernel.precision());
  tell(oracle.passed ? fmt::format("worst error {:.2f} of what is allowed", oracle.max_error_share)
                     : "wrong: " + oracle.detail);
  ran |= oracle.passed;
  return oracle.passed;
}

TEST(CudaDnn, AttentionIsRightInEveryConfiguration) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  auto kernels = backends::kernels("attention");
  ASSERT_TRUE(kernels.ok());
  bool ran = false;
  int found = 0;
  for (const backends::Kernel& kernel : *kernels) {
    if (kernel.backend().name() != "cuda" || kernel.name().find("cudnn") == std::string::npos) continue;
    ++found;
    for (const char* sizes : {"B=2,H=3,Sq=128,Skv=128,D=64", "B=1,H=2,Sq=100,Skv=300,D=128",
                              "B=1,H=1,Sq=17,Skv=17,D=256", "B=1,H=2,Sq=1024,Skv=1024,D=64"}) {
      for (const char* rest : {"causal=no,layout=bshd", "causal=yes,layout=bhsd", "causal=yes,layout=bshd"}) {
        const std::string text = fmt::format("{},{}", sizes, rest);
        EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << text;
        EXPECT_TRUE(tried(kernel, text, Special::mixed, true, ran)) << text << " with lse";
      }
    }
    // Long enough for engines and guards to be chosen by trial.
    for (const char* text :
         {"B=2,H=12,Sq=2048,Skv=2048,D=64", "B=1,H=12,Sq=2048,Skv=2048,D=128,causal=yes"}) {
      EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << text;
      EXPECT_TRUE(tried(kernel, text, Special::infinity, true, ran)) << text << " with lse";
    }
  }
  if (found == 0) GTEST_SKIP() << "SKIPPED: no GPU kernel of attention is built on cuDNN";
  EXPECT_TRUE(ran) << "cuDNN took none of the configurations; `fulcrum doctor` tells whether it was found";
}

TEST(CudaDnn, ConvolutionsAreRightInBothPrecisions) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  auto kernels = backends::kernels("conv2d_channels");
  ASSERT_TRUE(kernels.ok());
  bool ran = false;
  for (const backends::Kernel& kernel : *kernels) {
    if (kernel.backend().name() != "cuda") continue;
    for (const char* text : {"N=1,Cin=3,h=64,w=64,Cout=32,kh=3,kw=3,pad_y=1,pad_x=1",
                             "N=2,Cin=64,h=28,w=28,Cout=64,kh=3,kw=3,pad_y=1,pad_x=1",
                             "N=3,Cin=20,h=31,w=29,Cout=70,kh=5,kw=2,stride_y=2,stride_x=3,pad_y=2,pad_x=1",
                             "N=1,Cin=17,h=40,w=40,Cout=130,kh=1,kw=1",
                             "N=5,Cin=3,h=15,w=15,Cout=4,kh=7,kw=7,pad_y=3,pad_x=3"}) {
      EXPECT_TRUE(tried(kernel, text, Special::none, false, ran)) << kernel.name() << ' ' << text;
      EXPECT_TRUE(tried(kernel, text, Special::mixed, false, ran)) << kernel.name() << ' ' << text;
    }
  }
  EXPECT_TRUE(ran) << "no variant of conv2d_channels ran on the device";
}

}  // namespace
}  // namespace fulcrum::test
