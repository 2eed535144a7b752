// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The threads backend has an entry for every SIMD kernel that can be split, and says how many threads it uses.
#include <gtest/gtest.h>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

TEST(ThreadsBackend, HasEveryKernelThatCanBeSplit) {
  std::int64_t split = 0;
  for (const ops::Op* op : ops::all()) {
    const auto simd = backends::kernels(op->name, "simd");
    if (!simd.ok()) continue;  // no such kernel
    for (const backends::Kernel& kernel : *simd) {
      const bool can = kernel.entry().partial && op->split.phases > 0;
      const auto threaded = backends::kernel(op->name, "threads", kernel.variant());
      EXPECT_EQ(threaded.ok(), can) << kernel.name();
      if (!can) continue;
      ++split;
      EXPECT_EQ(threaded->threads(), backends::usable_threads()) << kernel.name();
      EXPECT_EQ(threaded->isa(), kernel.isa());
      EXPECT_FALSE(threaded->source_hash().empty());
    }
  }
  EXPECT_GE(split, 8);
}

TEST(ThreadsBackend, OffersPowersOfTwoBelowAllThreads) {
  for (int threads = 2; threads < 64; threads *= 2) {
    const auto kernel = backends::kernel("relu", "threads", fmt::format("t{}", threads));
    EXPECT_EQ(kernel.ok(), threads < backends::usable_threads()) << threads;
    if (kernel.ok()) {
      EXPECT_EQ(kernel->threads(), threads);
    }
  }
}

TEST(ThreadsBackend, AddsUpAnEmptyDotToZero) {
  const auto kernel = backends::kernel("dot", "threads");
  ASSERT_TRUE(kernel.ok());
  float a = 1, sum = 7;
  Args args{};
  args.ptr[0] = args.ptr[1] = &a;
  args.ptr[2] = &sum;
  auto call = backends::Call::make(*kernel, args);
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_EQ(call->run(3).code, FULCRUM_OK);
  EXPECT_EQ(sum, 0);
}

TEST(ThreadsBackend, SpreadsASingleRowOfSoftmax) {
  auto problem = ops::Problem::make(op_of("softmax"), *parse_shape("n=100003"));
  ASSERT_TRUE(problem.ok());
  const auto kernel = backends::kernel("softmax", "threads");
  ASSERT_TRUE(kernel.ok());
  auto call = backends::Call::make(*kernel, problem->args());
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_EQ(call->run().code, FULCRUM_OK);
  const Oracle oracle = problem->check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
}

}  // namespace
}  // namespace fulcrum::test
