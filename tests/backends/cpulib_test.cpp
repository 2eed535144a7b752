// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which core OpenBLAS is told to use, and what the library backend says about itself.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/cpulib/libraries.h"
#include "support/instances.h"

namespace fulcrum::backends::cpulib {
namespace {

TEST(RightCore, FollowsWhatTheCpuCanDo) {
  EXPECT_EQ(right_core(true, true, true, false), "SkylakeX");
  EXPECT_EQ(right_core(true, true, true, true), "SkylakeX");
  EXPECT_EQ(right_core(false, true, true, false), "Haswell");
  EXPECT_EQ(right_core(false, true, true, true), "Zen");
  EXPECT_EQ(right_core(false, false, true, false), "Sandybridge");
  EXPECT_EQ(right_core(false, false, false, false), "");
}

TEST(RightCore, ANarrowerCoreThanTheCpuHasIsCorrected) {
  EXPECT_TRUE(wastes("Prescott", "SkylakeX"));
  EXPECT_TRUE(wastes("Haswell", "SkylakeX"));
  EXPECT_TRUE(wastes("Zen", "SkylakeX"));
  EXPECT_TRUE(wastes("Nehalem", "Haswell"));
  EXPECT_FALSE(wastes("Cooperlake", "SkylakeX"));
  EXPECT_FALSE(wastes("SkylakeX", "SkylakeX"));
  EXPECT_FALSE(wastes("SomethingNewer", "SkylakeX")) << "a core we have never heard of is left alone";
  EXPECT_FALSE(wastes("Prescott", ""));
}

TEST(CpuLib, SaysWhatItFound) {
  const auto backend = backends::find("cpulib");
  ASSERT_TRUE(backend.ok());
  const Json found = (*backend)->describe();
  for (const char* library : {"openblas", "onednn"}) {
    ASSERT_TRUE(found.contains(library)) << found.dump();
    if (found[library]["loaded"].get<bool>()) {
      EXPECT_FALSE(found[library]["version"].get<std::string>().empty());
    } else {
      EXPECT_NE(found[library]["why_not"].get<std::string>().find("apt install"), std::string::npos);
    }
  }
}

TEST(CpuLib, AMissingLibraryTakesOnlyItsOwnVariants) {
  const auto backend = backends::find("cpulib");
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->available(), openblas().loaded || onednn().loaded);
  for (const fulcrum_kernel& entry : (*backend)->kernels()) {
    const bool of_openblas = std::string_view(entry.variant).starts_with("openblas");
    EXPECT_TRUE(of_openblas ? openblas().loaded : onednn().loaded) << entry.variant;
  }
}

TEST(CpuLib, RunsOnACoreThatUsesTheCpu) {
  if (!openblas().loaded) GTEST_SKIP() << openblas().why_not;
  if (openblas().set_by == "user") GTEST_SKIP() << "OPENBLAS_CORETYPE is set";
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq")) {
    EXPECT_FALSE(wastes(openblas().core, "SkylakeX")) << openblas().core;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    EXPECT_FALSE(wastes(openblas().core, "Haswell")) << openblas().core;
  }
#endif
}

/// A variable as this process was started with it.
std::optional<std::string> at_start(std::string_view name) {
  std::ifstream file("/proc/self/environ");
  for (std::string line; std::getline(file, line, '\0');) {
    if (line.starts_with(name) && line.size() > name.size() && line[name.size()] == '=')
      return line.substr(name.size() + 1);
  }
  return {};
}

TEST(CpuLib, LoadingLeavesNoTraceInTheEnvironment) {
  const bool loaded = openblas().loaded && onednn().loaded;
  if (!loaded) GTEST_SKIP() << "a library is missing";
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_THREAD_TIMEOUT", "GOMP_SPINCOUNT"}) {
    EXPECT_EQ(environment(name), at_start(name)) << name;
  }
}

TEST(CpuLib, VariantsSayHowManyThreadsTheyUse) {
  for (const Kernel& kernel : test::host_kernels("matmul")) {
    if (kernel.backend().name() != "cpulib") continue;
    const bool single = kernel.variant().ends_with("_t1");
    EXPECT_EQ(kernel.threads(), single ? 1 : usable_threads()) << kernel.name();
    EXPECT_FALSE(kernel.detail().empty()) << kernel.name();
  }
}

TEST(CpuLib, AnActivationIsNotSupportedButABiasIs) {
  for (const Kernel& kernel : test::host_kernels("matmul")) {
    if (kernel.backend().name() != "cpulib") continue;
    EXPECT_FALSE(
        kernel.supports(*ops::resolve(test::op_of("matmul"), test::shape_of("M=2,N=2,K=2,epilogue=relu"))));
    auto problem =
        ops::Problem::make(test::op_of("matmul"), test::shape_of("M=9,N=10,K=11"), {.optional_inputs = true});
    ASSERT_TRUE(problem.ok());
    ASSERT_TRUE(test::run(kernel, *problem));
    const Oracle oracle = problem->check();
    EXPECT_TRUE(oracle.passed) << kernel.name() << ": " << oracle.detail;
  }
}

}  // namespace
}  // namespace fulcrum::backends::cpulib
