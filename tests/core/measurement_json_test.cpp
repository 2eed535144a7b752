// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The JSON of measurements and comparisons: golden text, round trips, and damage of every key.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core_support.h"

namespace fulcrum {
namespace {

using test::contains;
using test::error_text;

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

Measurement sample_measurement() {
  Measurement m;
  m.op = "sigmoid";
  m.backend = "simd";
  m.variant = "default";
  m.isa = "avx3";
  m.precision = "fp32";
  m.detail = "Highway";
  m.shape = parse_shape("n=100000,al=0.5,layout=list").value();
  m.cache_verified = true;
  m.threads = 2;
  m.processes = 3;
  m.seconds = Estimate{.median = 2.03e-5,
                       .ci_low = 2.02e-5,
                       .ci_high = 2.05e-5,
                       .level = 0.99,
                       .mean = 2.1e-5,
                       .stddev = 1e-7,
                       .mad = 5e-8,
                       .cv = 0.005,
                       .cv_robust = 0.004,
                       .min = 2e-5,
                       .max = 3e-5,
                       .p90 = 2.2e-5,
                       .p99 = 2.9e-5};
  m.samples = 412;
  m.effective_samples = 310.5;
  m.calls_per_sample = 8;
  m.stop_reason = StopReason::precision;
  m.stop_detail = "half-width 0.7 %";
  m.quality = Quality::stable;
  m.flags = {"correlated"};
  m.modes = {2.0e-5, 2.9e-5};
  m.oracle = Oracle{true, 100000, 3.25, 0.5, "all outputs"};
  m.work = Work{.flops = 400000,
                .issue_slots = 7,
                .read_bytes = 400000,
                .write_bytes = 400000,
                .streaming_bytes = 9,
                .link_in_bytes = 10,
                .link_out_bytes = 11};
  m.ceiling = Ceiling{"compute", "L2", 0.5};
  m.environment = Environment{1, 2, 3, 0.25, 0.5, 0.125, 2e9, 2.5e9};
  m.source_hash = "0123456789abcdef";
  return m;
}

Ledger sample_ledger() {
  Ledger ledger{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, {}};
  ledger.busy = {{"kernel", 6.5}};
  return ledger;
}

/// What a row of a device says besides.
void add_device(Measurement& m) {
  m.path = "mapped";
  m.reuse = 16;
  m.device_seconds = Estimate{.median = 3e-6, .ci_low = 2.9e-6, .ci_high = 3.1e-6};
  m.device_calls = 40;
  m.device_sets = 12;
  m.environment.gpu = Environment::Gpu{1.9e9, 1.8e9, 61, 350, 4, 1};
}

constexpr std::string_view kGoldenRow =
    R"({"op":"sigmoid","shape":{"n":100000,"al":0.5,"layout":"list"},"dtype":"f32","backend":"simd",)"
    R"("variant":"default","isa":"avx3","precision":"fp32","regime":"host","cache":"warm",)"
    R"("seconds":{"median":2.03e-05,"ci_low":2.02e-05,"ci_high":2.05e-05,"mean":2.1e-05,"stddev":1e-07,)"
    R"("cv":0.005,"cv_robust":0.004,"min":2e-05,"max":3e-05,"p90":2.2e-05,"p99":2.9e-05,"mad":5e-08,"level":0.99},)"
    R"("samples":412,"stop_reason":"precision","quality":"stable","flags":["correlated"],"max_error_ulp":3.25,)"
    R"("work":{"flops":400000.0,"bytes":800000.0,"issue_slots":7.0,"read_bytes":400000.0,"write_bytes":400000.0,)"
    R"("streaming_bytes":9.0,"link_in_bytes":10.0,"link_out_bytes":11.0},)"
    R"("ceiling":{"bound":"compute","level":"L2","fraction":0.5},"ledger":null,"source_hash":"0123456789abcdef",)"
    R"("detail":"Highway","stop_detail":"half-width 0.7 %","threads":2,"processes":3,"effective_samples":310.5,)"
    R"("calls_per_sample":8,"cache_verified":true,"modes":[2e-05,2.9e-05],)"
    R"("oracle":{"passed":true,"checked":100000,"max_error_share":0.5,"detail":"all outputs"},)"
    R"("environment":{"context_switches":1,"migrations":2,"page_faults":3,"cpu_seconds":0.25,"wall_seconds":0.5,)"
    R"("steal_seconds":0.125,"clock_hz_before":2000000000.0,"clock_hz_after":2500000000.0,"gpu":null},)"
    R"("path":"","reuse":0,"device_seconds":null,"device_calls":0,"device_sets":0})";

Json reread(const Json& json) { return json_parse(json_text(json), "x").value(); }

TEST(MeasurementJson, HasTheShapeOfTheSchema) {
  EXPECT_EQ(json_text(to_json(sample_measurement())), kGoldenRow);
}

TEST(MeasurementJson, ReadsBackWhatItWrote) {
  Measurement m = sample_measurement();
  for (const bool with_ledger : {false, true}) {
    if (with_ledger) {
      m.ledger = sample_ledger();
      add_device(m);
      m.ceiling.reset();
      m.shape.dtype = DType::bf16;
      m.regime = Regime::roundtrip;
      m.cache = Cache::cold;
    }
    const Json json = reread(to_json(m));
    const Measurement back = measurement_from_json(json, "x").value();
    EXPECT_EQ(json_text(to_json(back)), json_text(json));
    EXPECT_EQ(back.shape, m.shape);
    EXPECT_EQ(back.ledger.has_value(), with_ledger);
    EXPECT_EQ(back.row(), m.row());
    EXPECT_EQ(back.oracle.max_error_ulp, 3.25);
  }
  EXPECT_EQ(m.ledger->end_to_end_instrumented, 13);
  const Measurement back = measurement_from_json(reread(to_json(m)), "x").value();
  EXPECT_EQ(back.ledger->busy, m.ledger->busy);
  EXPECT_EQ(back.environment.gpu->throttle_reasons, 4u);
  EXPECT_EQ(back.device_seconds->ci_high, 3.1e-6);
  EXPECT_EQ(back.path, "mapped");
}

TEST(MeasurementJson, RawSamplesAreNotInTheSummary) {
  Measurement m = sample_measurement();
  m.raw.resize(1000);
  EXPECT_EQ(json_text(to_json(m)), kGoldenRow);
}

TEST(MeasurementJson, ANumberThatIsNoneStaysNoneAndIsNotZero) {
  Measurement m = sample_measurement();
  m.seconds.p99 = kNoNumber;
  m.oracle.max_error_ulp = std::numeric_limits<double>::infinity();
  m.modes = {1.0, kNoNumber};
  const Json json = reread(to_json(m));
  EXPECT_FALSE(json["seconds"].contains("p99"));
  EXPECT_FALSE(json.contains("max_error_ulp"));
  const Measurement back = measurement_from_json(json, "x").value();
  EXPECT_TRUE(std::isnan(back.seconds.p99));
  EXPECT_TRUE(std::isnan(back.oracle.max_error_ulp));
  ASSERT_EQ(back.modes.size(), 2u);
  EXPECT_TRUE(std::isnan(back.modes[1]));
}

TEST(MeasurementJson, OnlyAnInvalidMeasurementMayLackItsMedian) {
  Measurement m = sample_measurement();
  m.seconds.median = kNoNumber;
  EXPECT_EQ(measurement_from_json(reread(to_json(m)), "f.json").error().message,
            "f.json: seconds.median is missing");
  m.quality = Quality::invalid;
  EXPECT_TRUE(measurement_from_json(reread(to_json(m)), "f.json").ok());
}

TEST(MeasurementJson, KeysAddedLaterMayBeAbsentAndUnknownOnesPresent) {
  Json json = to_json(sample_measurement());
  for (const char* key : {"detail", "stop_detail", "threads", "processes", "effective_samples",
                          "calls_per_sample", "cache_verified", "modes", "oracle", "environment", "path",
                          "reuse", "device_seconds", "device_calls", "device_sets"}) {
    ASSERT_EQ(json.erase(key), 1u) << key;
  }
  json["from_the_future"] = Json::array({1, 2});
  const Measurement back = measurement_from_json(json, "x").value();
  EXPECT_EQ(back.threads, 1);
  EXPECT_EQ(back.calls_per_sample, 1);
  EXPECT_EQ(back.samples, 412);
}

/// Every pointer into the document, containers and leaves.
std::vector<Json::json_pointer> pointers(const Json& json,
                                         const Json::json_pointer& at = Json::json_pointer()) {
  std::vector<Json::json_pointer> found;
  for (const auto& [key, child] : json.items()) {
    const auto here = json.is_array() ? at / static_cast<std::size_t>(std::stoul(key)) : at / key;
    found.push_back(here);
    if (child.is_structured()) {
      const auto below = pointers(child, here);
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  return found;
}

TEST(MeasurementJson, AWrongTypeAnywhereIsAnErrorThatNamesThePath) {
  Measurement m = sample_measurement();
  m.ledger = sample_ledger();
  add_device(m);
  const Json good = to_json(m);
  int derived = 0;
  for (const auto& pointer : pointers(good)) {
    const std::string path = pointer.to_string();
    if (pointer.back() == "bytes" && ++derived == 1) continue;  // of the work, which comes first: not read
    if (pointer.back() == "residual" || pointer.back() == "perturbation")
      continue;  // of the ledger: not read
    Json bad = good;
    bad[pointer] = Json::array({Json::array()});
    const auto result = measurement_from_json(bad, "f.json");
    ASSERT_FALSE(result.ok()) << path;
    EXPECT_EQ(result.error().code, Code::corrupt);
    EXPECT_TRUE(contains(result.error().message, pointer.back())) << path << ": " << result.error().message;
  }
  Json bad = good;
  bad["seconds"]["median"] = "fast";
  EXPECT_EQ(measurement_from_json(bad, "f.json").error().message,
            "f.json: seconds.median must be a number, but is of type string");
  bad = good;
  bad["flags"][0] = 3;
  EXPECT_EQ(measurement_from_json(bad, "f.json").error().message,
            "f.json: flags[0] must be a text, but is of type number");
  bad = good;
  bad["threads"] = std::int64_t{1} << 40;
  EXPECT_EQ(measurement_from_json(bad, "").error().message, "threads does not fit in 32 bits");
  bad = good;
  bad["samples"] = std::uint64_t{1} << 63;
  EXPECT_EQ(measurement_from_json(bad, "").error().message, "samples does not fit in 64 bits");
  bad = good;
  bad["samples"] = 1.5;
  EXPECT_TRUE(contains(error_text(measurement_from_json(bad, "")), "samples must be a whole number"));
  bad = good;
  bad["quality"] = "stabel";
  EXPECT_TRUE(contains(error_text(measurement_from_json(bad, "")),
                       "quality unknown word 'stabel', did you mean 'stable'? known: stable, fair"));
}

TEST(MeasurementJson, AMissingKeyIsAnErrorThatNamesIt) {
  const Json good = to_json(sample_measurement());
  for (const char* key :
       {"op", "shape", "dtype", "backend", "variant", "isa", "precision", "regime", "cache", "seconds",
        "samples", "stop_reason", "quality", "flags", "work", "ceiling", "ledger", "source_hash"}) {
    Json bad = good;
    ASSERT_EQ(bad.erase(key), 1u) << key;
    EXPECT_EQ(measurement_from_json(bad, "f.json").error().message,
              "f.json: " + std::string(key) + " is missing");
  }
  for (const Json& json : {Json(nullptr), Json::array(), Json(3)}) {
    EXPECT_TRUE(
        contains(error_text(measurement_from_json(json, "f.json")), "the document must be an object"));
  }
}

Comparison sample_comparison() {
  Comparison c;
  c.a = "sigmoid/simd/default";
  c.b = "sigmoid/scalar/default";
  c.shape = parse_shape("n=100000").value();
  c.speedup = 14.75;
  c.ci_low = 14.5;
  c.ci_high = 15;
  c.level = 0.99;
  c.seconds_saved = 0.25;
  c.share_a_faster = 1;
  c.rounds = 50;
  c.ties = 2;
  c.stop_reason = StopReason::decision;
  c.stop_detail = "beyond every horizon";
  c.verdict = Verdict::faster;
  c.reason = "none";
  c.seconds_a = {1, 2};
  return c;
}

TEST(ComparisonJson, HasTheShapeOfTheSchema) {
  EXPECT_EQ(
      json_text(to_json(sample_comparison())),
      R"({"a":"sigmoid/simd/default","b":"sigmoid/scalar/default","shape":{"n":100000},"speedup":14.75,)"
      R"("ci_low":14.5,"ci_high":15.0,"verdict":"faster","dtype":"f32","regime":"host","cache":"warm",)"
      R"("level":0.99,"seconds_saved":0.25,)"
      R"("share_a_faster":1.0,"rounds":50,"ties":2,"stop_reason":"decision",)"
      R"("stop_detail":"beyond every horizon","reason":"none"})");
}

TEST(ComparisonJson, ReadsBackWhatItWrote) {
  const Json json = reread(to_json(sample_comparison()));
  EXPECT_EQ(json_text(to_json(comparison_from_json(json, "x").value())), json_text(json));
}

TEST(ComparisonJson, AWrongTypeAnywhereIsAnErrorThatNamesThePath) {
  const Json good = to_json(sample_comparison());
  for (const auto& pointer : pointers(good)) {
    Json bad = good;
    bad[pointer] = Json::array();
    const auto result = comparison_from_json(bad, "f.json");
    ASSERT_FALSE(result.ok()) << pointer.to_string();
    EXPECT_TRUE(contains(result.error().message, pointer.back())) << result.error().message;
  }
}

TEST(ShapeJson, KeepsIntegersRealsAndWordsApart) {
  Shape shape = parse_shape("n=3,al=2.0,layout=list").value();
  EXPECT_EQ(json_text(to_json(shape)), R"({"n":3,"al":2.0,"layout":"list"})");
  Measurement m = sample_measurement();
  m.shape = shape;
  EXPECT_EQ(measurement_from_json(reread(to_json(m)), "x")->shape, shape);
}

}  // namespace
}  // namespace fulcrum
