// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench makes of kernels that are wrong or do not take a shape: kernels of the test's own, the command line in
// this process.
#include <fulcrum/backends.h>
#include <fulcrum/cli.h>

#include <cstdlib>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

fulcrum_status writes_ones(const Args* args, void*, std::int64_t) {
  for (std::int64_t i = 0; i < args->dim[0]; ++i) args->out<float>(1)[i] = 1;
  return {};
}

fulcrum_status fails(const Args*, void*, std::int64_t) {
  return {FULCRUM_DEVICE_ERROR, "the device is on fire"};
}

int takes_nothing(const Args*) { return 0; }

void register_kernels() {
  static const bool once = [] {
    EXPECT_TRUE(backends::add("odd", {.op = "relu", .variant = "wrong", .run = writes_ones}).ok());
    EXPECT_TRUE(backends::add("odd", {.op = "relu", .variant = "failing", .run = fails}).ok());
    EXPECT_TRUE(backends::add(
                    "odd", {.op = "relu", .variant = "picky", .supports = takes_nothing, .run = writes_ones})
                    .ok());
    return true;
  }();
  (void)once;
}

struct InProcess {
  int code = 0;
  Json document;
};

InProcess bench_relu(const std::string& variants) {
  register_kernels();
  const Folder data;
  setenv("FULCRUM_DATA", data.path().c_str(), 1);
  const std::string file = data / "out.json";
  const std::vector<const char*> argv = {
      "fulcrum",        "bench",    "relu", "--shape",     "n=1000", "--backend", "odd,scalar", "--variant",
      variants.c_str(), "--budget", "0.1",  "--precision", "0.5",    "--json",    file.c_str()};
  testing::internal::CaptureStdout();
  const int code = run(static_cast<int>(argv.size()), argv.data());
  const std::string output = testing::internal::GetCapturedStdout();
  const auto document = json_parse(content(file), file);
  EXPECT_TRUE(document.ok()) << output;
  return {code, document.ok() ? *document : Json()};
}

TEST(Outcomes, AWrongResultHasNoTimeAndTheOthersAreStillMeasured) {
  const InProcess run = bench_relu("wrong,default");
  EXPECT_EQ(run.code, 5);
  ASSERT_EQ(run.document["results"].size(), 1u);
  EXPECT_EQ(run.document["results"][0]["backend"], "scalar");
  ASSERT_EQ(run.document["not_measured"].size(), 1u);
  EXPECT_EQ(run.document["not_measured"][0]["code"], "wrong_result");
  EXPECT_NE(run.document["not_measured"][0]["row"].get<std::string>().find("relu/odd/wrong"),
            std::string::npos);
}

TEST(Outcomes, AFailingKernelIsAnErrorOfItsRow) {
  const InProcess run = bench_relu("failing,default");
  EXPECT_EQ(run.code, 3);
  EXPECT_EQ(run.document["results"].size(), 1u);
  EXPECT_NE(run.document["not_measured"][0]["reason"].get<std::string>().find("on fire"), std::string::npos);
}

TEST(Outcomes, AKernelThatDoesNotTakeTheShapeIsSkippedAndSaidSo) {
  const InProcess run = bench_relu("picky,default");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.document["results"].size(), 1u);
  EXPECT_EQ(run.document["not_measured"][0]["code"], "unsupported");
}

}  // namespace
}  // namespace fulcrum::cli
