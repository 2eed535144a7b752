// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Run records: what a crash, a full disk, a second writer or a foreign file can do to them.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;
using test::TempFolder;

constexpr std::string_view kFirst = "{\"schema\":\"fulcrum.run/1\",\"type\":\"run\",\"n\":1}\n";
constexpr std::string_view kSecond = "{\"schema\":\"fulcrum.run/1\",\"type\":\"case\",\"text\":\"a\\nb\"}\n";

Json first() { return {{"type", "run"}, {"n", 1}}; }
Json second() { return {{"type", "case"}, {"text", "a\nb"}}; }

void make_record(const std::filesystem::path& path) {
  RunRecord record = RunRecord::create(path).value();
  ASSERT_TRUE(record.append(first()).ok());
  ASSERT_TRUE(record.append(second()).ok());
}

TEST(RunRecordTest, EveryLineSaysItsSchemaFirst) {
  const TempFolder folder;
  make_record(folder / "r");
  EXPECT_EQ(test::get(folder / "r"), std::string(kFirst) + std::string(kSecond));
  std::vector<Json> lines;
  RunRecord record = RunRecord::resume(folder / "r", lines).value();
  EXPECT_EQ(record.path(), folder / "r");
  // A line that was read can be written again: the schema is not doubled and moves to the front.
  ASSERT_TRUE(record.append(Json{{"type", "run"}, {"schema", "fulcrum.run/1"}, {"n", 1}}).ok());
  EXPECT_EQ(test::get(folder / "r"), std::string(kFirst) + std::string(kSecond) + std::string(kFirst));
}

TEST(RunRecordTest, ALineIsOnTheDiskWhenAppendReturns) {
  const TempFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    auto record = RunRecord::create(folder / "r");
    if (record.ok() && record->append(first()).ok() && record->append(second()).ok())
      ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  std::vector<Json> lines;
  ASSERT_TRUE(RunRecord::resume(folder / "r", lines).ok());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["text"], "a\nb");
}

TEST(RunRecordTest, CreateNeverOverwrites) {
  const TempFolder folder;
  test::put(folder / "r", "precious");
  const auto record = RunRecord::create(folder / "r");
  EXPECT_EQ(record.error().code, Code::environment);
  EXPECT_TRUE(
      contains(error_text(record), "exists already and is not overwritten (continue it with --resume"));
  EXPECT_EQ(test::get(folder / "r"), "precious");
  EXPECT_TRUE(contains(error_text(RunRecord::create(folder / "no/r")), "No such file"));
}

TEST(RunRecordTest, ACutAnywhereInTheLastLineLosesOnlyThatLine) {
  const TempFolder folder;
  const std::string whole = std::string(kFirst) + std::string(kSecond);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    test::put(folder / "r", whole.substr(0, size));
    std::vector<Json> lines = {Json("stale")};
    auto record = RunRecord::resume(folder / "r", lines);
    ASSERT_TRUE(record.ok()) << size << ": " << error_text(record);
    const std::size_t complete = size == whole.size() ? 2 : size >= kFirst.size() ? 1 : 0;
    ASSERT_EQ(lines.size(), complete) << size;
    const std::string kept = whole.substr(0, complete == 2   ? whole.size()
                                             : complete == 1 ? kFirst.size()
                                                             : 0);
    EXPECT_EQ(test::get(folder / "r"), kept) << size;
    ASSERT_TRUE(record->append(second()).ok());
    EXPECT_EQ(test::get(folder / "r"), kept + std::string(kSecond)) << size;
  }
}

TEST(RunRecordTest, ALastLineThatDoesNotReadIsDropped) {
  const TempFolder folder;
  for (const std::string& tail :
       {std::string("{\"schema\":\"fulcrum.run/1\",\"ty\n"), std::string(40, '\0'), std::string("garbage\n"),
        std::string("\n"), std::string(kSecond.substr(0, 30))}) {
    test::put(folder / "r", std::string(kFirst) + tail);
    std::vector<Json> lines;
    const auto record = RunRecord::resume(folder / "r", lines);
    ASSERT_TRUE(record.ok()) << error_text(record);
    EXPECT_EQ(lines.size(), 1u);
    EXPECT_EQ(test::get(folder / "r"), kFirst);
  }
}

