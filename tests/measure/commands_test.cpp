// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole commands. Real processes, a fake clock, no word about how long they take.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/fake_clock.h"

namespace fulcrum::measure {
namespace {

using testing::FakeClock;

Command shell(std::string script) { return Command{.name = script, .argv = {"/bin/sh", "-c", script}}; }

// A clock that moves 10 ms at each read, so that every process seems to take as long and few samples are
// planned.
class Commands : public ::testing::Test {
 protected:
  FakeClock clock_{1e-9, 0.01};
  Config config_{.precision = 0.01, .budget_seconds = 2, .clock = clock_.clock()};
};

bool has_flag(const Timing& timing, std::string_view flag) {
  return std::find(timing.flags.begin(), timing.flags.end(), flag) != timing.flags.end();
}

TEST_F(Commands, EachCountedRunIsAProcessWithItsExitCode) {
  const auto result = time_command(shell("exit 0"), config_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->name, "exit 0");
  EXPECT_EQ(result->timing.calls_per_sample, 1);
  EXPECT_EQ(static_cast<std::int64_t>(result->exit_codes.size()), result->timing.samples);
  EXPECT_FALSE(has_flag(result->timing, "fast_command"));
}

TEST_F(Commands, AFailingCommandIsAnErrorWithAHint) {
  const auto result = time_command(shell("exit 3"), config_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("3"), std::string::npos);
  EXPECT_NE(result.error().hint.find("--ignore-failure"), std::string::npos);
}

TEST_F(Commands, FailuresCanBeIgnoredAndAreStillRecorded) {
  Command command = shell("exit 3");
  command.ignore_failure = true;
  const auto result = time_command(command, config_);
  ASSERT_TRUE(result.ok());
  for (const int code : result->exit_codes) EXPECT_EQ(code, 3);
}

TEST_F(Commands, AMissingProgramIsAnError) {
  EXPECT_FALSE(time_command(Command{.name = "none", .argv = {"/no/such/program"}}, config_).ok());
  EXPECT_EQ(time_command(Command{}, config_).error().code, Code::usage);
}

TEST_F(Commands, PreparationAndWarmUpRunAsOftenAsAsked) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("fulcrum_commands_test_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string runs = (folder / "runs").string(), prepared = (folder / "prepared").string();
  Command command = shell("echo x >> " + runs);
  command.prepare = "echo x >> " + prepared;
  command.warmup_runs = 4;
  const auto result = time_command(command, config_);
  ASSERT_TRUE(result.ok());
  const auto lines = [](const std::string& path) {
    const auto text = read_file(path);
    return text.ok() ? std::count(text->begin(), text->end(), '\n') : -1;
  };
  EXPECT_EQ(lines(runs), static_cast<std::int64_t>(result->timing.raw.size()));
  EXPECT_EQ(lines(prepared), lines(runs));
  const auto& raw = result->timing.raw;
  EXPECT_EQ(std::count_if(raw.begin(), raw.end(), [](const Sample& s) { return s.phase == 0; }), 4);
  std::filesystem::remove_all(folder);
}

TEST_F(Commands, AFailingPreparationIsAnError) {
  Command command = shell("exit 0");
  command.prepare = "exit 1";
  const auto result = time_command(command, config_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("preparation"), std::string::npos);
}

TEST_F(Commands, ShortCommandsAndSlowFirstRunsAreFlagged) {
  int reads = 0;
  const Clock scripted{.now =
                           [&, now = 0.0]() mutable {
                             now += ++reads == 1 ? 0 : reads < 40 ? 1e-2 : 1e-3;
                             return now;
                           },
                       .resolution_seconds = 1e-9,
                       .read_seconds = 1e-9};
  config_.clock = &scripted;
  const auto result = time_command(shell("exit 0"), config_);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(has_flag(result->timing, "fast_command"));
  EXPECT_TRUE(has_flag(result->timing, "first_run_outlier"));
}

TEST_F(Commands, TwoCommandsAreComparedRunByRun) {
  const auto result = compare_commands(shell("exit 0"), shell("true"), config_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->a, "exit 0");
  EXPECT_EQ(result->b, "true");
  EXPECT_GT(result->rounds, 0);
  EXPECT_FALSE(compare_commands(shell("exit 0"), shell("exit 9"), config_).ok());
}

}  // namespace
}  // namespace fulcrum::measure
