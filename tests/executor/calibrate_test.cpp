// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration of the machine that is not there: its times are a formula on a clock of its own, so that what comes out can
// be held against the truth.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <set>
#include <utility>

#include "executor/calibrate_costs.h"
#include "executor/calibrate_op.h"
#include "executor/candidates.h"
#include "executor/named_ops.h"
#include "executor/op_table.h"
#include "executor/rounds.h"
#include "executor/shapes.h"
#include "executor/store.h"
#include "executor/tracker.h"
#include "executor/workbench.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualMachine;

const OpTable& table_of(const Table& table, std::string_view name) {
  const auto all = ops::all();
  int index = 0;
  while (all[static_cast<std::size_t>(index)]->name != name) ++index;
  return *table.of(index);
}

class CalibrateTest : public ::testing::Test {
 protected:
  CalibrateTest() {
    options_.device = VirtualMachine::kGpu;
    options_.clock = machine_->clock();
    options_.table_file =
        std::filesystem::temp_directory_path() / ("fulcrum-calibrate-" + std::to_string(getpid()) + ".json");
    device_ = backends::find(VirtualMachine::kGpu).value();
    config_.ops = {"virtual_add", "virtual_gelu"};
    config_.budget_seconds = 0.3;
  }
  ~CalibrateTest() override { std::filesystem::remove(*options_.table_file); }

  /// What one call takes on the virtual clock.
  double truth(const Candidate& candidate, const ops::Op& op, const Args& args) {
    Workbench bench(Workbench::bytes_of_call(op, args, DType::f32));
    const Args bound = bench.bind(op, args, DType::f32).value();
    const auto operands = DeviceOperands::make(*device_, op, bound, DType::f32).value();
    const auto subject = make_subject(candidate, bound, operands, *machine_->clock()).value();
    const double begin = machine_->now();
    EXPECT_TRUE(subject->run(1).ok());
    return machine_->now() - begin;
  }
  /// The median error over calls that were not measured.
  void expect_times(const Table& table, std::string_view name) {
    const OpTable& entry = table_of(table, name);
    ShapeSource source(entry.op(), 4321);
    std::vector<std::vector<double>> errors(entry.candidates().size());
    for (int i = 0; i < 15; ++i) {
      const Args args = source.draw(1e-6, 3e-4).value();
      const auto prices = entry.prices(args, {});
      for (std::size_t c = 0; c < prices.size(); ++c)
        errors[c].push_back(
            std::abs(std::log(prices[c].seconds / truth(entry.candidates()[c], entry.op(), args))));
    }
    for (std::size_t c = 0; c < errors.size(); ++c)
      EXPECT_LT(stats::median(errors[c]), 0.15) << entry.candidates()[c].kernel.name();
  }
  void expect_places(const OpTable& add) {
    const Tracker tracker;
    const Mask all = default_mask(add.op(), add.candidates());
    for (const char* shape : {"n=1000", "n=1000000", "n=30000000"}) {
      const Args args = args_of(add.op(), shape);
      for (const Case host : {Case::pageable, Case::pinned}) {
        const Choice choice = add.choose(args, traffic_of(add.op(), args, host), all, tracker);
        EXPECT_EQ(add.candidates()[choice.candidate].place, Place::host) << shape;
      }
      const Choice resident = add.choose(args, traffic_of(add.op(), args, Case::resident), all, tracker);
      EXPECT_EQ(add.candidates()[resident.candidate].place, Place::device) << shape;
    }
  }

  VirtualMachine::Use machine_;
  Options options_;
  CalibrateConfig config_;
  const backends::Backend* device_ = nullptr;
};

