// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The registry of backends and kernels, and modules that link nothing of libfulcrum.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/modules.h"
#include "support/instances.h"

namespace fulcrum::backends {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

fulcrum_status run_nothing(const fulcrum_args*, void*, std::int64_t) {
  return fulcrum_status{FULCRUM_OK, nullptr};
}

TEST(Registry, BackendsComeInTheOrderOfTheList) {
  const auto backends = all();
  ASSERT_GE(backends.size(), 4u);
  const std::string_view expected[] = {"scalar", "simd", "threads", "cpulib"};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(backends[i]->name(), expected[i]);
}

TEST(Registry, AnUnknownBackendListsTheKnownOnes) {
  const auto backend = find("smid");
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.error().code, Code::not_found);
  EXPECT_NE(backend.error().hint.find("did you mean 'simd'"), std::string::npos) << backend.error().hint;
  EXPECT_NE(backend.error().hint.find("scalar, simd, threads, cpulib"), std::string::npos)
      << backend.error().hint;
}

TEST(Registry, AKernelIsFoundByOpBackendAndVariant) {
  const auto found = kernel("relu", "scalar");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->name(), "relu/scalar/default");
  EXPECT_EQ(found->isa(), "scalar");
  EXPECT_EQ(found->precision(), "fp32");
  EXPECT_EQ(found->threads(), 1);
  EXPECT_EQ(found->source_hash().size(), 16u);
  EXPECT_NE(found->source_hash(), kernel("tanh", "scalar")->source_hash());
}

TEST(Registry, AnUnknownVariantListsWhatThereIs) {
  const auto missing = kernel("relu", "scalar", "fast");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_NE(missing.error().hint.find("scalar/default"), std::string::npos) << missing.error().hint;
  EXPECT_EQ(kernels("rleu").error().code, Code::not_found);
  EXPECT_EQ(kernels("relu", "nowhere").error().code, Code::not_found);
}

TEST(Registry, ForcingABackendLeavesOnlyThatOne) {
  const Variable forced("FULCRUM_FORCE_BACKEND", "scalar");
  ASSERT_EQ(all().size(), 1u);
  EXPECT_EQ(all().front()->name(), "scalar");
  const auto relu = kernels("relu");
  ASSERT_TRUE(relu.ok());
  for (const Kernel& one : *relu) EXPECT_EQ(one.backend().name(), "scalar");
  const auto other = find("simd");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("FULCRUM_FORCE_BACKEND"), std::string::npos) << other.error().message;
}

TEST(Registry, ForcingWhatIsNotThereIsAnErrorThatListsWhatIs) {
  {
    const Variable forced("FULCRUM_FORCE_BACKEND", "sclar");
    const Status status = check_environment();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::not_found);
    EXPECT_NE(status.error().hint.find("scalar, simd"), std::string::npos) << status.error().hint;
    EXPECT_FALSE(kernels("relu").ok());
  }
  const Variable forced("FULCRUM_FORCE_ISA", "avx9000");
  const Status status = check_environment();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("avx9000"), std::string::npos);
  for (const std::string& isa : isas()) EXPECT_NE(status.error().hint.find(isa), std::string::npos) << isa;
}

TEST(Registry, EveryKernelBelongsToAnOpAndCanRun) {
  for (const Backend* backend : all()) {
    if (!backend->available()) continue;
    for (const fulcrum_kernel& entry : backend->kernels()) {
      EXPECT_TRUE(ops::find(entry.op).ok()) << backend->name() << ": " << entry.op;
      EXPECT_NE(entry.run, nullptr) << entry.op;
      EXPECT_EQ(entry.plan == nullptr, entry.drop == nullptr) << entry.op;
    }
  }
}

TEST(Registry, KernelsOfTheCallersAreFoundAndPointersStayValid) {
  const auto before = kernel("relu", "scalar");
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(add("scalar", fulcrum_kernel{.op = "relu", .variant = "mine", .run = run_nothing}).ok());
  ASSERT_TRUE(add("yours", fulcrum_kernel{.op = "relu", .variant = "default", .run = run_nothing}).ok());
  EXPECT_STREQ(before->entry().variant, "default");
  const auto mine = kernel("relu", "scalar", "mine");
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  EXPECT_EQ(mine->source_hash(), "");
  EXPECT_TRUE(kernel("relu", "scalar").ok());
  const auto yours = kernel("relu", "yours");
  ASSERT_TRUE(yours.ok()) << yours.error().message;
  EXPECT_TRUE(yours->backend().available());
  EXPECT_EQ(yours->backend().describe(), Json::object());

  EXPECT_FALSE(add("yours", fulcrum_kernel{.op = "relu", .variant = "default", .run = run_nothing}).ok())
      << "taken";
  EXPECT_FALSE(add("yours", fulcrum_kernel{.op = "rleu", .variant = "a", .run = run_nothing}).ok())
      << "no such op";
  EXPECT_FALSE(add("yours", fulcrum_kernel{.op = "relu", .variant = "a"}).ok()) << "no run";
}

TEST(Call, RefusesWhatTheKernelDoesNotSupport) {
  const fulcrum_kernel entry{
      .op = "relu",
      .variant = "picky",
      .supports = [](const fulcrum_args* a) { return static_cast<int>(a->dim[0] % 16 == 0); },
      .run = run_nothing};
  ASSERT_TRUE(add("call_test", entry).ok());
  auto problem = ops::Problem::make(test::op_of("relu"), test::shape_of("n=17"));
  ASSERT_TRUE(problem.ok());
  const auto call = Call::make(*kernel("relu", "call_test", "picky"), problem->args());
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().code, Code::unsupported);
  EXPECT_NE(call.error().message.find("n=17"), std::string::npos) << call.error().message;
}

