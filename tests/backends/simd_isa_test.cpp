// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Instruction sets by name: what is listed can be forced, and what is forced is what runs.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/instances.h"

namespace fulcrum::test {
namespace {

std::vector<float> run_sigmoid() {
  std::vector<float> x(4096), y(4096);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * 0.01F - 20;
  const auto kernel = backends::kernel("sigmoid", "simd");
  EXPECT_TRUE(kernel.ok());
  Args args{};
  args.ptr[0] = x.data();
  args.ptr[1] = y.data();
  args.dim[0] = static_cast<std::int64_t>(x.size());
  EXPECT_EQ(kernel->entry().run(&args, nullptr, 1).code, FULCRUM_OK);
  return y;
}

TEST(SimdIsa, ListsEachSetOnceBestFirst) {
  const std::vector<std::string> isas = backends::isas();
  ASSERT_FALSE(isas.empty());
  const std::vector<std::string> best_first = {"avx3", "avx2", "sse4", "ssse3", "neon", "emu128", "scalar"};
  auto from = best_first.begin();
  for (const std::string& isa : isas) {
    from = std::find(from, best_first.end(), isa);
    ASSERT_NE(from, best_first.end()) << isa << " is not known, or not in order";
    ++from;
  }
}

TEST(SimdIsa, WhatIsForcedIsWhatRuns) {
  const auto kernel = backends::kernel("sigmoid", "simd");
  ASSERT_TRUE(kernel.ok());
  for (const std::string& isa : backends::isas()) {
    const ForcedIsa forced(isa);
    EXPECT_EQ(backends::active_isa(), isa);
    EXPECT_EQ(kernel->isa(), isa);
  }
  EXPECT_EQ(backends::active_isa(), backends::isas().front());
}

TEST(SimdIsa, KernelsGoThroughDispatch) {
  hwy::GetChosenTarget().DeInit();
  run_sigmoid();
  EXPECT_TRUE(hwy::GetChosenTarget().IsInitialized());
  EXPECT_EQ(backends::active_isa(), backends::isas().front());
}

TEST(SimdIsa, AnotherSetRunsOtherCode) {
  if (backends::isas().size() < 2) GTEST_SKIP() << "this CPU has one instruction set only";
  const std::vector<float> best = run_sigmoid();
  const ForcedIsa forced(backends::isas().back());
  const std::vector<float> plain = run_sigmoid();
  // Both are right and no two roundings more apart than the tolerance, but not the same bits everywhere.
  EXPECT_NE(best, plain);
  for (std::size_t i = 0; i < best.size(); ++i) ASSERT_NEAR(best[i], plain[i], 1e-6 * plain[i]);
}

TEST(SimdIsa, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  const Status forced = backends::force_isa("avx9");
  ASSERT_FALSE(forced.ok());
  EXPECT_EQ(forced.error().code, Code::not_found);
  EXPECT_NE(forced.error().message.find("avx9"), std::string::npos);
  for (const std::string& isa : backends::isas()) {
    EXPECT_NE(forced.error().hint.find(isa), std::string::npos) << isa;
  }
  EXPECT_EQ(backends::active_isa(), backends::isas().front());
}

TEST(SimdIsaDeathTest, TheEnvironmentForcesASetAtTheStart) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which nothing was chosen yet
  const std::string last = backends::isas().back();
  EXPECT_EXIT(
      {
        setenv("FULCRUM_FORCE_ISA", last.c_str(), 1);
        std::exit(backends::kernel("sigmoid", "simd")->isa() == last ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(SimdIsa, TheBackendDescribesWhatItWasBuiltFor) {
  const auto backend = backends::find("simd");
  ASSERT_TRUE(backend.ok());
  const std::string text = json_text((*backend)->describe());
  EXPECT_NE(text.find("highway"), std::string::npos) << text;
  EXPECT_NE(text.find(backends::isas().front()), std::string::npos) << text;
}

}  // namespace
}  // namespace fulcrum::test
