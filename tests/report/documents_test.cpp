// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One made-up run as JSON, CSV, Markdown and Google Benchmark's JSON.
#include <fulcrum/report.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

namespace fulcrum::report {
namespace {

Measurement row(const std::string& backend, double median) {
  Measurement m;
  m.op = "sigmoid";
  m.backend = backend;
  m.variant = "default";
  m.isa = "avx3";
  m.precision = "fp32";
  m.shape.set("n", std::int64_t{100000});
  m.seconds = Estimate{.median = median, .ci_low = median * 0.99, .ci_high = median * 1.01, .mean = median};
  m.samples = 412;
  m.calls_per_sample = 50;
  m.stop_reason = StopReason::precision;
  m.quality = Quality::stable;
  m.oracle = Oracle{.passed = true, .checked = 100000, .max_error_ulp = 3.1};
  m.work = Work{.flops = 400000, .read_bytes = 400000, .write_bytes = 400000};
  m.ceiling = Ceiling{"memory", "L2", 0.5};
  m.environment.cpu_seconds = 1;
  m.environment.wall_seconds = 2;
  return m;
}

BenchDocument document() {
  BenchDocument d;
  d.machine.id = "m-1";
  d.machine.topology.model = "Some \"quoted\" CPU";
  d.results = {row("simd", 2.03e-5), row("scalar", 3e-4)};
  Comparison c;
  c.a = "sigmoid/simd/default";
  c.b = "sigmoid/scalar/default";
  c.shape = d.results[0].shape;
  c.speedup = 14.78;
  c.ci_low = 14.61;
  c.ci_high = 15.02;
  c.verdict = Verdict::faster;
  d.comparisons = {c};
  return d;
}

std::vector<std::string> keys(const Json& json) {
  std::vector<std::string> names;
  for (const auto& item : json.items()) names.push_back(item.key());
  return names;
}

/// Fields of one CSV line, quotes understood.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> list(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      list.emplace_back();
    } else {
      list.back() += c;
    }
  }
  return list;
}

TEST(BenchJson, BeginsAsTheContractSaysAndOnlyAdds) {
  const Json json = bench_json(document());
  const auto names = keys(json);
  EXPECT_EQ(std::vector(names.begin(), names.begin() + 6),
            (std::vector<std::string>{"schema", "version", "commit", "machine", "results", "comparisons"}));
  EXPECT_EQ(json["schema"], "fulcrum.bench/1");
  EXPECT_EQ(json["machine"]["cpu"], "Some \"quoted\" CPU");
  EXPECT_TRUE(json["machine"]["gpu"].is_null());
  const auto row_names = keys(json["results"][0]);
  const std::vector<std::string> contract = {
      "op",      "shape",   "dtype",      "backend",     "variant", "isa",   "precision",     "regime",
      "cache",   "seconds", "samples",    "stop_reason", "quality", "flags", "max_error_ulp", "work",
      "ceiling", "ledger",  "source_hash"};
  ASSERT_GE(row_names.size(), contract.size());
  EXPECT_EQ(std::vector(row_names.begin(), row_names.begin() + static_cast<std::ptrdiff_t>(contract.size())),
            contract);
  EXPECT_EQ(json["results"][0]["seconds"]["median"], 2.03e-5);
  EXPECT_EQ(json["comparisons"][0]["verdict"], "faster");
  EXPECT_FALSE(json.contains("not_measured"));
}

TEST(BenchJson, ANumberThatIsNoneIsLeftOut) {
  BenchDocument d = document();
  d.results[0].seconds.stddev = NAN;
  const std::string text = json_text(bench_json(d));
  EXPECT_EQ(text.find("NaN"), std::string::npos);
  EXPECT_TRUE(json_parse(text, "test").ok());
}

TEST(BenchJson, WhatHasNoTimeSaysWhy) {
  BenchDocument d = document();
  d.not_measured.push_back({"sigmoid/x/default", "it is wrong", "fix it", Code::wrong_result});
  EXPECT_EQ(bench_json(d)["not_measured"][0]["reason"], "it is wrong");
}

TEST(Csv, EveryLineHasTheColumnsOfTheHeaderAndTheNumbersOfTheJson) {
  std::istringstream stream(csv(document()));
  std::string header, first, second;
  std::getline(stream, header);
  std::getline(stream, first);
  std::getline(stream, second);
  const auto names = fields(header), a = fields(first), b = fields(second);
  ASSERT_EQ(names.size(), a.size());
  ASSERT_EQ(names.size(), b.size());
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  EXPECT_EQ(a[column("name")], "sigmoid/simd/default/n:100000/regime:host/cache:warm");
  EXPECT_EQ(std::stod(a[column("median_seconds")]), 2.03e-5);
  EXPECT_EQ(a[column("baseline")], "sigmoid/scalar/default");
  EXPECT_EQ(std::stod(a[column("speedup")]), 14.78);
  EXPECT_EQ(b[column("baseline")], "");
}

