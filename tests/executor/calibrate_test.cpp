// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration of the machine that is not there: its times are a formula on a clock of its own, so that what comes out can
// be held against the truth.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "executor/calibrate_costs.h"
#include "executor/candidates.h"
#include "executor/op_table.h"
#include "executor/rounds.h"
#include "executor/store.h"
#include "executor/tracker.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualMachine;

class CalibrateTest : public ::testing::Test {
 protected:
  CalibrateTest() {
    options_.device = VirtualMachine::kGpu;
    options_.clock = machine_->clock();
    options_.table_file =
        std::filesystem::temp_directory_path() / ("fulcrum-calibrate-" + std::to_string(getpid()) + ".json");
    device_ = backends::find(VirtualMachine::kGpu).value();
    config_.ops = {"virtual_add", "virtual_matmul"};
    config_.budget_seconds = 0.2;
  }
  ~CalibrateTest() override { std::filesystem::remove(*options_.table_file); }

  const OpTable& table_of(const Table& table, std::string_view name) const {
    const auto all = ops::all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i]->name == name) return *table.of(static_cast<int>(i));
    }
    FULCRUM_ASSERT(false);
    std::abort();
  }
  double truth(const ops::Op& op, const Args& args, Place place) const {
    if (place == Place::host) return machine_->cpu_seconds(op, args);
    return machine_->costs.launch_seconds + machine_->costs.sync_seconds + machine_->kernel_seconds(op, args);
  }

  VirtualMachine::Use machine_;
  Options options_;
  CalibrateConfig config_;
  const backends::Backend* device_ = nullptr;
};

Args args_of(const ops::Op& op, const std::string& shape) {
  return ops::resolve(op, ops::complete(op, parse_shape(shape).value()).value()).value();
}

TEST_F(CalibrateTest, FindsTheTimesOfTheMachine) {
  const auto table = calibrate_table(device_, options_, config_);
  ASSERT_TRUE(table.ok()) << table.error().message;
  for (const auto& [name, shapes] :
       {std::pair{"virtual_add", std::vector<std::string>{"n=3000", "n=70000", "n=1000000"}},
        std::pair{"virtual_matmul", std::vector<std::string>{"M=90,N=70,K=110", "M=300,N=200,K=150"}}}) {
    const OpTable& entry = table_of(**table, name);
    for (const std::string& shape : shapes) {
      const Args args = args_of(entry.op(), shape);
      const auto prices = entry.prices(args, {});
      for (std::size_t c = 0; c < prices.size(); ++c) {
        const Candidate& candidate = entry.candidates()[c];
        const double expected = truth(entry.op(), args, candidate.place);
        EXPECT_NEAR(std::log(prices[c].seconds / expected), 0, 0.15)
            << candidate.kernel.name() << " " << shape;
        EXPECT_LE(prices[c].grade, Grade::b);
      }
    }
  }
}

TEST_F(CalibrateTest, StreamingStaysOnTheCpuWhenTheLinkIsSlowerAndFlipsWhenResident) {
  const auto table = calibrate_table(device_, options_, config_);
  ASSERT_TRUE(table.ok()) << table.error().message;
  const OpTable& add = table_of(**table, "virtual_add");
  const Tracker tracker;
  const Mask all = default_mask(add.op(), add.candidates());
  for (const char* shape : {"n=1000", "n=1000000", "n=30000000"}) {
    const Args args = args_of(add.op(), shape);
    const Work work = add.op().work(args);
    for (const Case host : {Case::pageable, Case::pinned}) {
      const Choice choice = add.choose(args, traffic_of(add.op(), work, host), all, tracker);
      EXPECT_EQ(add.candidates()[choice.candidate].place, Place::host) << shape;
    }
    const Choice resident = add.choose(args, traffic_of(add.op(), work, Case::resident), all, tracker);
    EXPECT_EQ(add.candidates()[resident.candidate].place, Place::device) << shape;
  }
}

