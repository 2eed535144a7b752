// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every regime and path on a real device: rows are complete, results right, ledgers add up. No time is judged.
#include <fulcrum/backends/device.h>
#include <fulcrum/measure.h>
#include <gtest/gtest.h>

#include "measure/ledger.h"

namespace fulcrum::measure {
namespace {

class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const backends::Backend* backend : backends::all()) {
      if (backend->kind() == "gpu" && backend->available() && backends::has_memory(*backend))
        backend_ = backend;
    }
    if (!backend_) GTEST_SKIP() << "SKIPPED: no GPU backend is available";
    config_.budget_seconds = 0.5;
    config_.precision = 0.05;
  }

  Result<Measurement> measure(const char* shape) {
    FULCRUM_TRY(const backends::Kernel kernel, backends::kernel("vec_add", backend_->name()));
    FULCRUM_TRY(ops::Problem problem, ops::Problem::make(**ops::find("vec_add"), *parse_shape(shape)));
    return run(kernel, problem, config_);
  }

  const backends::Backend* backend_ = nullptr;
  Config config_;
};

TEST_F(OnDevice, ResidentRowsHaveDeviceTimeInBothCacheStates) {
  config_.regime = Regime::resident;
  config_.budget_seconds = 4;  // enough for full batches when the device has other work too
  for (const Cache cache : {Cache::warm, Cache::cold}) {
    config_.cache = cache;
    const auto m = measure("n=1048576");
    ASSERT_TRUE(m.ok()) << m.error().message;
    EXPECT_TRUE(m->oracle.passed);
    ASSERT_TRUE(m->device_seconds.has_value());
    EXPECT_GE(m->device_calls, 20);
    EXPECT_EQ(m->device_sets > 1, cache == Cache::cold);
  }
}

TEST_F(OnDevice, EveryPathTakesTripsInItsRegime) {
  for (const std::string& path : backends::trip_paths(*backend_)) {
    config_.path = path;
    config_.regime = Regime::roundtrip;
    for (const Regime regime : {Regime::managed, Regime::overlapped}) {
      if (backends::path_serves(path, regime)) config_.regime = regime;
    }
    const auto m = measure("n=100000");
    if (!m.ok() && m.error().code == Code::unsupported) continue;  // a path may have its limits
    ASSERT_TRUE(m.ok()) << path << ": " << m.error().message;
    EXPECT_TRUE(m->oracle.passed) << path;
    EXPECT_EQ(m->path, path);
    EXPECT_EQ(m->detail.find("one call alone") != std::string::npos, config_.regime == Regime::overlapped);
  }
}

TEST_F(OnDevice, ReuseIsRight) {
  config_.regime = Regime::reuse;
  config_.reuse = 16;
  const auto m = measure("n=100000");
  ASSERT_TRUE(m.ok()) << m.error().message;
  EXPECT_TRUE(m->oracle.passed);
}

TEST_F(OnDevice, LedgersAddUpAndKnowTheKernel) {
  config_.instrumented = true;
  for (const Regime regime : {Regime::roundtrip, Regime::resident, Regime::overlapped, Regime::managed}) {
    config_.regime = regime;
    const auto m = measure("n=1048576");
    if (!m.ok() && (m.error().code == Code::unsupported || m.error().code == Code::environment))
      GTEST_SKIP() << "SKIPPED: no GPU tracing here: " << m.error().message;
    ASSERT_TRUE(m.ok()) << m.error().message;
    ASSERT_TRUE(m->ledger.has_value());
    double sum = 0;
    for (const Phase& phase : phases()) sum += (*m->ledger).*phase.seconds;
    EXPECT_NEAR(sum, m->ledger->end_to_end_instrumented, 1e-9 * sum);
    EXPECT_GT(m->ledger->kernel, 0) << to_string(regime);
    EXPECT_GE(m->ledger->busy.count("kernel"), 1U);
  }
}

}  // namespace
}  // namespace fulcrum::measure
