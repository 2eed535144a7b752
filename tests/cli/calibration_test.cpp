// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the executor has a table of this machine, as the start screen, doctor and bench --regret say it.
#include "cli/program.h"

namespace fulcrum::cli {
namespace {

/// A machine whose one op was measured.
class Calibrated : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome calibrated = fulcrum_in(data_, {"calibrate", "relu", "--budget", "0.2"});
    ASSERT_EQ(calibrated.code, 0) << calibrated.error;
    for (const auto& entry : std::filesystem::directory_iterator(data_ / "executor")) file_ = entry.path();
  }
  /// As if the kernels had been other ones then.
  void change_kernels() {
    std::string text = content(file_);
    const std::string key = "\"kernels\":\"";
    for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1))
      text[at + key.size()] = text[at + key.size()] == '0' ? '1' : '0';
    std::ofstream(file_, std::ios::binary) << text;
  }
  Folder data_;
  std::filesystem::path file_;
};

Json table_line(const Folder& data, std::string* said = nullptr) {
  const Outcome outcome = fulcrum_in(data, {"doctor", "--json", "-"});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  if (said) *said = outcome.error;
  const Json document = parsed(outcome.output);
  for (const Json& one : document["findings"]) {
    if (one["topic"] == "executor table") return one;
  }
  ADD_FAILURE() << "no line about the table in " << outcome.output;
  return Json{{"state", ""}, {"text", ""}, {"advice", ""}};
}

/// As if the terminal had no end: where a line breaks depends on the machine's name.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\n';
    if (!blank || line.empty() || line.back() != ' ') line += blank ? ' ' : c;
  }
  return line;
}

/// Far from enough for a result; what is said before it is what counts.
Outcome regret(const Folder& data) {
  return fulcrum_in(data, {"bench", "relu", "--regret", "--budget", "0.1"});
}

TEST(NotCalibrated, TheStartScreenDoctorAndRegretNameTheNextStep) {
  const Folder data;
  const Json line = table_line(data);
  EXPECT_EQ(line["state"], "note");
  EXPECT_TRUE(has(line["text"], "not calibrated")) << line;
  EXPECT_TRUE(has(line["advice"], "`fulcrum calibrate`")) << line;
  const Outcome welcome = fulcrum_in(data, {});
  EXPECT_TRUE(has(welcome.output, "`fulcrum calibrate` measures them")) << welcome.output;
  const Outcome scored = regret(data);
  EXPECT_TRUE(has(scored.error, "warning: ")) << scored.error;
  EXPECT_TRUE(has(scored.error, "not calibrated; run `fulcrum calibrate`")) << scored.error;
  EXPECT_TRUE(std::filesystem::is_empty(data.path()));
}

TEST_F(Calibrated, TheTableIsNamedWithItsAgeAndNothingIsLeftToDo) {
  const Json line = table_line(data_);
  EXPECT_EQ(line["state"], "ok");
  EXPECT_TRUE(line["text"].get<std::string>().starts_with("calibrated 20")) << line;
  EXPECT_EQ(line["advice"], "");
  const Outcome welcome = fulcrum_in(data_, {});
  EXPECT_TRUE(has(welcome.output, "the table calibrated 20")) << welcome.output;
  EXPECT_FALSE(has(welcome.output, "fulcrum calibrate")) << welcome.output;
  EXPECT_FALSE(has(regret(data_).error, "warning: the table")) << regret(data_).error;
}

TEST_F(Calibrated, ATableOfOtherKernelsIsCalledStale) {
  change_kernels();
  const Json line = table_line(data_);
  EXPECT_EQ(line["state"], "note");
  EXPECT_TRUE(has(line["text"], "kernels of 1 op have changed since")) << line;
  EXPECT_TRUE(has(line["advice"], "`fulcrum calibrate --stale`")) << line;
  const Outcome welcome = fulcrum_in(data_, {});
  EXPECT_TRUE(has(on_one_line(welcome.output), "run fulcrum calibrate")) << welcome.output;
  EXPECT_TRUE(has(regret(data_).error, "have changed since")) << regret(data_).error;
}

TEST_F(Calibrated, OneMoreOpLeavesAStaleOneStale) {
  change_kernels();
  const Json before = read(file_)["ops"][0];
  const Outcome one = fulcrum_in(data_, {"calibrate", "gelu", "--budget", "0.2"});
  ASSERT_EQ(one.code, 0) << one.error;
  const Json after = read(file_)["ops"];
  ASSERT_EQ(after.size(), 2u);
  EXPECT_EQ(after[1], before);
  EXPECT_TRUE(has(table_line(data_)["text"], "kernels of 1 op have changed since"));
}

TEST_F(Calibrated, WhatIsStaleOrMissingIsMeasuredAndThenNothingIsLeft) {
  change_kernels();
  const Outcome stale = fulcrum_in(data_, {"calibrate", "--stale", "--budget", "1", "--json", "-"});
  ASSERT_EQ(stale.code, 0) << stale.error;
  EXPECT_EQ(table_line(data_)["state"], "ok");
  Json ops = read(file_)["ops"];
  EXPECT_GT(ops.size(), 20u);
  // One of them goes: the others must stay as they are.
  Json fewer = read(file_);
  fewer["ops"] = Json::array();
  for (const Json& row : ops) {
    if (row["op"] != "gelu") fewer["ops"].push_back(row);
  }
  std::ofstream(file_, std::ios::binary) << json_text(fewer);
  const Outcome one = fulcrum_in(data_, {"calibrate", "--stale", "--budget", "0.2", "--json", "-"});
  ASSERT_EQ(one.code, 0) << one.error;
  for (const Json& row : parsed(one.output)["rows"]) EXPECT_EQ(row["op"], "gelu");
  for (const Json& row : read(file_)["ops"]) {
    if (row["op"] == "gelu") continue;
    EXPECT_NE(std::find(ops.begin(), ops.end(), row), ops.end()) << row["op"];
  }
  const std::string kept = content(file_);
  const Outcome none = fulcrum_in(data_, {"calibrate", "--stale"});
  EXPECT_EQ(none.code, 0) << none.error;
  EXPECT_TRUE(has(none.output, "nothing is stale")) << none.output;
  EXPECT_EQ(content(file_), kept);
  const Outcome json = fulcrum_in(data_, {"calibrate", "--stale", "--json", "-"});
  EXPECT_EQ(parsed(json.output)["rows"].size(), 0u) << json.output;
}

TEST_F(Calibrated, StaleOpsAreNotNamed) {
  const Outcome both = fulcrum_in(data_, {"calibrate", "relu", "--stale"});
  EXPECT_EQ(both.code, 2) << both.error;
  EXPECT_TRUE(has(both.error, "--stale finds the ops itself")) << both.error;
}

TEST_F(Calibrated, ADamagedTableIsNamedAndCountsAsNone) {
  std::ofstream(file_, std::ios::binary) << "{";
  std::string said;
  const Json line = table_line(data_, &said);
  EXPECT_EQ(line["state"], "note");
  EXPECT_TRUE(has(line["advice"], "`fulcrum calibrate`")) << line;
  EXPECT_TRUE(has(said, file_.filename().string())) << said;
}

}  // namespace
}  // namespace fulcrum::cli
