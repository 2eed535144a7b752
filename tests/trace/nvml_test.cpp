// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clocks in the trace file, from a management library and a driver that are none. Each case is a process of its own: a
// library that is loaded stays.
#include "trace/inject/nvml.h"

#include "support/chunks.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fulcrum::trace::inject {
namespace {

using file::Clock;
using file::Kind;

struct Fakes {
  void* nvml = nullptr;
  void* cuda = nullptr;
  template <class... Arguments>
  void call(void* library, const char* name, Arguments... arguments) const {
    reinterpret_cast<void (*)(Arguments...)>(dlsym(library, name))(arguments...);
  }
};

Fakes load_fakes() {
  return {dlopen(FULCRUM_FAKE_NVML, RTLD_NOW | RTLD_GLOBAL),
          dlopen(FULCRUM_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL)};
}

class Clocks : public testing::Test {
 protected:
  std::string path_ =
      std::filesystem::temp_directory_path() / ("fulcrum_clocks_" + std::to_string(getpid()) + ".ftrace");
  void TearDown() override { std::filesystem::remove(path_); }

  /// In a child: the setting, then clocks until the file has grown to so many bytes beyond its head (or five seconds).
  test::Chunks traced(const std::function<void()>& setting, std::int64_t bytes) {
    const pid_t child = fork();
    if (child == 0) {
      setting();
      static Writer writer;
      if (!writer.open(path_.c_str(), 1 << 20)) _exit(2);
      start_clocks(writer);
      const std::int64_t wanted = static_cast<std::int64_t>(sizeof(file::Head)) + bytes;
      for (int i = 0; i < 500 && writer.bytes() < wanted; ++i) usleep(10'000);
      stop_clocks();
      _exit(writer.bytes() >= wanted ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "status " << status;
    EXPECT_EQ(WEXITSTATUS(status), 0) << "2: no file, 3: too little in it";
    return test::read_chunks(path_);
  }
};

TEST_F(Clocks, are_those_of_the_device_with_a_context_whatever_its_number_is_in_the_other_library) {
  const test::Chunks chunks = traced(
      [] {
        const Fakes fakes = load_fakes();
        if (!fakes.nvml || !fakes.cuda) _exit(4);
        fakes.call(fakes.nvml, "fake_nvml_other", 77U);
      },
      600);
  const auto clocks = chunks.records<Clock>(Kind::clock);
  ASSERT_GE(clocks.size(), 2U);
  for (const Clock& clock : clocks) {
    EXPECT_EQ(clock.device, 1U);  // of the driver; the other library calls it the first
    EXPECT_FLOAT_EQ(clock.sm_mhz, 1000);
    EXPECT_FLOAT_EQ(clock.memory_mhz, 2619);
    EXPECT_FLOAT_EQ(clock.watts, 123.5F);
    EXPECT_FLOAT_EQ(clock.celsius, 61);
    EXPECT_FLOAT_EQ(clock.utilisation, 0.97F);
    EXPECT_EQ(clock.reasons, 0x24U);
    EXPECT_EQ(clock.others, 1U);
    EXPECT_EQ(clock.other_pid, 77U);
  }
  EXPECT_LT(clocks[0].at_ns, clocks[1].at_ns);
  EXPECT_EQ(chunks.property("clocks_refused"), "");
  EXPECT_EQ(chunks.property("clocks_missing"), "");
  EXPECT_EQ(chunks.property("max SM MHz of device 1"), "1980.000000");
}

TEST_F(Clocks, in_another_namespace_count_one_process_as_ours_and_name_none) {
  const test::Chunks chunks = traced(
      [] {
        const Fakes fakes = load_fakes();
        fakes.call(fakes.nvml, "fake_nvml_other", 77U);
        fakes.call(fakes.nvml, "fake_nvml_other", 78U);
        fakes.call(fakes.nvml, "fake_nvml_does_not_list_us");
      },
      600);
  const auto clocks = chunks.records<Clock>(Kind::clock);
  ASSERT_FALSE(clocks.empty());
  EXPECT_EQ(clocks[0].others, 2U);
  EXPECT_EQ(clocks[0].other_pid, 0U);
}

TEST_F(Clocks, say_what_the_library_refuses_and_give_the_rest) {
  const test::Chunks chunks = traced(
      [] {
        const Fakes fakes = load_fakes();
        fakes.call(fakes.nvml, "fake_nvml_refuse", "nvmlDeviceGetPowerUsage");
      },
      600);
  const auto clocks = chunks.records<Clock>(Kind::clock);
  ASSERT_FALSE(clocks.empty());
  EXPECT_FLOAT_EQ(clocks[0].watts, -1);
  EXPECT_FLOAT_EQ(clocks[0].sm_mhz, 1000);
  EXPECT_NE(chunks.property("clocks_missing").find("power"), std::string::npos)
      << chunks.property("clocks_missing");
}

TEST_F(Clocks, without_the_library_a_property_says_so) {
  if (void* real = dlopen("libnvidia-ml.so.1", RTLD_LAZY)) {
    dlclose(real);
    GTEST_SKIP() << "SKIPPED: this machine has the real library";
  }
  const test::Chunks chunks = traced([] {}, 60);
  EXPECT_TRUE(chunks.records<Clock>(Kind::clock).empty());
  EXPECT_NE(chunks.property("clocks_refused").find("libnvidia-ml.so.1"), std::string::npos);
}

TEST_F(Clocks, of_a_library_that_does_not_start_are_refused_with_its_number) {
  const test::Chunks chunks = traced(
      [] {
        const Fakes fakes = load_fakes();
        fakes.call(fakes.nvml, "fake_nvml_refuse", "nvmlInit_v2");
      },
      60);
  EXPECT_NE(chunks.property("clocks_refused").find("9"), std::string::npos);
}

TEST_F(Clocks, are_nobodys_business_in_a_forked_child) {
  const test::Chunks chunks = traced(
      [] {
        load_fakes();
        static Writer none;  // not open: appending does nothing
        start_clocks(none);
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          stop_clocks();  // the thread is not here: must return
          _exit(7);
        }
        int status = 0;
        waitpid(grandchild, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) _exit(5);
        stop_clocks();
      },
      600);
  EXPECT_FALSE(chunks.records<Clock>(Kind::clock).empty());  // and can be started again here
}

}  // namespace
}  // namespace fulcrum::trace::inject
