// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a program with an injected library, without a GPU: shells stand in for programs, files that they copy for what
// the library would write.
#include <dlfcn.h>
#include <fcntl.h>
#include <fulcrum/trace.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "trace/every_record.h"

namespace fulcrum::trace {
namespace {

namespace fs = std::filesystem;

bool run_notes(const GpuTrace& trace, std::string_view words) {
  return std::any_of(trace.notes.begin(), trace.notes.end(),
                     [&](const std::string& note) { return note.find(words) != note.npos; });
}

/// Any library that can be preloaded.
std::string some_library() {
  Dl_info found{};
  EXPECT_NE(::dladdr(::dlsym(RTLD_DEFAULT, "getpid"), &found), 0);
  return fs::absolute(found.dli_fname).string();
}

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

class TraceRun : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("fulcrum_run_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Options shell(const std::string& script) const {
    Options options;
    options.command = {"/bin/sh", "-c", script, "sh", folder_.string()};
    options.injector = some_library();
    return options;
  }
  std::string written(const char* name) const {
    const auto text = read_file(folder_ / name);
    return text.ok() ? *text : "";
  }
  /// A process's file that begins that long after now.
  std::string trace_file(std::int64_t after_ns) const {
    GpuTrace trace = test::every_record();
    trace.begin_ns = monotonic_ns() + after_ns;
    trace.processes.resize(1);
    std::string bytes = bytes_of(trace);
    return bytes;
  }
  fs::path folder_;
};

TEST_F(TraceRun, TheProgramGetsWhatTheLibraryReads) {
  Options options =
      shell("env > $1/env; echo $LD_PRELOAD > $1/preload; echo $FULCRUM_TRACE_FOLDER > $1/where");
  options.full = true;
  options.counters = true;
  options.managed = false;
  options.budget_share = 0.125;
  options.size_limit_bytes = 5'000'000;
  options.costs.record_seconds = 1.5e-6;
  options.costs.call_record_seconds = 2e-7;
  options.environment = {{"COLOUR", "blue"}, {"LD_PRELOAD", some_library()}};
  const auto trace = run(options);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  const std::string env = "\n" + written("env");
  for (const std::string& line :
       {"CUDA_INJECTION64_PATH=" + some_library(), std::string("FULCRUM_TRACE_FULL=1"),
        std::string("FULCRUM_TRACE_BUDGET=0.125"), std::string("FULCRUM_TRACE_LIMIT=5000000"),
        std::string("FULCRUM_TRACE_COUNTERS=1"), std::string("FULCRUM_TRACE_HASH=0"),
        std::string("FULCRUM_TRACE_MANAGED=0"), std::string("FULCRUM_TRACE_RECORD_NS=1500"),
        std::string("FULCRUM_TRACE_CALL_NS=200"), std::string("COLOUR=blue")}) {
    EXPECT_NE(env.find("\n" + line + "\n"), std::string::npos) << line << env;
  }
  EXPECT_EQ(written("preload"), some_library() + ":" + some_library() + "\n")
      << "the user's own stays, in front";
  std::string where = written("where");
  ASSERT_GT(where.size(), 1u);
  where.pop_back();
  EXPECT_FALSE(fs::exists(where)) << "a temporary folder is gone afterwards";
}

TEST_F(TraceRun, AProgramThatFailsIsATraceWithItsExitCode) {
  const auto failed = run(shell("exit 7"));
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->exit_code, 7);
  const auto killed = run(shell("kill -TERM $$"));
  ASSERT_TRUE(killed.ok());
  EXPECT_EQ(killed->exit_code, 128 + 15);
  EXPECT_TRUE(killed->ops.empty());
  EXPECT_TRUE(run_notes(*killed, "GPU")) << "why there is nothing";
  EXPECT_GT(killed->wall_ns, 0);
  EXPECT_GT(killed->begin_ns, 0);
}

TEST_F(TraceRun, WhatCannotBeStartedIsAnError) {
  Options options = shell("");
  options.command = {"no-such-program-anywhere"};
  const auto trace = run(options);
  ASSERT_FALSE(trace.ok());
  EXPECT_NE(trace.error().message.find("no-such-program-anywhere"), std::string::npos);
  EXPECT_FALSE(trace.error().hint.empty());
  options.command = {};
  EXPECT_EQ(run(options).error().code, Code::usage);
  options = shell("true");
  options.injector = "/nowhere/libinject.so";
  EXPECT_EQ(run(options).error().code, Code::not_found);
  options = shell("true");
  options.budget_share = 0;
  EXPECT_EQ(run(options).error().code, Code::usage);
}

