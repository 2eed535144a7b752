// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the program says about a GPU, and where the CUDA module is built and no device answers: the exact reason, and
// everything else works. The GPU backend and the driver of these tests are libraries of their own.
#include "cli/program.h"

namespace fulcrum::cli {
namespace {

const std::string kFakeDriver = std::string(FULCRUM_TEST_MODULE_DIR) + "/fake_driver";

class DoctorWithTheCudaModule : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path built = FULCRUM_BINARY_DIR;
    if (!std::filesystem::exists(built / "lib" / "fulcrum" / "libfulcrum_cuda.so"))
      GTEST_SKIP() << "SKIPPED: no nvcc here, so no module was built";
  }
};

Json finding(const std::string& output, const std::string& topic) {
  const Json json = Json::parse(output, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << output;
  for (const Json& one : json["findings"]) {
    if (one["topic"] == topic) return one;
  }
  ADD_FAILURE() << "no line about " << topic << " in " << output;
  return Json::object();
}

TEST(DoctorWithAGpu, ShowsTheDeviceItsOtherUsersAndEachLibrary) {
  const Outcome outcome =
      fulcrum({"doctor", "--json", "-"},
              {{"FULCRUM_MODULE_PATH", std::string(FULCRUM_TEST_MODULE_DIR) + "/described_gpu"}});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json gpu = finding(outcome.output, "gpu");
  EXPECT_EQ(
      gpu["text"],
      "Test GPU, compute capability 9.0, 132 SMs, 1.0 GiB, L2 60.0 MiB; driver 580.1 for CUDA 13.1, module "
      "built with 13.0");
  EXPECT_EQ(gpu["state"], "note");
  EXPECT_EQ(gpu["advice"], "other processes use it (2): their work is in your times");
  EXPECT_EQ(finding(outcome.output, "library cublasLt")["text"], "13.1.0, /opt/test/libcublasLt.so.13");
  const Json found = finding(outcome.output, "library cupti");
  EXPECT_EQ(found["text"], "/opt/test/libcupti.so.13") << "not loaded before something wants it";
  EXPECT_EQ(found["state"], "ok");
  const Json missing = finding(outcome.output, "library cudnn");
  EXPECT_EQ(missing["state"], "missing");
  EXPECT_EQ(missing["text"], "not found; off without it: variants named cudnn");
  EXPECT_EQ(missing["advice"], "install cuDNN 9 (libcudnn.so.9: nowhere)");
}

TEST_F(DoctorWithTheCudaModule, SaysExactlyWhyNoDeviceIsUsable) {
  const struct {
    Variables variables;
    std::string reason;
  } cases[] = {
      {{{"CUDA_VISIBLE_DEVICES", ""}}, "CUDA_VISIBLE_DEVICES is set and empty"},
      {{{"CUDA_VISIBLE_DEVICES", "7"}}, "CUDA_VISIBLE_DEVICES=7 names no GPU"},
      {{{"FAKE_DRIVER_VERSION", "11040"}}, "too old: it speaks CUDA 11.4, this module needs 1"},
      {{{"FAKE_DRIVER_INIT", "803"}}, "cudaErrorSystemDriverMismatch"},
      {{{"FAKE_DRIVER_INIT", "999"}}, "cudaErrorUnknown"},
  };
  for (const auto& [variables, reason] : cases) {
    Variables all = variables;
    all.emplace_back("LD_LIBRARY_PATH", kFakeDriver);
    const Outcome outcome = fulcrum({"doctor", "--json", "-"}, all);
    ASSERT_EQ(outcome.code, 0) << outcome.error;
    const Json backend = finding(outcome.output, "backend cuda");
    EXPECT_NE(backend["state"], "ok");
    const std::string advice = backend["advice"];
    EXPECT_NE(advice.find(reason), std::string::npos) << advice;
    EXPECT_NE(advice.find(": "), std::string::npos) << "no advice behind the reason: " << advice;
    EXPECT_NE(finding(outcome.output, "gpu")["state"], "ok");
  }
}

TEST_F(DoctorWithTheCudaModule, TheOtherCommandsWorkWithoutADevice) {
  const Variables hidden = {{"LD_LIBRARY_PATH", kFakeDriver}, {"CUDA_VISIBLE_DEVICES", ""}};
  const Outcome ops = fulcrum({"ops"}, hidden);
  EXPECT_EQ(ops.code, 0) << ops.error;
  EXPECT_NE(ops.output.find("vec_add"), std::string::npos);
  const Outcome bench = fulcrum(quick_bench(), hidden);
  EXPECT_EQ(bench.code, 0) << bench.error;
  const Outcome asked = fulcrum({"bench", "vec_add", "--shape", "n=1000", "--backend", "cuda"}, hidden);
  EXPECT_EQ(asked.code, 3) << asked.output << asked.error;
  EXPECT_NE(asked.error.find("CUDA_VISIBLE_DEVICES is set and empty"), std::string::npos) << asked.error;
}

TEST_F(DoctorWithTheCudaModule, ReadsWellWhereThereIsNoGpu) {
  const Outcome outcome = fulcrum({"doctor", "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json gpu = finding(outcome.output, "gpu");
  if (gpu["text"] != "none found") GTEST_SKIP() << "SKIPPED: there is a GPU here";
  const Json backend = finding(outcome.output, "backend cuda");
  EXPECT_EQ(gpu["state"], "note");
  EXPECT_EQ(backend["state"], "note") << "nothing is broken without a GPU";
  EXPECT_NE(backend["advice"], "");
  EXPECT_EQ(outcome.output.find("library cublasLt"), std::string::npos) << "libraries that nothing could use";
}

}  // namespace
}  // namespace fulcrum::cli
