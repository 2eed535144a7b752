// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU half of a profile from probes that follow a script: with no time at all every probe takes two windows.
#include "machine/gpu.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "machine/recorded_tree.h"
#include "support/scripted_gpu.h"

namespace fulcrum::machine {
namespace {

void expect_same(const Quantity& quantity, double low, double value, double high) {
  EXPECT_DOUBLE_EQ(quantity.low, low);
  EXPECT_DOUBLE_EQ(quantity.value, value);
  EXPECT_DOUBLE_EQ(quantity.high, high);
  EXPECT_EQ(quantity.source, Source::measured);
}

class MeasureGpu : public testing::Test {
 protected:
  void SetUp() override {
    scripted_gpu::counters() = {};
    set_log_sink(
        [this](LogLevel level, std::string_view) { warnings_ += level == LogLevel::warning ? 1 : 0; });
  }
  void TearDown() override { set_log_sink({}); }
  Status measure(const ProbeConfig& config = {}) {
    return measure_gpu(backends::Backend(scripted_gpu::backend()), config, 0, gpu_, notes_);
  }
  bool noted(std::string_view a, std::string_view b) const {
    return std::any_of(notes_.begin(), notes_.end(), [&](const std::string& note) {
      return note.find(a) != std::string::npos && note.find(b) != std::string::npos;
    });
  }
  GpuCeilings gpu_;
  std::vector<std::string> notes_;
  int warnings_ = 0;
};

TEST_F(MeasureGpu, TakesTheFactsThatTheBackendTells) {
  ASSERT_TRUE(measure().ok());
  EXPECT_EQ(gpu_.name, "Scripted GPU");
  EXPECT_EQ(gpu_.compute_capability, "9.9");
  EXPECT_EQ(gpu_.driver, "999.1");
  EXPECT_EQ(gpu_.sms, 132);
  EXPECT_EQ(gpu_.l2_bytes, 1000);
  EXPECT_EQ(gpu_.memory_bytes, 2000);
  EXPECT_EQ(gpu_.max_sm_hz, 2e9);
}

TEST_F(MeasureGpu, MakesRatesAndTimesOfTheWindows) {
  ASSERT_TRUE(measure().ok());
  expect_same(gpu_.rates.at("hbm_read"), 4e12, 4e12, 5e12);
  expect_same(gpu_.rates.at("l2_read"), 1e13, 1e13, 1e13);
  expect_same(gpu_.flops.at("fp32"), 4e13, 4e13, 5e13);
  expect_same(gpu_.latencies.at("launch_sync"), 8e-6, 9e-6, 9e-6);
  const auto& link = gpu_.link.at("pinned_h2d");
  ASSERT_EQ(link.size(), 3u);
  EXPECT_EQ(link[0].first, 4) << "by size, whatever the order of the probes";
  expect_same(link[0].second, 6e-6, 7e-6, 7e-6);
  EXPECT_EQ(link[1].first, 1048576);
  expect_same(link[1].second, 2.8e-5, 3e-5, 3e-5);
  const auto& table = gpu_.tables.at("read_by_ctas");
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].first, 1);
  expect_same(table[0].second, 2e10, 2e10, 2.5e10);
  EXPECT_EQ(table[1].first, 132);
}

TEST_F(MeasureGpu, LeavesOutWhatFailsAndSaysSo) {
  ASSERT_TRUE(measure().ok());
  EXPECT_FALSE(gpu_.rates.contains("not_opened"));
  EXPECT_FALSE(gpu_.flops.contains("fails_later"));
  EXPECT_FALSE(gpu_.latencies.contains("no_time"));
  EXPECT_TRUE(noted("not_opened", "no such unit"));
  EXPECT_TRUE(noted("fails_later", "it went wrong"));
  EXPECT_TRUE(noted("no_time", "no window was a positive time"));
  EXPECT_TRUE(noted("thing", "unheard_of"));
  EXPECT_EQ(warnings_, 4);
  EXPECT_EQ(scripted_gpu::counters().opened, scripted_gpu::kCount - 1);
  EXPECT_EQ(scripted_gpu::counters().closed, scripted_gpu::counters().opened);
}

TEST_F(MeasureGpu, AsksALostDeviceForNothingMore) {
  scripted_gpu::counters().lost = "fp32";
  ASSERT_TRUE(measure().ok());
  EXPECT_TRUE(gpu_.rates.contains("hbm_read")) << "what was opened before is still measured";
  EXPECT_TRUE(gpu_.link.empty());
  EXPECT_TRUE(noted("fp32", "fell off the bus"));
  EXPECT_EQ(scripted_gpu::counters().opened, 2);
  EXPECT_EQ(scripted_gpu::counters().closed, 2);
}

TEST_F(MeasureGpu, StopsWhenInterruptedAndClosesEverything) {
  int asked = 0;
  const Status status = measure(ProbeConfig{.interrupted = [&] { return ++asked > 15; }});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::interrupted);
  EXPECT_EQ(scripted_gpu::counters().opened, scripted_gpu::kCount - 1);
  EXPECT_EQ(scripted_gpu::counters().closed, scripted_gpu::counters().opened);
}

TEST_F(MeasureGpu, ReportsItsProgress) {
  std::vector<std::string> lines;
  ASSERT_TRUE(measure(ProbeConfig{.progress = [&](std::string_view what, int, int) {
                lines.emplace_back(what);
              }}).ok());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "Scripted GPU: preparing fp32"), lines.end());
  EXPECT_NE(std::find(lines.begin(), lines.end(), "Scripted GPU: pinned_h2d 4"), lines.end());
}

TEST_F(MeasureGpu, SurvivesTheFile) {
  Machine machine;
  machine.id = "scripted";
  ASSERT_TRUE(measure().ok());
  machine.gpus = {gpu_};
  machine.notes = notes_;
  const auto back = machine_from_json(to_json(machine), "x");
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(machine));
  EXPECT_EQ(back->gpus[0].tables.at("read_by_ctas")[1].second.value,
            gpu_.tables.at("read_by_ctas")[1].second.value);
}

}  // namespace
}  // namespace fulcrum::machine
