// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole measurement with the smallest budget: everything is filled in, nothing is compared with a time. And the
// profiles of this machine in a data folder of the test's own.
#include <fulcrum/machine.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "machine/recorded_tree.h"

namespace fulcrum::machine {
namespace {

void expect_quantity(const Quantity& quantity, const std::string& what) {
  EXPECT_GT(quantity.low, 0) << what;
  EXPECT_LE(quantity.low, quantity.value) << what;
  EXPECT_LE(quantity.value, quantity.high) << what;
  EXPECT_EQ(quantity.source, Source::measured) << what;
}

class MeasureMachine : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto measured = measure(ProbeConfig{.budget_seconds = 0.1});
    ASSERT_TRUE(measured.ok()) << measured.error().message;
    machine_ = new Machine(std::move(*measured));
  }
  static void TearDownTestSuite() { delete machine_; }
  static Machine* machine_;
};
Machine* MeasureMachine::machine_ = nullptr;

TEST_F(MeasureMachine, FillsEveryLevelForOneAndAllThreads) {
  ASSERT_GE(machine_->cpu.levels.size(), 2u);
  for (const MemoryLevel& level : machine_->cpu.levels) {
    for (const char* mix : {"read", "copy", "triad"}) {
      ASSERT_TRUE(level.one_thread.contains(mix)) << level.name << " " << mix;
      expect_quantity(level.one_thread.at(mix), level.name + " " + mix);
    }
    for (const auto& [mix, rate] : level.all_threads) expect_quantity(rate, level.name + " " + mix + " all");
    ASSERT_TRUE(level.latency_seconds.has_value()) << level.name;
    expect_quantity(*level.latency_seconds, level.name + " latency");
  }
  // Between them a level may have no size that all threads together can be in.
  EXPECT_EQ(machine_->cpu.levels.front().all_threads.empty(), machine_->cpu.threads == 1);
  EXPECT_EQ(machine_->cpu.levels.back().all_threads.empty(), machine_->cpu.threads == 1);
  EXPECT_TRUE(machine_->cpu.levels.back().one_thread.contains("copy_nt"));
}

TEST_F(MeasureMachine, FillsThePeaksOfEveryInstructionSet) {
  for (const std::string& isa : backends::isas()) {
    ASSERT_TRUE(machine_->cpu.flops_one_thread.contains(isa)) << isa;
    expect_quantity(machine_->cpu.flops_one_thread.at(isa), isa);
  }
  EXPECT_TRUE(machine_->cpu.flops_one_thread.contains("scalar"));
  expect_quantity(machine_->cpu.fork_join_seconds, "fork and join");
  EXPECT_GT(machine_->cpu.clock_resolution_seconds.value, 0);
  EXPECT_GT(machine_->cpu.clock_read_seconds.value, 0);
}

TEST_F(MeasureMachine, LeavesTheInstructionSetAsItWas) {
  EXPECT_EQ(backends::active_isa(), backends::isas().front());
}

TEST_F(MeasureMachine, IsFoundAgainByItsFingerprint) {
  const TemporaryFolder data;
  ::setenv("FULCRUM_DATA", data.path().c_str(), 1);
  EXPECT_FALSE(known().has_value());
  const auto missing = load("this");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::not_found);
  EXPECT_FALSE(missing.error().hint.empty());

  const auto path = save(*machine_);
  ASSERT_TRUE(path.ok()) << path.error().message;
  ASSERT_TRUE(known().has_value());
  EXPECT_EQ(known()->id, machine_->id);
  EXPECT_EQ(known()->measured_utc, machine_->measured_utc);
  EXPECT_TRUE(load("this").ok());
  EXPECT_TRUE(load(machine_->id).ok());
  EXPECT_TRUE(load(path->string()).ok()) << "a path is a name too";
  ASSERT_FALSE(list().empty());
  EXPECT_EQ(list().front().name, machine_->id);
  EXPECT_EQ(load("no-such-machine").error().code, Code::not_found);

  std::string warning;
  set_log_sink([&](LogLevel, std::string_view message) { warning = message; });
  ASSERT_TRUE(write_file(*path, "{").ok());
  EXPECT_FALSE(known().has_value());
  EXPECT_NE(warning.find(path->string()), std::string::npos)
      << "a profile that is damaged is not passed over";
  EXPECT_EQ(load("this").error().code, Code::corrupt);
  set_log_sink({});
  ::unsetenv("FULCRUM_DATA");
}

TEST(MeasureMachineInterrupted, SavesNothingAndSaysSo) {
  int asked = 0;
  const auto result = measure(ProbeConfig{.budget_seconds = 60, .interrupted = [&] { return ++asked > 6; }});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::interrupted);
  EXPECT_EQ(backends::active_isa(), backends::isas().front());
}

}  // namespace
}  // namespace fulcrum::machine