TEST_F(CalibrateTest, IsKeptForTheNextProgram) {
  ASSERT_TRUE(calibrate_table(device_, options_, config_).ok());
  const auto stored = load_stored(device_, options_);
  ASSERT_TRUE(stored);
  EXPECT_NE(stored->data.description.find("Virtual GPU"), std::string::npos);
  const auto again = load_table(device_, options_);
  ASSERT_TRUE(again.ok());
  EXPECT_NE((*again)->describe().find("calibrated 2"), std::string::npos);
}

TEST_F(CalibrateTest, KeepsToItsBudget) {
  const double begin = machine_->now();
  ASSERT_TRUE(calibrate_table(device_, options_, config_).ok());
  EXPECT_LT(machine_->now() - begin, 1.5 * config_.budget_seconds);
}

TEST_F(CalibrateTest, AnInterruptSavesNothing) {
  config_.interrupted = [] { return true; };
  const auto table = calibrate_table(device_, options_, config_);
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().code, Code::interrupted);
  EXPECT_FALSE(std::filesystem::exists(*options_.table_file));
}

TEST_F(CalibrateTest, AnUnknownOpIsAnError) {
  config_.ops = {"virtual_nothing"};
  EXPECT_FALSE(calibrate_table(device_, options_, config_).ok());
}

TEST_F(CalibrateTest, CopiesCostWhatOneMoreAddsToACall) {
  const auto costs = measure_costs(*device_, *machine_->clock());
  ASSERT_TRUE(costs.ok());
  const double bytes = 4 << 20;
  const double expected = machine_->costs.copy_seconds + bytes / machine_->costs.pinned_rate;
  EXPECT_NEAR(costs->pinned_in.seconds(bytes) / expected, 1, 0.2);
  EXPECT_GT(costs->pageable_in.seconds(bytes), 2 * costs->pinned_in.seconds(bytes));
  EXPECT_GT(costs->pinned_out.seconds(2 * bytes), costs->pinned_out.seconds(bytes));
}

/// Takes what it is told to, on the virtual clock.
class Scripted final : public Subject {
 public:
  Scripted(const VirtualMachine& machine, std::vector<double> seconds)
      : machine_(machine), seconds_(std::move(seconds)) {}
  Status run(std::int64_t count) override {
    machine_.advance(seconds_[std::min(next_++, seconds_.size() - 1)] * static_cast<double>(count));
    return {};
  }

 private:
  const VirtualMachine& machine_;
  std::vector<double> seconds_;
  std::size_t next_ = 0;
};

TEST_F(CalibrateTest, ASpikeDoesNotMoveTheMedian) {
  VirtualMachine& machine = VirtualMachine::get();
  Scripted steady(machine, {1e-3}), spiked(machine, {1e-3, 1e-3, 1e-3, 0.4, 1e-3, 1e-3, 1e-3});
  Subject* subjects[] = {&steady, &spiked, nullptr};
  const auto times = time_rounds(subjects, RoundsConfig{.rounds = 5, .clock = machine.clock()});
  EXPECT_EQ(times[0].size(), 5u);
  EXPECT_NEAR(sample_of(times[1]).seconds, 1e-3, 1e-9);
  EXPECT_TRUE(times[2].empty());
  EXPECT_EQ(sample_of(times[2]).seconds, 0);
}

TEST_F(CalibrateTest, AHopelessCandidateIsLookedAtOnce) {
  VirtualMachine& machine = VirtualMachine::get();
  Scripted fast(machine, {1e-3}), slow(machine, {9e-3});
  Subject* subjects[] = {&fast, &slow};
  const auto times = time_rounds(subjects, RoundsConfig{.rounds = 5, .clock = machine.clock()});
  EXPECT_EQ(times[0].size(), 5u);
  EXPECT_EQ(times[1].size(), 1u);
  EXPECT_GT(sample_of(times[1]).noise, sample_of(times[0]).noise);
}

}  // namespace
}  // namespace fulcrum::executor
