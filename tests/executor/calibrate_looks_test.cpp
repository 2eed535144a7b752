// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the later passes of a calibration look at, on a clock of their own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "executor/calibrate_op.h"
#include "executor/named_ops.h"
#include "executor/widths.h"
#include "support/virtual_gpu.h"

namespace fulcrum::executor {
namespace {

using testing::VirtualMachine;

/// matmul by the vectorised kernel, by a library on one thread that takes 2.5 times as long, and by it on two.
struct Products {
  static inline std::set<std::int64_t> slow_at;  // M * N * K of the calls of the slow one
  static inline double plan = 0;
  static double seconds(const fulcrum_args& args) {
    return 1e-7 + static_cast<double>(args.dim[0] * args.dim[1] * args.dim[2]) / 2e10;
  }
  template <int kTenths>
  static fulcrum_status run(const fulcrum_args* args, void*, std::int64_t count) {
    if (kTenths == 25) slow_at.insert(args->dim[0] * args->dim[1] * args->dim[2]);
    VirtualMachine::get().advance(static_cast<double>(count) * seconds(*args) * kTenths / 10);
    return {};
  }
  static fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args*, void**) {
    VirtualMachine::get().advance(plan);
    return {};
  }
  Products() {
    slow_at.clear();
    plan = 10e-6;
    simd_table.name = "simd";
    library_table.name = "cpulib";
    simd_table.kind = library_table.kind = "cpu";
    own.op = slow.op = threads.op = "matmul";
    own.variant = "default";
    slow.variant = "onednn_t1";
    threads.variant = "onednn";
    own.run = run<10>;
    slow.run = run<25>;
    threads.run = run<24>;
    own.plan = make_plan;
    own.plan_reads = 2;
  }
  fulcrum_backend simd_table{}, library_table{};
  fulcrum_kernel own{}, slow{}, threads{};
  backends::Backend simd{&simd_table}, library{&library_table};
  std::vector<Candidate> candidates{{backends::Kernel(&simd, &own), Place::host, 1},
                                    {backends::Kernel(&library, &slow), Place::host, 1},
                                    {backends::Kernel(&library, &threads), Place::host, 2}};
  Workbench bench{std::int64_t{96} << 20};
};

TEST(CalibrateLooks, ThreadsThatAreSlowAtMostShapesAreNotHeldUp) {
  const Products ways;
  const auto kept_of = [&](int slow, double& fear, int looks = 1, double slow_seconds = 52e-6) {
    OpPoints points;
    for (int i = 0; i < 10; ++i) {
      Point point{.args = {}, .dtype = DType::f32, .samples = std::vector<Sample>(3)};
      point.samples[1].seconds = 2e-6;
      point.samples[2].seconds = i < slow ? slow_seconds : 1.5e-6;
      point.samples[2].looks = looks;
      points.points.push_back(point);
    }
    fear = drop_spikes(ways.candidates, points)[2];
    return std::count_if(points.points.begin(), points.points.end(),
                         [](const Point& point) { return point.samples[2].seconds > 0; });
  };
  double fear = 0;
  EXPECT_EQ(kept_of(3, fear), 7);
  EXPECT_NEAR(fear, std::log1p(3 * 3 / 10.0), 1e-9) << "three times the call for each, in the mean";
  EXPECT_EQ(kept_of(8, fear), 10) << "that is what these threads cost";
  EXPECT_EQ(fear, 0);
  EXPECT_EQ(kept_of(3, fear, 2), 10) << "a second look found them as slow";
  EXPECT_EQ(fear, 0);
  EXPECT_EQ(kept_of(3, fear, 2, 40e-3), 7) << "no threads take 40 ms for 2 us, however often they do";
  EXPECT_GT(fear, 0);
}

TEST(CalibrateLooks, WhatIsFarBehindOnOneThreadGetsNoMoreOfThem) {
  const VirtualMachine::Use machine;
  Products ways;
  Products::plan = 0;
  const CalibrationTools tools{.bench = &ways.bench, .clock = machine->clock()};
  OpCalibration calibration(op_named("matmul"), ways.candidates, tools);
  const OpPoints points = calibration.run(0.05);
  std::set<std::int64_t> before;
  for (const Point& point : points.points)
    before.insert(point.args.dim[0] * point.args.dim[1] * point.args.dim[2]);
  ASSERT_EQ(Products::slow_at, before);
  Products::slow_at.clear();
  const double begin = machine->now();
  const OpPoints after = calibration.look_again(0.05);
  EXPECT_GT(machine->now(), begin);
  EXPECT_GT(after.points.size(), points.points.size()) << "and there is time for others";
  for (const std::int64_t size : Products::slow_at) EXPECT_FALSE(before.contains(size)) << size;
  for (std::size_t i = 0; i < points.points.size(); ++i)
    EXPECT_NEAR(after.points[i].samples[1].seconds / Products::seconds(after.points[i].args), 2.5, 1e-6);
}

TEST(CalibrateLooks, EveryPassHasShapesOfItsOwn) {
  const VirtualMachine::Use machine;
  Products ways;
  const CalibrationTools tools{.bench = &ways.bench, .clock = machine->clock()};
  OpCalibration calibration(op_named("matmul"), ways.candidates, tools);
  calibration.run(0.1);
  for (int pass = 0; pass < 2; ++pass) {
    const std::size_t before = calibration.points().points.size();
    EXPECT_GT(calibration.look_again(0.2).points.size(), before + 2) << pass;
  }
  std::map<std::vector<std::int64_t>, int> sizes;
  for (const Point& point : calibration.points().points)
    ++sizes[{point.args.dim[0], point.args.dim[1], point.args.dim[2]}];
  int twice = 0;
  for (const auto& [size, count] : sizes) twice += count > 1;
  EXPECT_EQ(twice, 0) << "of " << sizes.size();
}

TEST(CalibrateLooks, APlanIsKnownByAllLooksAtIt) {
  const VirtualMachine::Use machine;
  Products ways;
  const CalibrationTools tools{.bench = &ways.bench, .clock = machine->clock()};
  OpCalibration calibration(op_named("matmul"), ways.candidates, tools);
  const OpPoints points = calibration.run(0.05);
  EXPECT_NEAR(points.points.front().samples[0].plan_seconds, 10e-6, 1e-9);
  Products::plan = 12e-6;
  const OpPoints again = calibration.look_again(1);
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    EXPECT_GT(again.points[i].samples[0].plan_seconds, 10.8e-6) << i;
    EXPECT_LT(again.points[i].samples[0].plan_seconds, 12e-6) << i;
  }
  // One that was disturbed does not count.
  Products::plan = 40e-6;
  const OpPoints disturbed = calibration.look_again(1);
  for (std::size_t i = 0; i < points.points.size(); ++i)
    EXPECT_LT(disturbed.points[i].samples[0].plan_seconds, 12e-6) << i;
}

}  // namespace
}  // namespace fulcrum::executor
