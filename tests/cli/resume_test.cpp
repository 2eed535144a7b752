// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A run that was killed loses nothing finished, and --resume measures only what is left.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <csignal>

#include <chrono>
#include <thread>

#include "cli/program.h"

extern char** environ;

namespace fulcrum::cli {
namespace {

constexpr std::size_t kShapes = 8;

/// Cases that cannot reach their precision, so that each lasts as long as its budget.
std::vector<std::string> long_run() {
  std::vector<std::string> arguments = {"bench",       "relu", "--backend", "scalar",
                                        "--precision", "1e-9", "--budget",  "0.3"};
  for (std::size_t i = 1; i <= kShapes; ++i) {
    arguments.push_back("--shape");
    arguments.push_back("n=" + std::to_string(1000 * i));
  }
  return arguments;
}

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::size_t count(const std::filesystem::path& record, const std::string& type) {
  std::size_t found = 0;
  for (const std::string& line : lines_of(content(record))) {
    const auto json = json_parse(line, "record");
    if (json.ok() && json->value("type", "") == type) ++found;
  }
  return found;
}

/// Starts the program and sends it a signal as soon as the record holds a finished case.
int run_until_one_case_is_done(const Folder& data, const std::filesystem::path& record, int signal) {
  const auto arguments = with(long_run(), {"--record", record});
  std::vector<std::string> words = with({FULCRUM_PROGRAM}, arguments);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("FULCRUM_DATA", data.path().c_str(), 1);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, FULCRUM_PROGRAM, &quiet, nullptr, argv.data(), environ), 0);
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  while (count(record, "estimate") == 0) {
    if (waitpid(child, &status, WNOHANG) == child) return status;  // ended by itself: the caller will notice
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(child, signal);
  waitpid(child, &status, 0);
  return status;
}

void expect_resumable(const Folder& data, const std::filesystem::path& record) {
  const std::size_t before = count(record, "estimate");
  ASSERT_GE(before, 1u);
  ASSERT_LT(before, kShapes);
  // What to measure is in the record.
  const Outcome outcome = fulcrum_in(data, {"bench", "--resume", record, "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const auto json = json_parse(outcome.output, "output");
  ASSERT_TRUE(json.ok()) << outcome.output;
  ASSERT_EQ((*json)["results"].size(), kShapes);
  for (const Json& row : (*json)["results"]) EXPECT_NE(row["stop_reason"], "interrupted");
  EXPECT_EQ((*json)["results"][2]["shape"]["n"], 3000);
}

TEST(Resume, AKilledRunGoesOnWhereItEnded) {
  const Folder data;
  const auto record = data / "run.jsonl";
  const int status = run_until_one_case_is_done(data, record, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(count(record, "end"), 0u);
  const std::string finished = content(record);
  expect_resumable(data, record);
  EXPECT_EQ(content(record).rfind(finished.substr(0, finished.rfind('\n') + 1), 0), 0u)
      << "a finished line was changed";
  EXPECT_EQ(count(record, "estimate"), kShapes) << "a finished case was measured again";
  EXPECT_EQ(count(record, "end"), 1u);
}

TEST(Resume, CtrlCKeepsWhatWasMeasuredAndSaysHowToGoOn) {
  const Folder data;
  const auto record = data / "run.jsonl";
  const int status = run_until_one_case_is_done(data, record, SIGINT);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(count(record, "end"), 1u);
  EXPECT_NE(content(record).find("\"status\":\"interrupted\""), std::string::npos);
  const Outcome outcome = fulcrum_in(data, {"bench", "--resume", record, "--json", "-"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ((*json_parse(outcome.output, "output"))["results"].size(), kShapes);
}

TEST(Resume, AFinishedRunIsShownAgainWithoutMeasuring) {
  const Folder data;
  ASSERT_EQ(fulcrum_in(data, quick_bench({"--record", data / "run.jsonl", "--json", data / "a.json"})).code,
            0);
  ASSERT_EQ(fulcrum_in(data, {"bench", "--resume", data / "run.jsonl", "--json", data / "b.json"}).code, 0);
  EXPECT_EQ(content(data / "a.json"), content(data / "b.json"));
  EXPECT_EQ(count(data / "run.jsonl", "estimate"), 1u);
}

TEST(Resume, ACutOffLastLineIsDroppedAndMeasuredAgain) {
  const Folder data;
  ASSERT_EQ(fulcrum_in(data, quick_bench({"--record", data / "run.jsonl"})).code, 0);
  const std::string whole = content(data / "run.jsonl");
  const std::size_t estimate = whole.find("\"type\":\"estimate\"");
  std::ofstream(data / "cut.jsonl") << whole.substr(0, estimate + 30);
  EXPECT_EQ(fulcrum_in(data, {"bench", "--resume", data / "cut.jsonl"}).code, 0);
  EXPECT_EQ(count(data / "cut.jsonl", "estimate"), 1u);
}

TEST(Resume, ForeignAndDamagedFilesAreRefusedAndLeftAlone) {
  const Folder data;
  ASSERT_EQ(fulcrum_in(data, quick_bench({"--record", data / "run.jsonl"})).code, 0);
  const auto lines = lines_of(content(data / "run.jsonl"));
  std::string other_machine = content(data / "run.jsonl");
  const std::size_t id = other_machine.find("\"machine\":{\"id\":\"") + 17;
  other_machine.replace(id, other_machine.find('"', id) - id, "another");
  const std::pair<std::string, std::string> files[] = {
      {"text.jsonl", "hello\nworld\n"},
      {"empty.jsonl", ""},
      {"other.jsonl", "{\"schema\":\"other.run/1\"}\n"},
      {"headless.jsonl", lines.at(1) + "\n" + lines.at(2) + "\n"},
      {"damaged.jsonl", lines.at(0) + "\n{broken\n" + lines.at(2) + "\n"},
      {"machine.jsonl", other_machine},
      {"types.jsonl", "{\"schema\":\"fulcrum.run/1\",\"type\":\"run\",\"machine\":7,\"argv\":3}\n"},
  };
  for (const auto& [name, text] : files) {
    std::ofstream(data / name) << text;
    const Outcome outcome = fulcrum_in(data, quick_bench({"--resume", data / name}));
    EXPECT_EQ(outcome.code, 3) << name << ": " << outcome.error;
    EXPECT_EQ(lines_of(outcome.error).size(), 2u) << name << ": " << outcome.error;
    EXPECT_EQ(content(data / name), text) << name;
  }
}

}  // namespace
}  // namespace fulcrum::cli
