// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Running commands: streams, exit codes, signals, costs.
#include <fcntl.h>

#include <algorithm>
#include <csignal>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;
using test::TempFolder;

Result<ProcessResult> shell(const std::string& script, const ProcessOptions& options = {}) {
  return run_process({"/bin/sh", "-c", script}, options);
}

TEST(RunProcess, GivesBothStreamsAndTheExitCode) {
  const ProcessResult result = shell("echo out; echo err >&2; exit 7").value();
  EXPECT_EQ(result.standard_output, "out\n");
  EXPECT_EQ(result.standard_error, "err\n");
  EXPECT_EQ(result.exit_code, 7);
  EXPECT_GT(result.wall_seconds, 0);
}

TEST(RunProcess, PassesArgumentsAsTheyAre) {
  EXPECT_EQ(run_process({"printf", "%s|", "a b", "", "$HOME", "\"'"}).value().standard_output,
            "a b||$HOME|\"'|");
}

TEST(RunProcess, LargeOutputOnBothStreamsAndLargeInputDoNotBlock) {
  const std::string megabyte(1 << 20, 'x');
  const ProcessResult both =
      shell("head -c 1048576 /dev/zero | tr '\\0' x >&2; head -c 1048576 /dev/zero | tr '\\0' x").value();
  EXPECT_EQ(both.standard_output, megabyte);
  EXPECT_EQ(both.standard_error, megabyte);
  const ProcessResult echoed = run_process({"cat"}, {.input = megabyte}).value();
  EXPECT_EQ(echoed.standard_output, megabyte);
}

TEST(RunProcess, ACommandThatDoesNotReadItsInputDoesNotEndUs) {
  EXPECT_EQ(run_process({"true"}, {.input = std::string(1 << 20, 'x')}).value().exit_code, 0);
  EXPECT_EQ(shell("exec 0<&-; exit 3", {.input = std::string(1 << 20, 'x')}).value().exit_code, 3);
}

TEST(RunProcess, WithoutInputTheCommandReadsNothing) {
  EXPECT_EQ(run_process({"cat"}).value().standard_output, "");
  EXPECT_EQ(run_process({"cat"}, {.input = ""}).value().standard_output, "");
}

TEST(RunProcess, WithoutCaptureTheOutputIsDropped) {
  const ProcessResult result =
      shell("readlink /proc/$$/fd/1; echo err >&2; exit 4", {.capture = false}).value();
  EXPECT_EQ(result.standard_output + result.standard_error, "");
  EXPECT_EQ(result.exit_code, 4);
}

TEST(RunProcess, ASignalIsItsNumberAboveOneHundredTwentyEight) {
  EXPECT_EQ(shell("kill -9 $$").value().exit_code, 128 + SIGKILL);
  EXPECT_EQ(shell("kill -TERM $$").value().exit_code, 128 + SIGTERM);
}

TEST(RunProcess, EnvironmentIsOursWithTheChanges) {
  const test::ScopedVariable ours("FULCRUM_TEST_OURS", "ours"), replaced("FULCRUM_TEST_REPLACED", "old");
  const ProcessOptions options{
      .environment = {{"FULCRUM_TEST_REPLACED", "new"}, {"FULCRUM_TEST_ADDED", "a=b"}}};
  EXPECT_EQ(shell("echo $FULCRUM_TEST_OURS $FULCRUM_TEST_REPLACED $FULCRUM_TEST_ADDED", options)
                .value()
                .standard_output,
            "ours new a=b\n");
}

TEST(RunProcess, ACommandThatCannotStartIsAnErrorWithAHint) {
  const TempFolder folder;
  EXPECT_EQ(error_text(run_process({"fulcrum-no-such-command"})),
            "environment: cannot run 'fulcrum-no-such-command': command not found (check the spelling, give "
            "a path, or "
            "add its folder to PATH)");
  EXPECT_TRUE(contains(error_text(run_process({(folder / "absent").string()})), "command not found"));
  test::put(folder / "data", "not a program");
  EXPECT_TRUE(contains(error_text(run_process({(folder / "data").string()})), "chmod +x"));
  std::filesystem::permissions(folder / "data", std::filesystem::perms::owner_all);
  EXPECT_TRUE(contains(error_text(run_process({(folder / "data").string()})), "#!/bin/sh"));
  EXPECT_TRUE(contains(error_text(run_process({folder.path().string()})), "Permission denied"));
  EXPECT_EQ(run_process({}).error().code, Code::usage);
  EXPECT_EQ(run_process({""}).error().code, Code::usage);
}

TEST(RunProcess, ADescendantThatKeepsTheStreamDoesNotHoldUsUp) {
  const TempFolder folder;
  // The background process waits for a file that appears only after run_process has returned.
  const std::string marker = (folder / "marker").string();
  // Ends with the folder too: the marker may be gone with it before the loop has looked.
  const std::string wait = "(while [ -d " + (folder / ".").string() + " ] && [ ! -e " + marker +
                           " ]; do sleep 0.01; done) & echo started";
  EXPECT_EQ(shell(wait).value().standard_output, "started\n");
  test::put(folder / "marker", "");
}

TEST(RunProcess, NoDescriptorOfOursLeaksIntoTheCommand) {
  int inherited = 0;  // whoever started this test may have left some open for every program
  for (int number = 3; number < 1024; ++number) {
    const int flags = ::fcntl(number, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++inherited;
  }
  const ProcessResult result = run_process({"ls", "/proc/self/fd"}, {.input = "x"}).value();
  const auto listed = std::count(result.standard_output.begin(), result.standard_output.end(), '\n');
  EXPECT_EQ(listed, 3 + 1 + inherited) << result.standard_output;  // three streams and the listing itself
}

TEST(RunProcess, PeakMemoryIsTheCommandsOwnOrNotKnown) {
  const ProcessResult large =
      run_process({"dd", "if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"}).value();
  ASSERT_EQ(large.exit_code, 0) << large.standard_error;
  EXPECT_GE(large.peak_bytes, 256 << 20);
  const std::string ballast(std::size_t{64} << 20, 'x');  // our own peak is now far above that of true
  ASSERT_EQ(ballast.back(), 'x');
  EXPECT_EQ(run_process({"true"}).value().peak_bytes, 0);
}

}  // namespace
}  // namespace fulcrum