TEST(RunRecordTest, ADamagedMiddleLineIsAnErrorThatNamesIt) {
  const TempFolder folder;
  const std::string damaged =
      std::string(kFirst) + "{\"schema\":\"fulcrum.run/1\",\"ty\n" + std::string(kSecond);
  test::put(folder / "r", damaged);
  std::vector<Json> lines;
  const auto record = RunRecord::resume(folder / "r", lines);
  EXPECT_EQ(record.error().code, Code::corrupt);
  EXPECT_TRUE(contains(record.error().message, "r: line 2: ")) << record.error().message;
  EXPECT_EQ(test::get(folder / "r"), damaged);
}

TEST(RunRecordTest, AForeignFileIsRefusedAndLeftAsItIs) {
  const TempFolder folder;
  const std::string table[] = {
      "hello",
      "hello\n",
      "a,b\n1,2\n",
      "{\"schema\":\"fulcrum.bench/1\"}\n",
      "{\"schema\":\"fulcrum.bench/1\"}",
      "{\"type\":\"run\"}\n",
      "[1]\n",
      std::string(kFirst) + "{\"other\":1}\n",
      std::string(kFirst) + "\n" + std::string(kSecond),
      std::string("\x7f") + "ELF\n\n",
  };
  for (const std::string& content : table) {
    test::put(folder / "r", content);
    std::vector<Json> lines;
    const auto record = RunRecord::resume(folder / "r", lines);
    ASSERT_FALSE(record.ok()) << content;
    EXPECT_EQ(record.error().code, Code::corrupt) << content;
    EXPECT_TRUE(contains(record.error().message, "line ")) << record.error().message;
    EXPECT_EQ(test::get(folder / "r"), content);
  }
}

TEST(RunRecordTest, ResumeNeedsAFile) {
  const TempFolder folder;
  std::vector<Json> lines;
  EXPECT_EQ(RunRecord::resume(folder / "absent", lines).error().code, Code::environment);
  EXPECT_FALSE(RunRecord::resume(folder.path(), lines).ok());
  EXPECT_FALSE(RunRecord::resume("/dev/null", lines).ok());
}

TEST(RunRecordTest, ASecondWriterIsKeptOut) {
  const TempFolder folder;
  std::vector<Json> lines;
  {
    RunRecord record = RunRecord::create(folder / "r").value();
    EXPECT_TRUE(contains(error_text(RunRecord::resume(folder / "r", lines)), "written by another run"));
    RunRecord moved = std::move(record);
    EXPECT_TRUE(moved.append(first()).ok());
    EXPECT_FALSE(RunRecord::resume(folder / "r", lines).ok());
  }
  EXPECT_TRUE(RunRecord::resume(folder / "r", lines).ok());
}

/// Files of this process end at `bytes` while it lives, as on a full disk: writes come up short, then fail.
class FullDisk {
 public:
  explicit FullDisk(std::size_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{bytes, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit old_{};
};

TEST(RunRecordTest, AFullDiskLeavesCompleteLinesAndTheRecordGoesOnLater) {
  for (std::size_t room = 0; room < kSecond.size(); ++room) {
    const TempFolder folder;
    RunRecord record = RunRecord::create(folder / "r").value();
    ASSERT_TRUE(record.append(first()).ok());
    Status status;
    {
      const FullDisk full(kFirst.size() + room);
      status = record.append(second());
    }
    ASSERT_FALSE(status.ok()) << room;
    EXPECT_EQ(status.error().code, Code::environment);
    EXPECT_FALSE(status.error().hint.empty());
    EXPECT_EQ(test::get(folder / "r"), kFirst) << room;
    EXPECT_TRUE(record.append(second()).ok());
    EXPECT_EQ(test::get(folder / "r"), std::string(kFirst) + std::string(kSecond));
  }
}

TEST(RunRecordTest, AMovedFromRecordRefusesToWrite) {
  const TempFolder folder;
  RunRecord record = RunRecord::create(folder / "r").value();
  const RunRecord moved = std::move(record);
  EXPECT_FALSE(record.append(first()).ok());
  RunRecord other = RunRecord::create(folder / "other").value();
  other = RunRecord::create(folder / "third").value();  // lets the old file go
  std::vector<Json> lines;
  EXPECT_TRUE(RunRecord::resume(folder / "other", lines).ok());
}

}  // namespace
}  // namespace fulcrum