int plans = 0;

TEST(Call, DropsItsPlanOnceHoweverOftenItMoves) {
  const fulcrum_kernel entry{.op = "relu",
                             .variant = "planned",
                             .plan =
                                 [](const fulcrum_kernel*, const fulcrum_args*, void** plan) {
                                   ++plans;
                                   *plan = &plans;
                                   return fulcrum_status{FULCRUM_OK, nullptr};
                                 },
                             .drop = [](void* plan) { --*static_cast<int*>(plan); },
                             .run = run_nothing};
  ASSERT_TRUE(add("call_test", entry).ok());
  auto problem = ops::Problem::make(test::op_of("relu"), test::shape_of("n=4"));
  ASSERT_TRUE(problem.ok());
  {
    auto first = Call::make(*kernel("relu", "call_test", "planned"), problem->args());
    ASSERT_TRUE(first.ok());
    auto second = Call::make(*kernel("relu", "call_test", "planned"), problem->args());
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(plans, 2);
    Call moved = std::move(*first);
    moved = std::move(*second);
    EXPECT_EQ(moved.run().code, FULCRUM_OK);
  }
  EXPECT_EQ(plans, 0);
}

TEST(Call, AFailedPlanIsAnError) {
  const fulcrum_kernel entry{.op = "relu",
                             .variant = "failing",
                             .plan =
                                 [](const fulcrum_kernel*, const fulcrum_args*, void**) {
                                   return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no room for the plan"};
                                 },
                             .drop = [](void*) { FAIL() << "there is nothing to drop"; },
                             .run = run_nothing};
  ASSERT_TRUE(add("call_test", entry).ok());
  auto problem = ops::Problem::make(test::op_of("relu"), test::shape_of("n=4"));
  ASSERT_TRUE(problem.ok());
  const auto call = Call::make(*kernel("relu", "call_test", "failing"), problem->args());
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().code, Code::out_of_memory);
}

#ifdef FULCRUM_TEST_MODULE_DIR
const std::filesystem::path kModules = FULCRUM_TEST_MODULE_DIR;

TEST(Modules, OneThatLinksNothingOfOursRunsAndLogs) {
  const Backend backend(load_module(kModules / "libfulcrum_testmodule.so"));
  ASSERT_TRUE(backend.available()) << backend.why_not();
  EXPECT_EQ(backend.name(), "testmodule");
  EXPECT_EQ(backend.table().mark_seconds, nullptr) << "fields it does not have read as null";
  ASSERT_EQ(backend.kernels().size(), 1u);
  std::string logged;
  set_log_sink([&logged](LogLevel, std::string_view message) { logged = message; });
  auto problem = ops::Problem::make(test::op_of("relu"), test::shape_of("n=100"));
  ASSERT_TRUE(problem.ok());
  ASSERT_TRUE(test::run(Kernel(&backend, &backend.kernels()[0]), *problem));
  set_log_sink({});
  const Oracle oracle = problem->check();
  EXPECT_TRUE(oracle.passed) << oracle.detail;
  EXPECT_EQ(logged, "the test module ran relu");
}

TEST(Modules, OneOfAnotherInterfaceVersionSaysSo) {
  const Backend backend(load_module(kModules / "libfulcrum_testfuture.so"));
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.name(), "testfuture");
  EXPECT_NE(backend.why_not().find("speaks version 99"), std::string::npos) << backend.why_not();
  EXPECT_TRUE(backend.kernels().empty());
}

TEST(Modules, ASharedObjectWithoutTheEntryPointIsNoBackend) {
  const Backend backend(load_module(kModules / "libfulcrum_testforeign.so"));
  EXPECT_FALSE(backend.available());
  EXPECT_NE(backend.why_not().find("fulcrum_backend_v1"), std::string::npos) << backend.why_not();
}
#endif

TEST(Modules, AFileThatIsNoSharedObjectSaysWhy) {
  const std::filesystem::path file = ::testing::TempDir() + "/libfulcrum_broken.so";
  std::ofstream(file) << "not a library";
  const Backend backend(load_module(file));
  EXPECT_FALSE(backend.available());
  EXPECT_EQ(backend.name(), "broken");
  EXPECT_NE(backend.why_not().find("cannot be loaded"), std::string::npos) << backend.why_not();
  std::filesystem::remove(file);
}

TEST(Modules, AreFoundInTheNamedFoldersFirstAndBesideTheProgram) {
  const std::filesystem::path root = ::testing::TempDir() + "/fulcrum_modules_" + std::to_string(getpid());
  const auto touch = [](const std::filesystem::path& file) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << "";
  };
  touch(root / "extra" / "libfulcrum_mine.so");
  touch(root / "extra" / "libfulcrum.so");  // the library itself is no module
  touch(root / "extra" / "libother_mine.so");
  touch(root / "lib" / "libfulcrum_cuda.so");
  touch(root / "lib" / "libfulcrum_unasked.so");
  const auto found =
      find_modules((root / "nowhere").string() + ":" + (root / "extra").string(), root / "bin");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], root / "extra" / "libfulcrum_mine.so");
  EXPECT_EQ(found[1], root / "lib" / "libfulcrum_cuda.so");
  touch(root / "extra" / "libfulcrum_cuda.so");
  EXPECT_EQ(find_modules((root / "extra").string(), root / "bin")[0], root / "extra" / "libfulcrum_cuda.so");
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace fulcrum::backends