TEST(GoogleBenchmark, HasOneRowPerProcess) {
  BenchDocument d = document();
  d.processes = {row("simd", 2e-5), row("simd", 2.1e-5), row("simd", 2.06e-5)};
  const Json json = google_benchmark_json(d);
  ASSERT_EQ(json["benchmarks"].size(), 4u);
  const Json& third = json["benchmarks"][2];
  EXPECT_EQ(third["name"], "sigmoid/simd/default/n:100000/regime:host/cache:warm");
  EXPECT_EQ(third["run_type"], "iteration");
  EXPECT_EQ(third["repetitions"], 3);
  EXPECT_EQ(third["repetition_index"], 2);
  EXPECT_EQ(third["iterations"], 412 * 50);
  EXPECT_DOUBLE_EQ(third["real_time"].get<double>(), 20600);
  EXPECT_DOUBLE_EQ(third["cpu_time"].get<double>(), 10300);
  EXPECT_EQ(third["time_unit"], "ns");
  EXPECT_EQ(json["context"]["json_schema_version"], 1);
  EXPECT_TRUE(std::regex_match(json["context"]["date"].get<std::string>(),
                               std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00)")));
}

TEST(Sentences, SayTheVerdictInWords) {
  Comparison c = document().comparisons[0];
  EXPECT_EQ(comparison_sentence(c),
            "sigmoid/simd/default is 14.8x [14.6, 15.0] the speed of sigmoid/scalar/default");
  c.verdict = Verdict::same;
  c.speedup = 1.003, c.ci_low = 0.998, c.ci_high = 1.007;
  EXPECT_NE(comparison_sentence(c).find("1.00x [1.00, 1.01]"), std::string::npos);
  EXPECT_NE(comparison_sentence(c).find("same within 2 %"), std::string::npos);
  c.verdict = Verdict::unresolved;
  EXPECT_NE(comparison_sentence(c).find("unresolved"), std::string::npos);
  c.verdict = Verdict::not_run;
  c.reason = "no device";
  EXPECT_EQ(comparison_sentence(c),
            "sigmoid/simd/default was not compared with sigmoid/scalar/default: no device");
}

TEST(Sentences, AnEstimateCarriesItsDoubt) {
  EXPECT_EQ(estimate_text(Estimate{.median = 2.03e-5, .ci_low = 2.02e-5, .ci_high = 2.04e-5}),
            "20.3 us +-0.5 %");
}

TEST(Markdown, HasTheRowsAndTheComparison) {
  const std::string text = markdown(document());
  EXPECT_NE(text.find("| simd/default |"), std::string::npos);
  EXPECT_NE(text.find("14.8x"), std::string::npos);
}

TEST(MeasurementTable, TakesTheRateThatCharacterisesTheRow) {
  Measurement dense = row("simd", 1e-3);
  dense.work = Work{.flops = 2e9, .read_bytes = 4e6, .write_bytes = 2e6};
  EXPECT_NE(measurement_table({dense}).text(false).find("2.00 TFLOP/s"), std::string::npos);
  EXPECT_NE(measurement_table({row("simd", 2e-5)}).text(false).find("40.0 GB/s"), std::string::npos);
}

TEST(Flags, EveryFlagThatTheRunnerRaisesIsExplained) {
  const std::regex raised(R"re(add_flag\([^"]*"([a-z_]+)[^"]*"\))re");
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FULCRUM_SOURCE_DIR "/src/measure")) {
    std::ifstream stream(entry.path());
    for (std::string line; std::getline(stream, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, raised)) continue;
      ++found;
      EXPECT_NE(explain_flag(match[1].str()), "") << match[1] << " in " << entry.path();
    }
  }
  EXPECT_GT(found, 5);
  EXPECT_NE(explain_flag("variance: sample 80 %, epoch 10 %, process 10 %"), "");
  EXPECT_EQ(explain_flag("no_such_flag"), "");
}

TEST(MachineText, ShowsLevelsPeaksAndMarksWhatWasNotMeasured) {
  Machine machine;
  machine.name = "box";
  machine.cpu.threads = 2;
  machine.cpu.levels = {{.name = "L1", .capacity_bytes = 32768, .one_thread = {{"read", {1e11, 1e11, 1e11}}}},
                        {.name = "DRAM", .one_thread = {{"read", {2e10, 2e10, 2e10, Source::datasheet}}}}};
  machine.cpu.flops_one_thread = {{"avx3", {1.8e11, 1.79e11, 1.81e11}}};
  const std::string text = machine_text(machine, false);
  EXPECT_NE(text.find("L1 32.0 KiB"), std::string::npos);
  EXPECT_NE(text.find("100 GB/s"), std::string::npos);
  EXPECT_NE(text.find("20.0 GB/s (datasheet)"), std::string::npos);
  EXPECT_NE(text.find("avx3"), std::string::npos);
  EXPECT_NE(text.find("180 GFLOP/s"), std::string::npos);
}

}  // namespace
}  // namespace fulcrum::report
