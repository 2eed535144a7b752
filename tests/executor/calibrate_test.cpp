// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration of the machine that is not there: its times are a formula on a clock of its own, so that what comes out can
// be held against the truth.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <set>
#include <utility>

#include "executor/calibrate_costs.h"
#include "executor/calibrate_op.h"
#include "executor/candidates.h"
#include "executor/held_up.h"
#include "executor/named_ops.h"
#include "executor/op_table.h"
#include "executor/rounds.h"
#include "executor/shapes.h"
#include "executor/store.h"
#include "executor/tracker.h"
#include "executor/widths.h"
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

TEST_F(CalibrateTest, SeveralLooksAtCostsCountInTheMean) {
  Costs quick, slow;
  quick.pinned_home.knots = {{4096, 6e-6}, {65536, 9e-6}};
  slow.pinned_home.knots = {{4096, 24e-6}, {65536, 16e-6}};
  quick.launch_sync_seconds = 4e-6;
  slow.launch_sync_seconds = 9e-6;
  quick.forks = slow.forks = {{2, 3e-6}};
  const Costs looks[] = {quick, slow};
  const Costs mean = costs_of(looks);
  EXPECT_NEAR(mean.pinned_home.knots[0].second, 12e-6, 1e-12);
  EXPECT_NEAR(mean.pinned_home.knots[1].second, 12e-6, 1e-12);
  EXPECT_TRUE(mean.pageable_home.knots.empty());
  EXPECT_NEAR(mean.launch_sync_seconds, 6e-6, 1e-12);
  EXPECT_EQ(mean.forks, quick.forks) << "which all times were made to fit";
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

TEST(Shapes, ThinCallsHaveADimOfOneEachInTurn) {
  const ops::Op& op = op_named("matmul");
  ShapeSource source(op, 3);
  for (int i = 0; i < 12; ++i) {
    const auto args = source.draw_thin(1e-6, 1e-3);
    ASSERT_TRUE(args);
    EXPECT_EQ(args->dim[i % 3], 1) << i;
    const double seconds = nominal_seconds(op, *args);
    EXPECT_GT(seconds, 0.7e-6);
    EXPECT_LT(seconds, 1.4e-3);
  }
  EXPECT_FALSE(ShapeSource(op_named("relu")).draw_thin(1e-6, 1e-3)) << "one size is all it has";
}

fulcrum_status run_product(const fulcrum_args* args, void*, std::int64_t count) {
  const double flops = 2.0 * static_cast<double>(args->dim[0] * args->dim[1] * args->dim[2]);
  VirtualMachine::get().advance(static_cast<double>(count) * (1e-7 + flops / 5e10));
  return {};
}

TEST_F(CalibrateTest, ProductsWithAVectorAreAmongTheShapes) {
  fulcrum_backend table{};
  table.name = "simd";
  table.kind = "cpu";
  const backends::Backend backend(&table);
  fulcrum_kernel kernel{};
  kernel.op = "matmul";
  kernel.variant = "default";
  kernel.run = run_product;
  const std::vector<Candidate> candidates{{backends::Kernel(&backend, &kernel), Place::host, 1}};
  Workbench bench(std::int64_t{96} << 20);
  const CalibrationTools tools{.bench = &bench, .clock = machine_->clock()};
  OpCalibration calibration(op_named("matmul"), candidates, tools);
  std::array<int, 3> thin{};
  for (const Point& point : calibration.run(0.2).points) {
    for (std::size_t d = 0; d < thin.size(); ++d) thin[d] += point.args.dim[d] == 1;
  }
  for (const int count : thin) EXPECT_GE(count, 2);
}

/// relu on one thread and on two, which do not have a core each before `hold_until`; calls of the two are counted.
struct TwoThreads {
  static inline double hold_until = 0;
  static inline int calls = 0;
  static double alone(const fulcrum_args& args) { return 1e-8 + static_cast<double>(args.dim[0]) * 1e-10; }
  static double together(const fulcrum_args& args) { return 4e-7 + alone(args) / 2; }
  static fulcrum_status run_one(const fulcrum_args* args, void*, std::int64_t count) {
    VirtualMachine::get().advance(static_cast<double>(count) * alone(*args));
    return {};
  }
  static fulcrum_status run_two(const fulcrum_args* args, void*, std::int64_t count) {
    ++calls;
    const VirtualMachine& machine = VirtualMachine::get();
    const bool held = machine.now() < hold_until;
    machine.advance(static_cast<double>(count) * (held ? 4e-7 + alone(*args) : together(*args)));
    return {};
  }
  TwoThreads() {
    hold_until = 0;
    calls = 0;
    simd_table.name = "simd";
    threads_table.name = "threads";
    simd_table.kind = threads_table.kind = "cpu";
    one.op = two.op = "relu";
    one.variant = two.variant = "default";
    one.run = run_one;
    two.run = run_two;
    costs.forks = {{2, 4e-7}};
    costs.fork_seconds = 4e-7;
  }
  fulcrum_backend simd_table{}, threads_table{};
  fulcrum_kernel one{}, two{};
  backends::Backend simd{&simd_table}, threads{&threads_table};
  std::vector<Candidate> candidates{{backends::Kernel(&simd, &one), Place::host, 1},
                                    {backends::Kernel(&threads, &two), Place::host, 2}};
  Costs costs;
  Workbench bench{std::int64_t{96} << 20};
};

TEST_F(CalibrateTest, ThreadsThatWereHeldUpAreLookedAtAgainLater) {
  TwoThreads ways;
  const CalibrationTools tools{.bench = &ways.bench, .clock = machine_->clock(), .costs = &ways.costs};
  std::deque<OpCalibration> calibrations;
  OpCalibration& calibration = calibrations.emplace_back(op_named("relu"), ways.candidates, tools);
  TwoThreads::hold_until = machine_->now() + 1000;
  calibration.run(0.2);
  calibration.look_again(0.2);
  int held = 0;
  for (const Point& point : calibration.points().points) held += point.samples[1].seconds > 50e-6;
  ASSERT_GE(held, 3);
  TwoThreads::hold_until = 0;
  look_at_held_up(calibrations, *machine_->clock(), machine_->now() + 0.5, 6);
  for (const Point& point : calibration.points().points) {
    const double alone = TwoThreads::alone(point.args), together = TwoThreads::together(point.args);
    EXPECT_NEAR(point.samples[0].seconds / alone, 1, 1e-6);
    if (together >= 0.7 * alone) continue;
    EXPECT_NEAR(point.samples[1].seconds / together, 1, 1e-6) << point.args.dim[0];
  }
}

TEST_F(CalibrateTest, WhatStaysAsItIsGetsFewLooksAndNoMoreTimeThanThereIs) {
  TwoThreads ways;
  const CalibrationTools tools{.bench = &ways.bench, .clock = machine_->clock(), .costs = &ways.costs};
  std::deque<OpCalibration> calibrations;
  OpCalibration& calibration = calibrations.emplace_back(op_named("relu"), ways.candidates, tools);
  TwoThreads::hold_until = machine_->now() + 1000;
  calibration.run(0.2);
  const auto points = static_cast<int>(calibration.points().points.size());
  TwoThreads::calls = 0;
  double begin = machine_->now();
  look_at_held_up(calibrations, *machine_->clock(), begin + 0.02, 6);
  EXPECT_GT(TwoThreads::calls, 0);
  EXPECT_LT(machine_->now() - begin, 0.06) << "one look may be under way at the end";
  look_at_held_up(calibrations, *machine_->clock(), machine_->now() + 1000, 6);
  EXPECT_LT(TwoThreads::calls, 30 * 6 * points);
  begin = machine_->now();
  look_at_held_up(calibrations, *machine_->clock(), begin + 1000, 6);
  EXPECT_EQ(machine_->now(), begin) << "all have had their looks";
  look_at_held_up(calibrations, *machine_->clock(), begin + 1000, 7);
  EXPECT_GT(machine_->now(), begin) << "one more each";
}

/// matmul on one thread and on eight, which take nearly twice as long at some shapes before they are let go.
struct EightThreads {
  static inline bool hold = true;
  static double alone(const fulcrum_args& args) {
    return 1e-7 + 4e-11 * static_cast<double>(args.dim[0] * args.dim[1] * args.dim[2]);
  }
  static double together(const fulcrum_args& args) { return 8e-7 + alone(args) / 8; }
  static bool may_be_held(const fulcrum_args& args) {
    return (args.dim[0] + 3 * args.dim[1] + 5 * args.dim[2]) % 6 == 0;
  }
  static fulcrum_status run_one(const fulcrum_args* args, void*, std::int64_t count) {
    VirtualMachine::get().advance(static_cast<double>(count) * alone(*args));
    return {};
  }
  static fulcrum_status run_eight(const fulcrum_args* args, void*, std::int64_t count) {
    const double factor = hold && may_be_held(*args) ? 1.8 : 1;
    VirtualMachine::get().advance(static_cast<double>(count) * factor * together(*args));
    return {};
  }
};

// They win by far either way, so that no choice between these two hangs on them; others like them are predicted from them.
TEST_F(CalibrateTest, ThreadsThatAreFarFromWhatCallsLikeThemSayAreLookedAtAgain) {
  fulcrum_backend simd_table{}, threads_table{};
  simd_table.name = "simd";
  threads_table.name = "threads";
  simd_table.kind = threads_table.kind = "cpu";
  const backends::Backend simd(&simd_table), threads(&threads_table);
  fulcrum_kernel one{}, eight{};
  one.op = eight.op = "matmul";
  one.variant = eight.variant = "default";
  one.run = EightThreads::run_one;
  eight.run = EightThreads::run_eight;
  const std::vector<Candidate> candidates{{backends::Kernel(&simd, &one), Place::host, 1},
                                          {backends::Kernel(&threads, &eight), Place::host, 8}};
  Costs costs;
  costs.fork_seconds = 8e-7;
  Workbench bench(std::int64_t{96} << 20);
  const CalibrationTools tools{.bench = &bench, .clock = machine_->clock(), .costs = &costs};
  std::deque<OpCalibration> calibrations;
  OpCalibration& calibration = calibrations.emplace_back(op_named("matmul"), candidates, tools);
  EightThreads::hold = true;
  calibration.run(1);
  const auto count_held = [&] {
    int held = 0;
    for (const Point& point : calibration.points().points) {
      const bool long_enough = EightThreads::alone(point.args) > 2e-6;
      held += long_enough && point.samples[1].seconds > 1.5 * EightThreads::together(point.args);
    }
    return held;
  };
  const int before = count_held();
  ASSERT_GE(before, 8);
  EightThreads::hold = false;
  look_at_held_up(calibrations, *machine_->clock(), machine_->now() + 0.5, 3);
  EXPECT_LE(count_held(), before / 4);
}

TEST(HeldUp, AreThreadsThatWouldWinIfTheyTookTheirShareOfTheWork) {
  const TwoThreads ways;
  const FeatureMap map(op_named("relu"));
  Point point{.args = args_of(op_named("relu"), "n=1000000"), .samples = std::vector<Sample>(2)};
  const Features f = map.of(point.args);
  ASSERT_GE(f.pieces, 2);
  const auto is_held_up = [&](double one, double two) {
    point.samples[0].seconds = one;
    point.samples[1].seconds = two;
    return held_up(ways.candidates, f, ways.costs, point) == 0b10;
  };
  EXPECT_TRUE(is_held_up(100e-6, 98e-6));
  EXPECT_TRUE(is_held_up(100e-6, 250e-6));
  EXPECT_FALSE(is_held_up(100e-6, 52e-6)) << "as it should be";
  EXPECT_FALSE(is_held_up(100e-6, 70e-6)) << "they win as it is";
  EXPECT_TRUE(is_held_up(0.88e-6, 1.25e-6)) << "a twentieth is worth a look";
  EXPECT_FALSE(is_held_up(0.6e-6, 15e-6)) << "a fork costs more than they could gain";
  EXPECT_FALSE(is_held_up(1.2e-6, 1.2e-6)) << "not far above a share and a fork";
  EXPECT_FALSE(is_held_up(100e-6, 0)) << "never timed";
  Features single = f;
  single.pieces = 1;
  point.samples[1].seconds = 98e-6;
  EXPECT_EQ(held_up(ways.candidates, single, ways.costs, point), 0U) << "nothing to share";
}

TEST(HeldUp, ALibraryOnThreadsIsHeldAgainstItselfOnOne) {
  fulcrum_backend table{};
  table.name = "cpulib";
  table.kind = "cpu";
  const backends::Backend backend(&table);
  fulcrum_kernel one{}, all{}, other{};
  one.op = all.op = other.op = "matmul";
  one.variant = "onednn_t1";
  all.variant = "onednn";
  other.variant = "openblas";
  const std::vector<Candidate> candidates{{backends::Kernel(&backend, &one), Place::host, 1},
                                          {backends::Kernel(&backend, &all), Place::host, 2},
                                          {backends::Kernel(&backend, &other), Place::host, 2}};
  EXPECT_EQ(singles_of(candidates), (std::vector<int>{-1, 0, -1}));
}

}  // namespace
}  // namespace fulcrum::executor
