// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters in the trace file, from a CUPTI that is none. Each case is a process of its own: a library that is loaded
// stays, and the tracer's thread is one a process.
#if __has_include(<cupti_pmsampling.h>)

#include "trace/inject/pm_sampling.h"

#include "support/chunks.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

using file::Counter;
using file::Kind;

void* fake() { return dlopen(FULCRUM_FAKE_PM, RTLD_NOW | RTLD_GLOBAL); }

template <class... Arguments>
void tell(const char* name, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(dlsym(fake(), name))(arguments...);
}

std::int64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

class Counters : public testing::Test {
 protected:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("fulcrum_counters_" + std::to_string(getpid()) + ".ftrace");
  void TearDown() override { std::filesystem::remove(path_); }

  /// In a child: the setting, then counters until the file holds so many bytes beyond its head (or five seconds).
  test::Chunks traced(const std::function<void()>& setting, std::int64_t bytes) {
    const pid_t child = fork();
    if (child == 0) {
      setting();
      static Writer writer;
      if (!writer.open(path_.c_str(), 64 << 20)) _exit(2);
      for (int i = 0; i < 3; ++i) start_counters(writer, nullptr);  // contexts of one device
      const std::int64_t wanted = static_cast<std::int64_t>(sizeof(file::Head)) + bytes;
      for (int i = 0; i < 500 && writer.bytes() < wanted; ++i) usleep(10'000);
      stop_counters();
      _exit(writer.bytes() >= wanted ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "status " << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << "2: no file, 3: too little in it";
    return test::read_chunks(path_);
  }
};

TEST_F(Counters, are_shares_of_one_on_the_clock_of_everything_else) {
  const std::int64_t before = monotonic_ns();
  const test::Chunks chunks = traced([] { fake(); }, 30'000);
  const std::int64_t after = monotonic_ns();
  const auto counters = chunks.records<Counter>(Kind::counter);
  ASSERT_GT(counters.size(), 250U);
  constexpr std::int64_t kSlack = 20'000'000;
  for (const Counter& counter : counters) {
    ASSERT_FLOAT_EQ(counter.dram, 0.5F);
    ASSERT_FLOAT_EQ(counter.sm_active, 0.75F);
    ASSERT_FLOAT_EQ(counter.instructions, 2);
    ASSERT_FLOAT_EQ(counter.dram_read, -1);  // what is no number is not a share
    ASSERT_FLOAT_EQ(counter.l2_hit, -1);     // not in the set
    ASSERT_FLOAT_EQ(counter.tensor_active, 0);
    ASSERT_FLOAT_EQ(counter.sm_throughput, 0.5F);  // two of four issue slots
    ASSERT_GT(counter.begin_ns, before - kSlack);
    ASSERT_LT(counter.end_ns, after + kSlack);
  }
  EXPECT_EQ(chunks.property("counters_clock"), "CLOCK_REALTIME");
  EXPECT_EQ(chunks.property("chip"), "GH100");
  EXPECT_EQ(chunks.property("counters_refused"), "");
  EXPECT_EQ(chunks.property("counters_ended"), "");
}

TEST_F(Counters, of_a_device_without_room_end_with_a_reason) {
  const test::Chunks chunks = traced(
      [] {
        fake();
        tell("fake_pm_overflows");
      },
      200);
  EXPECT_NE(chunks.property("counters_ended").find("room"), std::string::npos);
}

TEST_F(Counters, that_are_refused_leave_the_reason_and_what_to_do) {
  const test::Chunks chunks = traced(
      [] {
        fake();
        tell("fake_pm_refuse", "cuptiPmSamplingEnable", 35);
      },
      60);
  EXPECT_NE(chunks.property("counters_refused").find("NVreg_RestrictProfilingToAdminUsers"),
            std::string::npos);
  EXPECT_TRUE(chunks.records<Counter>(Kind::counter).empty());
}

TEST_F(Counters, of_an_unknown_chip_or_of_several_passes_are_refused) {
  const test::Chunks unknown = traced(
      [] {
        fake();
        tell("fake_pm_chip", "GX900");
      },
      100);
  EXPECT_NE(unknown.property("counters_refused").find("GX900"), std::string::npos);
  std::filesystem::remove(path_);
  const test::Chunks many = traced(
      [] {
        fake();
        tell("fake_pm_passes", 2);
      },
      100);
  EXPECT_NE(many.property("counters_refused").find("2 passes"), std::string::npos);
}

TEST_F(Counters, that_fail_in_between_end_with_a_reason) {
  const test::Chunks chunks = traced(
      [] {
        fake();
        tell("fake_pm_refuse", "cuptiPmSamplingDecodeData", 999);
      },
      200);
  EXPECT_NE(chunks.property("counters_ended").find("cuptiPmSamplingDecodeData"), std::string::npos);
}

TEST_F(Counters, without_cupti_are_refused) {
  const test::Chunks chunks = traced([] {}, 60);
  EXPECT_NE(chunks.property("counters_refused"), "");
}

TEST_F(Counters, are_nobodys_business_in_a_forked_child) {
  const test::Chunks chunks = traced(
      [] {
        fake();
        static Writer none;
        start_counters(none, nullptr);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          stop_counters();
          _exit(7);
        }
        int status = 0;
        waitpid(grandchild, &status, 0);
        _exit(WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 5);
      },
      0);
  EXPECT_TRUE(chunks.bytes.empty());
}

}  // namespace
}  // namespace fulcrum::trace::inject

#endif
