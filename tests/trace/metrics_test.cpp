// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names and pass counts of metrics, asked of CUPTI itself: its host library knows every chip and needs neither a GPU nor
// a driver. And what needs no CUPTI: reasons, and the clock of samples.
#include "trace/inject/metrics.h"

#include "trace/inject/pm_clock.h"

#if defined(FULCRUM_CUPTI_LIBRARY) && __has_include(<cupti_pmsampling.h>)
#include "trace/inject/pm_session.h"
#define FULCRUM_WITH_CUPTI 1
#else
#define FULCRUM_WITH_CUPTI 0
#endif

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace fulcrum::trace::inject {
namespace {

TEST(Metrics, are_there_for_memory_and_sms_on_every_chip_and_no_chip_is_there_twice) {
  std::set<std::string> chips;
  for (const MetricSet& set : metric_sets()) {
    file::Counter counter = empty_counter();
    std::set<std::string> names;
    for (const Metric& metric : set.metrics) {
      EXPECT_TRUE(names.insert(full_name(metric)).second) << metric.name;
      counter.*metric.field = 1;
    }
    EXPECT_FLOAT_EQ(counter.dram, 1);
    EXPECT_FLOAT_EQ(counter.sm_active, 1);
    EXPECT_FLOAT_EQ(counter.tensor_active, 1);
    EXPECT_FLOAT_EQ(counter.instructions, 1);
    for (const char* chip : set.chips) EXPECT_TRUE(chips.insert(chip).second) << chip << " is there twice";
  }
  for (const char* chip : {"GH100", "GA100", "AD102", "GB100", "GB202"})
    EXPECT_NE(metrics_of(chip), nullptr) << chip;
  EXPECT_EQ(metrics_of("GV100"), nullptr);
  EXPECT_EQ(metrics_of(""), nullptr);
}

TEST(Metrics, of_an_sm_are_as_high_as_its_busiest_part) {
  file::Counter counter = empty_counter();
  finish(counter);
  EXPECT_FLOAT_EQ(counter.sm_throughput, -1);
  counter.sm_throughput = 0.2F;
  counter.instructions = 2;
  finish(counter);
  EXPECT_FLOAT_EQ(counter.sm_throughput, 0.5F);
  counter.tensor_active = 0.9F;
  finish(counter);
  EXPECT_FLOAT_EQ(counter.sm_throughput, 0.9F);
}

TEST(Metrics, that_are_refused_come_with_what_to_do) {
  const auto says = [](int result, const char* text) {
    return why_refused(result, "cuptiPmSamplingEnable").find(text) != std::string::npos;
  };
  EXPECT_TRUE(says(35, "NVreg_RestrictProfilingToAdminUsers=0"));
  EXPECT_TRUE(says(35, "error 35"));
  EXPECT_TRUE(says(26, "dcgmi profile --pause"));
  EXPECT_TRUE(says(27, "no PM sampling"));
  EXPECT_TRUE(says(39, "another profiler"));
  EXPECT_TRUE(says(999, "error 999 at cuptiPmSamplingEnable"));
}

constexpr PmInstant kNow{
    .monotonic_ns = 5'000'000'000, .realtime_ns = 1'700'000'000'000'000'000, .cupti_ns = 900'000'000'000};

TEST(PmClock, of_samples_is_the_one_on_which_the_newest_is_just_over) {
  constexpr std::int64_t kStarted = 4'000'000'000, kAge = 30'000;
  PmClock clock;
  clock.update(kNow.monotonic_ns - kAge, kNow, kStarted);
  EXPECT_STREQ(clock.name(), "CLOCK_MONOTONIC");
  EXPECT_EQ(clock.convert(4'100'000'000), 4'100'000'000);
  clock.update(kNow.realtime_ns - kAge, kNow, kStarted);
  EXPECT_STREQ(clock.name(), "CLOCK_REALTIME");
  EXPECT_EQ(clock.convert(kNow.realtime_ns - kAge), kNow.monotonic_ns - kAge);
  clock.update(kNow.cupti_ns - kAge, kNow, kStarted);
  EXPECT_STREQ(clock.name(), "cuptiGetTimestamp");
  EXPECT_EQ(clock.convert(kNow.cupti_ns), kNow.monotonic_ns);
}

TEST(PmClock, that_nobody_knows_is_shifted_once_and_kept) {
  PmClock clock;
  clock.update(123'000, kNow, 4'000'000'000);
  EXPECT_EQ(clock.convert(123'000), kNow.monotonic_ns);
  PmInstant later = kNow;
  later.monotonic_ns += 40'000'000;  // the next portion was read late
  clock.update(20'123'000, later, 4'000'000'000);
  EXPECT_EQ(clock.convert(20'123'000), kNow.monotonic_ns + 20'000'000);
}

#if FULCRUM_WITH_CUPTI

class Cupti : public testing::Test {
 protected:
  PmCupti cupti_;
  void* library_ = nullptr;
  // Tests that bring a CUPTI of their own must not find this one.
  void TearDown() override {
    if (library_) dlclose(library_);
  }
  void SetUp() override {
    library_ = dlopen(FULCRUM_CUPTI_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!library_) GTEST_SKIP() << "SKIPPED: no CUPTI: " << dlerror();
    if (!cupti_.load(library_)) GTEST_SKIP() << "SKIPPED: this CUPTI has no PM sampling";
    PmMetrics probe(cupti_);
    const std::string refused =
        probe.open("GH100", CUPTI_PROFILER_TYPE_RANGE_PROFILER, {"sm__cycles_active.avg"});
    if (!refused.empty()) GTEST_SKIP() << "SKIPPED: no libnvperf_host beside CUPTI: " << refused;
  }

  /// Of a set on a chip; 0 and a failed test: CUPTI refused it.
  std::size_t passes(const char* chip, CUpti_ProfilerType type, const std::vector<std::string>& names) {
    PmMetrics metrics(cupti_);
    const std::string refused = metrics.open(chip, type, names);
    EXPECT_EQ(refused, "") << chip << ", " << names.front();
    return refused.empty() ? metrics.passes() : 0;
  }
};

TEST_F(Cupti, samples_every_set_in_one_pass) {
  for (const MetricSet& set : metric_sets()) {
    std::vector<std::string> names;
    for (const Metric& metric : set.metrics) names.push_back(full_name(metric));
    for (const char* chip : set.chips)
      EXPECT_EQ(passes(chip, CUPTI_PROFILER_TYPE_PM_SAMPLING, names), 1U) << chip;
  }
}

TEST_F(Cupti, refuses_a_name_that_is_none) {
  PmMetrics metrics(cupti_);
  EXPECT_NE(metrics.open("GH100", CUPTI_PROFILER_TYPE_PM_SAMPLING,
                         {"sm__cycles_active.avg", "sm__no_such_thing.sum"}),
            "");
  PmMetrics other(cupti_);
  EXPECT_NE(other.open("GX100", CUPTI_PROFILER_TYPE_PM_SAMPLING, {"sm__cycles_active.avg"}), "");
}

/// What rules read from a file of ncu's, chip by chip, and how many passes it costs there: more would be news.
TEST_F(Cupti, needs_no_more_passes_than_it_did_for_the_metrics_of_the_rules) {
  struct Row {
    std::size_t gh100, ga100, ad102, gb100;
    std::vector<std::string> names;
  };
  const Row rows[] = {
      {1, 1, 1, 1, {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"}},
      {8, 5, 6, 8, {"sm__throughput.avg.pct_of_peak_sustained_elapsed"}},
      {5, 8, 5, 5, {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"}},
      {1, 1, 1, 1, {"sm__warps_active.avg.pct_of_peak_sustained_active"}},
      {1, 1, 1, 1, {"smsp__issue_active.avg.per_cycle_active"}},
      {1, 1, 1, 1, {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"}},
      {1, 1, 1, 1, {"sm__inst_executed_pipe_tensor.sum"}},
      {1, 1, 1, 1, {"smsp__thread_inst_executed_per_inst_executed.ratio"}},
      {1, 1, 1, 1, {"sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_active.min"}},
      {1, 1, 1, 1, {"sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_elapsed.max"}},
      {1, 1, 1, 1, {"sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"}},
      {2, 2, 2, 2, {"lts__t_sector_hit_rate.pct"}},
      {1, 1, 1, 1, {"l1tex__t_sector_hit_rate.pct"}},
      {1,
       1,
       1,
       1,
       {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
        "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"}},
  };
  for (const Row& row : rows) {
    EXPECT_LE(passes("GH100", CUPTI_PROFILER_TYPE_RANGE_PROFILER, row.names), row.gh100) << row.names[0];
    EXPECT_LE(passes("GA100", CUPTI_PROFILER_TYPE_RANGE_PROFILER, row.names), row.ga100) << row.names[0];
    EXPECT_LE(passes("AD102", CUPTI_PROFILER_TYPE_RANGE_PROFILER, row.names), row.ad102) << row.names[0];
    EXPECT_LE(passes("GB100", CUPTI_PROFILER_TYPE_RANGE_PROFILER, row.names), row.gb100) << row.names[0];
  }
}

/// Blackwell counts no sectors by where memory lives: there the rule is `not checked`.
TEST_F(Cupti, knows_sectors_by_aperture_before_blackwell) {
  const std::vector<std::string> names = {"lts__t_sectors_srcunit_tex_aperture_sysmem.sum",
                                          "lts__t_sectors_srcunit_tex_aperture_peer.sum",
                                          "lts__t_sectors_srcunit_tex_aperture_device.sum"};
  for (const char* chip : {"GH100", "GA100", "AD102"})
    EXPECT_LE(passes(chip, CUPTI_PROFILER_TYPE_RANGE_PROFILER, names), 2U) << chip;
  PmMetrics metrics(cupti_);
  EXPECT_NE(metrics.open("GB100", CUPTI_PROFILER_TYPE_RANGE_PROFILER, names), "");
}

#else

TEST(Cupti, is_asked_for_names_and_passes) {
  GTEST_SKIP() << "SKIPPED: no CUPTI of CUDA 12.6 or later was found";
}

#endif

}  // namespace
}  // namespace fulcrum::trace::inject
