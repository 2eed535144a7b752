// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Backends that are loaded when asked for, and that peers stay out of everything that does not name them. With the real
// module there: every peer on the ops' edge shapes, where it may be inaccurate but must not touch other memory.
#include <fulcrum/backends.h>
#include <fulcrum/backends/load.h>
#include <fulcrum/ops/check.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "backends/modules.h"

namespace fulcrum::backends {
namespace {

const std::filesystem::path kFakePeers = std::filesystem::path(FULCRUM_TEST_MODULE_DIR) / "peers";

TEST(Load, AModuleThatIsNowhereSaysHowToGetIt) {
  const Status status = load("nowhere");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::not_found);
  EXPECT_NE(status.error().hint.find("libfulcrum_nowhere.so"), std::string::npos) << status.error().hint;
  EXPECT_FALSE(find("nowhere").ok());
}

TEST(Load, ModulesAreFoundInTheModulePathBeforeTheProgramsFolder) {
  const std::string path = "/nowhere:" + kFakePeers.string();
  EXPECT_EQ(find_module("peers", path, "/nowhere/bin"), kFakePeers / "libfulcrum_peers.so");
  EXPECT_EQ(find_module("peers", "", kFakePeers), kFakePeers / "libfulcrum_peers.so");
  EXPECT_TRUE(find_module("others", path, kFakePeers).empty());
}

TEST(Load, ABackendThatIsThereIsNotLoadedAgain) {
  const auto before = all().size();
  EXPECT_TRUE(load("simd").ok());
  EXPECT_EQ(all().size(), before);
}

/// Last in this file: from here on the process has peers.
TEST(Peers, AreThereOnlyAfterLoadingAndOnlyByName) {
  if (find(kPeers).ok()) GTEST_SKIP() << "FULCRUM_MODULE_PATH names peers already";
  setenv("FULCRUM_MODULE_PATH", kFakePeers.c_str(), 1);
  const Status loaded = load(kPeers);
  unsetenv("FULCRUM_MODULE_PATH");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ((*find(kPeers))->kind(), kPeerKind);

  const auto anyone = kernels("relu");
  ASSERT_TRUE(anyone.ok());
  const auto is_peer = [](const Kernel& kernel) { return kernel.backend().kind() == kPeerKind; };
  EXPECT_TRUE(std::none_of(anyone->begin(), anyone->end(), is_peer));
  const auto named = kernels("relu", kPeers);
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->size(), 2U);
}

class RealPeers : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto file = find_module(kPeers, "", program_folder());
    if (file.empty()) GTEST_SKIP() << "the peers are not built here";
    backend_ = std::make_unique<Backend>(load_module(file));
    if (!backend_->available()) GTEST_SKIP() << backend_->why_not();
  }
  std::unique_ptr<Backend> backend_;
};

/// What is wrong with one kernel on one shape; empty when nothing is, or when it is not for this shape.
std::string verdict(const Kernel& kernel, const ops::Op& op, std::string_view text) {
  const auto shape = ops::complete(op, *parse_shape(text));
  if (!shape.ok()) return shape.error().message;
  auto problem = ops::Problem::make(op, *shape);
  if (!problem.ok()) return problem.error().message;
  if (!kernel.supports(problem->args())) return "";
  auto call = Call::make(kernel, problem->args());
  if (!call.ok()) return call.error().code == Code::unsupported ? "" : call.error().message;
  const fulcrum_status status = call->run(2);
  if (status.code != FULCRUM_OK) return status.message ? status.message : "failed";
  const Oracle oracle = problem->check();
  return oracle.passed || ops::only_inaccurate(oracle) ? "" : oracle.detail;
}

TEST_F(RealPeers, WriteEveryOutputAndNothingElseOnTheEdgeShapes) {
  int checked = 0;
  for (const fulcrum_kernel& entry : backend_->kernels()) {
    const auto op = ops::find(entry.op);
    ASSERT_TRUE(op.ok()) << "a peer of an op that is none: " << entry.op;
    std::vector<std::string_view> shapes((*op)->edge_shapes.begin(), (*op)->edge_shapes.end());
    if (shapes.empty()) shapes = {(*op)->default_sizes.front()};
    for (const std::string_view shape : shapes) {
      ++checked;
      EXPECT_EQ(verdict(Kernel(backend_.get(), &entry), **op, shape), "")
          << entry.op << "/" << entry.variant << " on " << shape;
    }
  }
  EXPECT_GT(checked, 0);
}

TEST_F(RealPeers, SayWhichLibraryAndCoreTheyAre) {
  for (const fulcrum_kernel& entry : backend_->kernels()) {
    const Kernel kernel(backend_.get(), &entry);
    EXPECT_FALSE(kernel.detail().empty()) << kernel.name();
    EXPECT_FALSE(kernel.isa().empty()) << kernel.name();
  }
}

}  // namespace
}  // namespace fulcrum::backends
