// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The preloaded library: sizes of BLAS calls, sampling by timers, and that the program's results stay the same.
#include "record/preload.h"

#include "record/disassemble.h"
#include "record/libdw.h"
#include "record/recording.h"
#include "record/touched.h"

namespace fulcrum::record {
namespace {

TEST(Preload, IsBesideTheProgram) {
  const Preload preload(0);
  EXPECT_TRUE(preload.there()) << "libfulcrum_preload.so was not found";
}

TEST(Preload, SeesTheSizesOfBlasCallsOnce) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  const auto profile = record(run_of("calls_blas"));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->exit_code, 0);
  std::map<std::string, double> calls;
  for (const CpuProfile::Call& call : profile->calls) {
    calls[call.function + " " + call.op + " " + call.shape.text()] = call.calls;
    EXPECT_EQ(call.how, "preload");
  }
  const std::map<std::string, double> expected{
      {"sgemm matmul M=4,N=5,K=6", 10}, {"sgemm matmul M=40,N=50,K=60", 7}, {"ddot  n=1000", 3}};
  EXPECT_EQ(calls, expected);
}

TEST(Preload, FindsTheRealFunctionInALibraryWithAScopeOfItsOwn) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  const auto profile = record(run_of("opens_blas", {program("libblas_user.so")}));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_EQ(profile->exit_code, 0);
  ASSERT_EQ(profile->calls.size(), 1u);
  EXPECT_EQ(profile->calls[0].function, "ddot");
  EXPECT_EQ(profile->calls[0].calls, 1);
}

TEST(Preload, CanBeLeftOut) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  Options options = run_of("calls_blas");
  options.preload = false;
  const auto profile = record(options);
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  EXPECT_TRUE(profile->calls.empty());
}

class Timers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!libdw()) GTEST_SKIP() << "SKIPPED: " << libdw_text();
  }
  static Recording run(const std::string& name, std::vector<std::string> arguments) {
    Options options = run_of(name, std::move(arguments));
    options.mode = Mode::timer;
    const Recording recording = record_here(options);
    EXPECT_TRUE(recording.ok) << recording.error;
    EXPECT_GT(recording.samples, 30);
    EXPECT_EQ(recording.exit_code, 0);
    return recording;
  }
};

TEST_F(Timers, GiveTheSameSharesAndSayWhatIsLost) {
  const Recording r = run("shares", {"60000"});
  expect_share(r, "share_40", 0.40);
  expect_share(r, "caller_45", 0.45);
  EXPECT_GT(r.share("main"), 0.97);
  EXPECT_NEAR(r.sampled_seconds / r.cpu_seconds, 1, 0.1);
  ASSERT_FALSE(r.notes.empty());
  EXPECT_NE(r.notes.begin()->find("timers"), std::string::npos);
}

TEST_F(Timers, SeeThreads) {
  const Recording r = run("threads", {"40000"});
  expect_share(r, "thread_work_60", 0.60);
  expect_share(r, "thread_work_10", 0.10);
}

TEST_F(Timers, SeeChildren) {
  const Recording r = run("forks", {"40000"});
  expect_share(r, "child_70", 0.70);
  expect_share(r, "parent_30", 0.30);
}

TEST_F(Timers, CannotAttach) {
  Options options;
  options.pid = ::getpid();
  options.mode = Mode::timer;
  const auto profile = record(options);
  ASSERT_FALSE(profile.ok());
  EXPECT_FALSE(profile.error().hint.empty());
}

TEST(Mix, OfAMathLibraryIsArithmeticAndNotTheProgramsData) {
  if (!probe_access().allowed) GTEST_SKIP() << "SKIPPED: perf events are not allowed here";
  if (!can_disassemble()) GTEST_SKIP() << "SKIPPED: " << disassembler_text();
  const auto profile = record(run_of("libm_leaf", {"20000"}));
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const CpuProfile::Mix* found = nullptr;
  for (const CpuProfile::Mix& mix : profile->mixes) {
    if (mix.function == "calls_libm") found = &mix;
  }
  ASSERT_NE(found, nullptr);
  EXPECT_GT(found->flops, 0.1);
  EXPECT_LT(found->load_bytes + found->store_bytes, 0.05);
}

TEST(TouchedBytes, AreReadFromTheKernelsText) {
  const std::string text =
      "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss:    1024 kB\nReferenced:          300 "
      "kB\nAnonHugePages: 0 kB\n";
  EXPECT_EQ(rollup_bytes(text, "Referenced"), 300.0 * 1024);
  EXPECT_EQ(rollup_bytes(text, "Rss"), 1024.0 * 1024);
  EXPECT_FALSE(rollup_bytes(text, "HugePages"));
  EXPECT_FALSE(rollup_bytes("Referenced:   x kB\n", "Referenced"));
  EXPECT_FALSE(rollup_bytes("Referenced:", "Referenced"));
}

TEST(TouchedBytes, OfAProcessThatIsNotThereAreNone) {
  TouchedBytes touched(0x3fffffff);
  for (double t = 0; t < 20; t += 0.05) touched.tick(t);
  EXPECT_EQ(touched.bytes(), 0);
}

TEST(TouchedBytes, OfAShortProcessAreWhatWasResident) {
  TouchedBytes touched(::getpid());
  touched.tick(0.05);
  EXPECT_GT(touched.bytes(), 1e5);
}

TEST(TouchedBytes, IncludePagesThatCameAfterTheLastReading) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "such a build touches a shadow of every page";
#endif
  TouchedBytes touched(::getpid());
  touched.tick(0.6);
  touched.tick(0.8);
  touched.tick(1.2);
  touched.tick(2.4);
  const double then = touched.bytes();
  std::vector<char> later(64 << 20, 1);
  touched.tick(2.6);
  EXPECT_GE(touched.bytes(), then + 0.9 * static_cast<double>(later.size()));
  // Looked at by the next reading: not counted twice.
  touched.tick(4.0);
  EXPECT_LT(touched.bytes(), then + 1.5 * static_cast<double>(later.size()));
}

TEST(FreshMemory, HasAPriceThatCanBeMeasured) {
  const double seconds = seconds_per_fresh_byte();
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 1e-6) << "a second a megabyte is no memory";
}

TEST(TouchedBytes, OfThisProcessAreThoseSinceTheBitsWereCleared) {
  TouchedBytes touched(::getpid());
  std::vector<char> before(64 << 20, 1);
  touched.tick(0.6);
  std::vector<char> since(8 << 20, 1);
  touched.tick(0.8);
  EXPECT_GE(touched.bytes(), static_cast<double>(before.size() + since.size()))
      << "too early: what is resident";
  touched.tick(1.2);
  touched.tick(2.4);
  EXPECT_GE(touched.bytes(), static_cast<double>(since.size()));
  EXPECT_LT(touched.bytes(), static_cast<double>(before.size()));
}

}  // namespace
}  // namespace fulcrum::record
