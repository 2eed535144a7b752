// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How a recording begins and ends: what cannot be started, what is stopped, attached to, or limited.
#include "record/session.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "record/recording.h"

namespace fulcrum::record {
namespace {

class RecordSession : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
    if (!libdw()) GTEST_SKIP() << "SKIPPED: " << libdw_text();
  }
};

TEST_F(RecordSession, ACommandThatIsNotThereIsAnErrorWithItsName) {
  Options options = run_of("no_such_program");
  const auto profile = record(options);
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, Code::environment);
  EXPECT_NE(profile.error().message.find("no_such_program"), std::string::npos);
  EXPECT_FALSE(profile.error().hint.empty());
}

TEST_F(RecordSession, AProcessThatIsNotThereIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  Options options;
  options.pid = child;
  const auto profile = record(options);
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code, Code::not_found);
}

TEST_F(RecordSession, NeitherCommandNorProcessOrBothIsAnError) {
  EXPECT_EQ(record(Options{}).error().code, Code::usage);
  Options both = run_of("shares");
  both.pid = 1;
  EXPECT_EQ(record(both).error().code, Code::usage);
  Options fast = run_of("shares");
  fast.rate_hz = 1e6;
  EXPECT_EQ(record(fast).error().code, Code::usage);
}

TEST_F(RecordSession, AProgramThatASignalEndedHas128AndItsNumber) {
  Options options = run_of("shares");
  options.command = {"/bin/sh", "-c", "kill -SEGV $$"};
  const auto profile = record(options);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->exit_code, 128 + SIGSEGV);
}

TEST_F(RecordSession, TheStopFlagEndsTheProgramAndKeepsWhatThereIs) {
  std::atomic<bool> stop{false};
  Options options = run_of("shares", {"1000000000"});
  options.stop = &stop;
  options.progress = [&](const Progress& progress) { stop = progress.samples > 50; };
  const auto profile = record(options);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->exit_code, 128 + SIGINT);
  EXPECT_GT(profile->samples.size(), 50u);
  EXPECT_GT(summarise(*profile).share("main"), 0.9);
}

TEST_F(RecordSession, AnAttachedProgramIsSeenWithItsThreadsAndLeftAlone) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string path = program("threads");
    if (!::freopen("/dev/null", "w", stdout)) ::_exit(1);
    ::execl(path.c_str(), path.c_str(), "1000000000", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  // Until it has its three threads.
  for (int i = 0; i < 1000 && threads_of(child).size() < 4; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::atomic<bool> stop{false};
  Options options;
  options.pid = child;
  options.stop = &stop;
  options.progress = [&](const Progress& progress) { stop = progress.samples > 200; };
  const auto profile = record(options);
  const bool alive = ::kill(child, 0) == 0 && ::waitpid(child, nullptr, WNOHANG) == 0;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_TRUE(alive);
  const Recording r = summarise(*profile);
  EXPECT_GT(r.samples, 200);
  EXPECT_GT(r.share("thread_work_60"), 0);
  EXPECT_GT(r.share("thread_work_30"), 0);
  EXPECT_GT(r.share("thread_work_10"), 0);
  EXPECT_GT(r.share("start_thread"), 0.97);
  EXPECT_LE(r.truncated, 0.01 * r.samples + 1);
  EXPECT_EQ(r.threads.count("worker_30"), 1u);
}

TEST_F(RecordSession, ASizeLimitEndsTheSamplingAndTheProgramIsWaitedFor) {
  for (const Mode mode : {Mode::perf, Mode::timer}) {
    // A second of work behind the limit, and an exit code that only comes at the end.
    Options options;
    options.command = {"/bin/sh", "-c", program("shares") + " 60000 && exit 7"};
    options.standard_output = options.standard_error = null_device();
    options.mode = mode;
    options.size_limit_bytes = 100'000;
    options.rate_hz = 4999;
    options.adaptive = false;
    const auto profile = record(options);
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    ASSERT_FALSE(profile->threads.empty());
    EXPECT_EQ(profile->exit_code, 7);
    EXPECT_NE(::kill(static_cast<pid_t>(profile->threads.front().pid), 0), 0) << "it was left running";
    EXPECT_LT(profile->samples.size(), 10'000u);
    const bool full = std::any_of(profile->notes.begin(), profile->notes.end(), [](const std::string& note) {
      return note.find("size limit") != std::string::npos;
    });
    EXPECT_TRUE(full || mode == Mode::timer) << "timers tick 250 times a second";
  }
}

TEST_F(RecordSession, InlinedCallsAreFramesWithFileAndLine) {
  const auto profile = record(run_of("inlined", {"10000"}));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  bool seen = false;
  for (const CpuProfile::Stack& stack : profile->stacks) {
    for (std::size_t i = 0; i + 1 < stack.frames.size(); ++i) {
      const Frame& inner = profile->frames[stack.frames[i]];
      const Frame& outer = profile->frames[stack.frames[i + 1]];
      if (inner.function.find("demo::innermost<unsigned long>") == std::string::npos) continue;
      seen = true;
      EXPECT_TRUE(inner.inlined);
      EXPECT_EQ(outer.function, "demo::Machine::turn(unsigned long, long) const");
      EXPECT_FALSE(outer.inlined);
      EXPECT_EQ(inner.file.substr(inner.file.rfind('/') + 1), "inlined.cpp");
      EXPECT_GT(inner.line, 0);
      EXPECT_EQ(outer.file.substr(outer.file.rfind('/') + 1), "inlined.cpp");
      EXPECT_GT(outer.line, inner.line);
      EXPECT_NE(inner.address, 0u);
    }
  }
  EXPECT_TRUE(seen);
}

TEST_F(RecordSession, CapabilitiesNameWhatThereIs) {
  const auto all = capabilities();
  ASSERT_GE(all.size(), 4u);
  for (const Capability& capability : all) {
    EXPECT_FALSE(capability.name.empty());
    EXPECT_FALSE(capability.detail.empty());
    EXPECT_EQ(capability.hint.empty(), capability.there) << capability.name;
  }
  EXPECT_TRUE(all[0].there);
}

}  // namespace
}  // namespace fulcrum::record