TEST_F(CalibrateTest, FindsTheTimesOfTheMachineWithinItsBudgetAndKeepsThem) {
  const double begin = machine_->now();
  const auto table = calibrate_table(device_, options_, config_);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_LT(machine_->now() - begin, 2 * config_.budget_seconds);
  expect_times(**table, "virtual_add");
  expect_times(**table, "virtual_gelu");
  {
    SCOPED_TRACE("a link slower than the CPU keeps streaming at home; resident operands do not");
    expect_places(table_of(**table, "virtual_add"));
  }
  const auto stored = load_stored(device_, options_);
  ASSERT_TRUE(stored);
  EXPECT_NE(stored->data.description.find("Virtual GPU"), std::string::npos);
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

TEST_F(CalibrateTest, SeveralLooksAtCostsCountInTheMeanAndForksAtTheirBest) {
  Costs quick, slow;
  quick.pinned_home.knots = {{4096, 6e-6}, {65536, 9e-6}};
  slow.pinned_home.knots = {{4096, 24e-6}, {65536, 16e-6}};
  quick.launch_sync_seconds = 4e-6;
  slow.launch_sync_seconds = 9e-6;
  quick.forks = {{2, 3e-6}};
  slow.forks = {{2, 1e-6}};
  quick.fork_seconds = 3e-6;
  slow.fork_seconds = 1e-6;
  const Costs looks[] = {quick, slow};
  const Costs mean = costs_of(looks);
  EXPECT_NEAR(mean.pinned_home.knots[0].second, 12e-6, 1e-12);
  EXPECT_NEAR(mean.pinned_home.knots[1].second, 12e-6, 1e-12);
  EXPECT_TRUE(mean.pageable_home.knots.empty());
  EXPECT_NEAR(mean.launch_sync_seconds, 6e-6, 1e-12);
  EXPECT_EQ(mean.forks[0].second, 1e-6);
  EXPECT_EQ(mean.fork_seconds, 1e-6);
}

/// Kernels of relu on the virtual clock: one whose data leaves a cache at 6144 elements, and one that forks.
fulcrum_status run_stepping(const fulcrum_args* args, void*, std::int64_t count) {
  const auto n = static_cast<double>(args->dim[0]);
  const double each = n <= 6144 ? 2.5e-11 : 1.1e-10;
  VirtualMachine::get().advance(static_cast<double>(count) * (1e-8 + n * each));
  return {};
}
fulcrum_status run_forking(const fulcrum_args* args, void*, std::int64_t count) {
  const auto n = static_cast<double>(args->dim[0]);
  VirtualMachine::get().advance(static_cast<double>(count) * (4e-7 + n * 2.5e-11));
  return {};
}

TEST_F(CalibrateTest, SizesLieCloseTogetherWhereTimesMakeAStep) {
  const ops::Op& op = op_named("relu");
  fulcrum_backend table{};
  table.name = "simd";
  table.kind = "cpu";
  const backends::Backend backend(&table);
  fulcrum_kernel stepping{}, forking{};
  stepping.op = forking.op = "relu";
  stepping.variant = forking.variant = "default";
  stepping.run = run_stepping;
  forking.run = run_forking;
  const std::vector<Candidate> candidates{{backends::Kernel(&backend, &stepping), Place::host, 1},
                                          {backends::Kernel(&backend, &forking), Place::host, 2}};
  Workbench bench(std::int64_t{96} << 20);
  const CalibrationTools tools{.bench = &bench, .clock = machine_->clock()};
  OpCalibration calibration(op, candidates, tools);
  const OpPoints points = calibration.run(10);
  std::int64_t below = 0, above = 1 << 30;
  std::set<std::int64_t> sizes;
  for (const Point& point : points.points) {
    const std::int64_t n = point.args.dim[0];
    EXPECT_TRUE(sizes.insert(n).second) << n << " twice";
    (n <= 6144 ? below : above) = n <= 6144 ? std::max(below, n) : std::min(above, n);
  }
  EXPECT_LT(static_cast<double>(above) / static_cast<double>(below), 1.1) << below << " " << above;
  EXPECT_LT(points.points.size(), 37u);
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

TEST_F(CalibrateTest, TheFirstLongCallAfterThoseOfTheOtherPlaceIsNotTimed) {
  VirtualMachine& machine = VirtualMachine::get();
  /// Takes half as long again when the other one was the last to run.
  struct Cold final : Subject {
    Cold(const VirtualMachine& on, int own, int& before) : machine(on), number(own), last(before) {}
    Status run(std::int64_t count) override {
      machine.advance((std::exchange(last, number) == number ? 2e-3 : 3e-3) * static_cast<double>(count));
      return {};
    }
    const VirtualMachine& machine;
    int number;
    int& last;
  };
  int last = -1;
  Cold here(machine, 0, last), there(machine, 1, last);
  Subject* subjects[] = {&here, &there};
  const int groups[] = {0, 1};
  const auto times =
      time_rounds(subjects, RoundsConfig{.rounds = 4, .groups = groups, .clock = machine.clock()});
  for (const auto& rounds : times) {
    EXPECT_EQ(rounds.size(), 4u);
    for (const double seconds : rounds) EXPECT_NEAR(seconds, 2e-3, 1e-9);
  }
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
