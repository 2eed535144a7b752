// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The command machine beside the long measurement: shipped profiles, and the GPU half with a device that follows a
// script.
#include "cli/program.h"

namespace fulcrum::cli {
namespace {

const Variables kScripted = {{"FULCRUM_MODULE_PATH", FULCRUM_TEST_MODULE_DIR "/scripted"},
                             {"CUDA_VISIBLE_DEVICES", ""}};

TEST(Machine, ListsAndShowsTheShippedDevices) {
  const Folder data;
  const Outcome list = fulcrum_in(data, {"machine", "--list"});
  EXPECT_TRUE(has(list.output, "rtx3060")) << list.output;
  EXPECT_TRUE(has(list.output, "shipped with fulcrum")) << list.output;
  const Outcome show = fulcrum_in(data, {"machine", "--show", "a100"});
  ASSERT_EQ(show.code, 0) << show.error;
  EXPECT_TRUE(has(show.output, "108 SMs")) << show.output;
  EXPECT_TRUE(has(show.output, "(datasheet)")) << show.output;
  EXPECT_TRUE(has(show.output, "(assumed)")) << show.output;
  EXPECT_TRUE(has(show.output, "note: not measured")) << show.output;
}

TEST(Machine, ComparesTheGpusOfTwoProfiles) {
  const Outcome outcome = fulcrum({"machine", "--compare", "a100", "h100"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "GPU hbm_copy")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "GPU fp16")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "link pinned_h2d, large copies")) << outcome.output;
}

TEST(Machine, MeasuresTheGpuAloneAndSavesItAsADevice) {
  const Folder data;
  const Outcome measured = fulcrum_in(
      data,
      {"machine", "--only", "gpu", "--name", "scripted", "--budget", "0.01", "--json", data / "gpu.json"},
      kScripted);
  ASSERT_EQ(measured.code, 0) << measured.error;
  EXPECT_TRUE(has(measured.output, "Scripted GPU")) << measured.output;
  const Json profile = parsed(content(data / "gpu.json"));
  EXPECT_EQ(profile["id"], "scripted");
  EXPECT_EQ(profile["name"], "Scripted GPU");
  EXPECT_EQ(profile["driver"], "999.1");
  EXPECT_TRUE(profile["written_by"].get<std::string>().starts_with("fulcrum ")) << profile["written_by"];
  EXPECT_GT(profile["gpus"][0]["rates"]["hbm_read"]["value"], 3.9e12);
  EXPECT_FALSE(profile["notes"].empty());
  EXPECT_EQ(parsed(fulcrum_in(data, {"machine", "--show", "scripted", "--json", "-"}).output), profile);
}

TEST(Machine, MeasuringTheGpuAloneKeepsWhatIsKnownOfTheCpu) {
  const Folder data;
  const Outcome first = fulcrum_in(
      data, {"machine", "--only", "cpu", "--budget", "0.1", "--json", data / "cpu.json"}, kScripted);
  ASSERT_EQ(first.code, 0) << first.error;
  const Json cpu = parsed(content(data / "cpu.json"));
  EXPECT_TRUE(cpu["gpus"].empty());
  ASSERT_EQ(fulcrum_in(data, {"machine", "--only", "gpu", "--budget", "0.01"}, kScripted).code, 0);
  const Json both = parsed(fulcrum_in(data, {"machine", "--show", "this", "--json", "-"}).output);
  EXPECT_EQ(both["cpu"], cpu["cpu"]);
  EXPECT_EQ(both["gpus"].size(), 1u);
}

TEST(Machine, WithoutAGpuOnlyGpuIsAnErrorThatSaysWhatToDo) {
  const Outcome outcome = fulcrum({"machine", "--only", "gpu"}, {{"CUDA_VISIBLE_DEVICES", ""}});
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_TRUE(has(outcome.error, "fulcrum doctor")) << outcome.error;
}

TEST(Machine, ABenchDocumentNamesTheGpuAndItsDriver) {
  const Folder data;
  const Outcome bench = fulcrum_in(data, quick_bench({"--json", "-"}), kScripted);
  ASSERT_EQ(bench.code, 0) << bench.error;
  const Json json = parsed(bench.output);
  EXPECT_EQ(json["machine"]["gpu"], "Scripted GPU");
  EXPECT_EQ(json["machine"]["driver"], "999.1");
}

}  // namespace
}  // namespace fulcrum::cli