TEST_F(TraceRun, TheFilesOfItsProcessesAreOneTrace) {
  std::ofstream(folder_ / "a", std::ios::binary) << trace_file(1'000'000'000'000);
  std::ofstream(folder_ / "b", std::ios::binary) << trace_file(1'001'000'000'000);
  fs::create_directories(folder_ / "kept");
  std::ofstream(folder_ / "kept" / "old.ftrace", std::ios::binary) << trace_file(-1'000'000'000);
  Options options = shell("cp $1/a $1/b $FULCRUM_TRACE_FOLDER");
  options.folder = (folder_ / "kept").string();
  std::int64_t largest = 0;
  options.progress = [&](const Progress& progress) { largest = std::max(largest, progress.file_bytes); };
  const auto trace = run(options);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->processes.size(), 2u) << "what an earlier run left is not of this one";
  EXPECT_GT(trace->ops.size(), test::every_record().ops.size());
  EXPECT_GT(largest, 1000);
  EXPECT_TRUE(fs::exists(folder_ / "kept" / "a")) << "a folder that was named is kept";
  EXPECT_NE(trace->command.find("/bin/sh -c cp"), std::string::npos);
}

TEST_F(TraceRun, AStopIsPassedOnToTheProgram) {
  std::atomic<bool> stop{false};
  Options options = shell("exec sleep 60");
  options.stop = &stop;
  options.progress = [&](const Progress&) { stop.store(true); };
  const auto trace = run(options);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(trace->exit_code == 128 + 2 || trace->exit_code == 128 + 15) << trace->exit_code;
}

TEST_F(TraceRun, SomebodyElseMayRunIt) {
  Options options = shell("true");
  std::vector<std::pair<std::string, std::string>> given;
  options.run_with = [&](const std::vector<std::string>& command, const auto& environment, int& exit_code) {
    EXPECT_EQ(command[0], "/bin/sh");
    given = environment;
    exit_code = 3;
    return Status{};
  };
  const auto trace = run(options);
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace->exit_code, 3);
  const auto is_folder = [](const auto& entry) { return entry.first == "FULCRUM_TRACE_FOLDER"; };
  EXPECT_EQ(std::count_if(given.begin(), given.end(), is_folder), 1);
}

/// The real library in a program whose CUPTI is a fake.
class TraceInjected : public TraceRun {
 protected:
  Result<GpuTrace> traced(const std::string& fake) {
    const fs::path programs = fs::path(FULCRUM_BINARY_DIR) / "tests/trace_programs";
    Options options;
    options.injector = std::string(FULCRUM_BINARY_DIR) + "/lib/fulcrum/libfulcrum_inject.so";
    options.command = {(programs / "injected").string(), "1000", "return"};
    options.environment = {{"FAKE_CUPTI_PATH", (programs / "fake/libcupti.so.13").string()},
                           {"FAKE_CUPTI", fake}};
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    options.standard_output = options.standard_error = nowhere;
    auto trace = run(options);
    ::close(nowhere);
    return trace;
  }
  void SetUp() override {
    TraceRun::SetUp();
    if (!fs::exists(std::string(FULCRUM_BINARY_DIR) + "/lib/fulcrum/libfulcrum_inject.so"))
      GTEST_SKIP() << "SKIPPED: built without CUPTI's headers";
  }
};

TEST_F(TraceInjected, WhatTheLibraryWritesIsReadWithNothingMissing) {
  auto trace = traced("");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->ops.size(), 1000u);
  EXPECT_EQ(trace->calls.size(), 1000u);
  EXPECT_EQ(trace->shapes.size(), 2u);
  EXPECT_EQ(trace->devices.at(0).sms, 58);
  // Where there is no GPU there are no clocks.
  std::erase_if(trace->notes, [](const std::string& note) { return note.find("clocks") != note.npos; });
  EXPECT_TRUE(trace->notes.empty()) << trace->notes[0];
  ASSERT_EQ(trace->processes.size(), 1u);
  EXPECT_TRUE(trace->processes[0].complete);
  EXPECT_EQ(trace->processes[0].end, "exit");
  EXPECT_NE(trace->processes[0].command.find("injected 1000 return"), std::string::npos);
  for (const GpuTrace::Op& op : trace->ops) {
    ASSERT_GE(op.begin_ns, 0);
    ASSERT_LE(op.end_ns, trace->wall_ns);
  }
  EXPECT_FALSE(trace->binaries.empty());
}

TEST_F(TraceInjected, WhoHoldsCuptiIsANote) {
  const auto trace = traced("conflict");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_TRUE(trace->ops.empty());
  EXPECT_EQ(trace->processes.at(0).profiler, "CUPTI for Other Tool");
  EXPECT_TRUE(run_notes(*trace, "CUPTI for Other Tool holds CUPTI"));
}

TEST(Capabilities, EachSaysWhatIsThereOrWhatToDo) {
  const std::vector<Capability> all = capabilities();
  ASSERT_EQ(all.size(), 4u);
  for (const Capability& one : all) EXPECT_FALSE(one.detail.empty()) << one.name;
  EXPECT_EQ(all[0].name, "injection library");
  EXPECT_TRUE(all[0].there || !all[0].hint.empty());
}

}  // namespace
}  // namespace fulcrum::trace
