// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --suite and --scaling: rows, claims, flags, advice, growth; end to end on small suites of ops that are quick.
#include "cli/bench/suites.h"

#include <cmath>
#include <fstream>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

constexpr std::string_view kSuite = R"({
  "schema": "fulcrum.suite/1", "name": "small", "summary": "three quick rows", "system": "Somebody",
  "rows": [
    {"name": "add", "op": "vec_add", "shape": "n=1000", "inputs": {"a": "index", "b": "ramp 1 1"},
     "sweeps": [{"name": "length", "shapes": ["n=500", "n=1000", "n=2000"],
                 "claims": {"exponent": {"mark": "claimed", "value": 1}}}],
     "claims": {"gpu_seconds": {"mark": "measured", "value": 1000, "unit": "s"},
                "speedup": {"mark": "wrong", "value": 7, "unit": "x", "right": {"value": 2}}}},
    {"name": "future", "op": "no_such_op", "shape": "n=1"},
    {"name": "host", "share": 0.1}
  ]
})";

std::string with_targets(const std::string& slow_seconds, const std::string& outlier_factor) {
  std::string text(kSuite);
  const std::string targets =
      R"("targets": {"real_time_seconds": 1, "stable_cv": 1000, "calls_per_second": 0.001,
    "slow_seconds": )" +
      slow_seconds + R"(, "high_variance_cv": 1000, "outlier_factor": )" + outlier_factor + "}, ";
  return text.insert(text.find("\"rows\""), targets);
}

std::vector<std::string> quick(const std::filesystem::path& suite,
                               const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"bench",   "--suite",  suite, "--backend",   "simd", "--variant",
                                        "default", "--budget", "0.2", "--precision", "0.5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchSuite, ShowsClaimsBesideTheMeasurementAndSaysWhatWasSkipped) {
  const Folder data;
  const Outcome outcome = fulcrum_in(data, quick(put(data, "small.json", kSuite)));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* expected :
       {"simd/default", "gpu_seconds", "measured by Somebody", "wrong, right is 2x", "skipped: small/future",
        "there is no op 'no_such_op'", "skipped: small/host", "code of the host"})
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << expected << "\n" << outcome.output;
}

TEST(BenchSuite, JsonHoldsTheRowsWithTheirClaimsAndResults) {
  const Folder data;
  const Outcome outcome = fulcrum_in(data, quick(put(data, "small.json", kSuite), {"--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  ASSERT_EQ(json["results"].size(), 1u);
  const Json& suite = json["suite"];
  EXPECT_EQ(suite["name"], "small");
  ASSERT_EQ(suite["rows"].size(), 3u);
  EXPECT_EQ(suite["rows"][0]["results"][0], 0);
  EXPECT_EQ(suite["rows"][0]["best"][0]["regime"], "host");
  EXPECT_EQ(suite["rows"][0]["inputs"]["b"], "ramp 1 1");
  EXPECT_EQ(suite["rows"][0]["claims"]["speedup"]["mark"], "wrong");
  EXPECT_TRUE(suite["rows"][1]["results"].empty());
  EXPECT_EQ(json["not_measured"].size(), 2u);
}

TEST(BenchSuite, TargetsGiveTheTablesOfThatStyleWithAdviceForEveryFlag) {
  const Folder data;
  // Every mean is above a nanosecond, and every maximum above a tenth of the mean.
  const auto path = put(data, "small.json", with_targets("1e-9", "0.1"));
  const Outcome outcome = fulcrum_in(data, quick(path));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  for (const char* expected :
       {"stddev", "calls/s", "SLOW, OUTLIERS", "Slowest: add", "real time",
        "SLOW (add):", "OUTLIERS (add):", "throttling or preemption", "Batch calls", "Always:"})
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << expected << "\n" << outcome.output;
  const Outcome calm =
      fulcrum_in(data, quick(put(data, "calm.json", with_targets("1000", "1000")), {"--json", "-"}));
  const Json best = parsed(calm.output)["suite"]["rows"][0]["best"][0];
  EXPECT_TRUE(best["flags"].empty());
  EXPECT_EQ(best["real_time"], true);
  EXPECT_EQ(best["production"], true);
}

TEST(BenchSuite, ComparisonsStandBelowTheTablesOfASuiteWithTargets) {
  const Folder data;
  const auto path = put(data, "small.json", with_targets("1000", "1000"));
  const Outcome outcome = fulcrum_in(data, quick(path, {"--vs", "scalar"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("vec_add/scalar/default"), std::string::npos) << outcome.output;
}

Variables fake_gpu() { return {{"FULCRUM_MODULE_PATH", std::string(FULCRUM_TEST_MODULE_DIR) + "/gpu"}}; }

constexpr std::string_view kTwoRows = R"({
  "schema": "fulcrum.suite/1", "name": "two", "summary": "one row for the device, one without", "system": "Somebody",
  "regimes": ["resident"],
  "targets": {"real_time_seconds": 1, "stable_cv": 1000, "calls_per_second": 0.001, "slow_seconds": 1000,
              "high_variance_cv": 1000, "outlier_factor": 1000},
  "rows": [
    {"name": "add", "op": "vec_add", "shape": "n=1000", "budget_seconds": 0.001,
     "claims": {"seconds": {"mark": "claimed", "low": 0.0002, "high": 0.0005, "unit": "s"}}},
    {"name": "multiply", "op": "matmul", "shape": "M=4,N=4,K=4", "budget_seconds": 0.001}
  ]
})";

std::vector<std::string> on_the_device(const std::filesystem::path& suite,
                                       const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench",   "--suite",  suite, "--backend",   "fakegpu", "--variant",
                                        "default", "--budget", "0.2", "--precision", "0.5"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchSuite, RowsOfADeviceStandBesideTheBestOfTheCpuAndTheBudget) {
  const Folder data;
  const auto path = put(data, "two.json", kTwoRows);
  const Outcome outcome = fulcrum_in(data, on_the_device(path, {"--json", data / "out.json"}), fake_gpu());
  ASSERT_EQ(outcome.code, 0) << outcome.error << outcome.output;
  for (const char* expected : {"best CPU", "GPU resident", "on the device", "resident/budget", "simd/default",
                               "skipped: two/multiply", "there is no kernel 'matmul/fakegpu/*'"})
    EXPECT_NE(outcome.output.find(expected), std::string::npos) << expected << "\n" << outcome.output;
  const Json json = parsed(content(data / "out.json"));
  const Json& best = json["suite"]["rows"][0]["best"];
  ASSERT_EQ(best.size(), 2U) << "host and resident";
  EXPECT_EQ(best[0]["regime"], "host");
  EXPECT_EQ(best[1]["regime"], "resident");
  const double mean = json["results"][best[1]["result"].get<std::size_t>()]["seconds"]["mean"];
  EXPECT_NEAR(best[1]["budget_share"].get<double>(), mean / 0.001, 1e-9);
}

TEST(BenchSuite, ARowIsABatchOfRequestsInTheRegimeOverlapped) {
  const Folder data;
  const auto path = put(data, "two.json", kTwoRows);
  const Outcome outcome =
      fulcrum_in(data, on_the_device(path, {"--regime", "overlapped", "--json", "-"}), fake_gpu());
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  const Json& best = json["suite"]["rows"][0]["best"];
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[1]["regime"], "overlapped");
  EXPECT_GE(json["results"][best[1]["result"].get<std::size_t>()]["calls_per_sample"], 16);
}

TEST(BenchSuite, CsvHasAColumnForWhatTheSuiteSays) {
  const Folder data;
  const auto path = put(data, "two.json", kTwoRows);
  const Outcome outcome = fulcrum_in(data, on_the_device(path, {"--format", "csv"}), fake_gpu());
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const std::vector<std::string> lines = lines_of(outcome.output);
  const auto fields = [](const std::string& line) {
    bool quoted = false;
    return std::count_if(line.begin(), line.end(), [&](char c) {
      quoted ^= c == '"';
      return c == ',' && !quoted;
    });
  };
  ASSERT_GE(lines.size(), 3U) << outcome.output;
  EXPECT_EQ(lines[0].rfind("name,op,", 0), 0U) << "the columns of any bench come first";
  EXPECT_NE(lines[0].find(",suite,suite_row,sweep,best,budget_seconds,budget_share,"), std::string::npos);
  std::size_t best = 0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    EXPECT_EQ(fields(lines[i]), fields(lines[0])) << lines[i];
    EXPECT_NE(lines[i].find(R"("two","add",,)"), std::string::npos) << lines[i];
    EXPECT_NE(lines[i].find(",0.0002,0.0005,yes,"), std::string::npos) << lines[i];
    best += lines[i].find(R"("add",,yes,0.001,)") != std::string::npos;
  }
  EXPECT_EQ(best, 2U) << "the fastest on the host and the one on the device";
}

TEST(BenchSuite, MarkdownHasTheTablesOfTheSuiteAboveAllMeasurements) {
  const Folder data;
  const auto path = put(data, "two.json", kTwoRows);
  const Outcome with = fulcrum_in(data, on_the_device(path, {"--format", "markdown"}), fake_gpu());
  ASSERT_EQ(with.code, 0) << with.error;
  for (const char* expected :
       {"## Suite two", "### Fastest kernel of each row", "### CPU and GPU beside the budget",
        "### Budgets, claims and targets", "### Every measurement", "| row | budget | best CPU |",
        "Not measured: `two/multiply`"})
    EXPECT_NE(with.output.find(expected), std::string::npos) << expected << "\n" << with.output;
  const Outcome without = fulcrum_in(data, quick(put(data, "small.json", kSuite), {"--format", "markdown"}));
  EXPECT_NE(without.output.find("### Claims beside the fastest kernel"), std::string::npos) << without.output;
  EXPECT_EQ(without.output.find("CPU and GPU"), std::string::npos) << "there is no GPU";
}

TEST(BenchSuite, ARowMayBeChosenAndAnUnknownOneIsRefused) {
  const Outcome one = fulcrum({"bench", "--suite", "production", "--row", "dot_product", "--backend", "simd",
                               "--budget", "0.1", "--precision", "0.5", "--json", "-"});
  ASSERT_EQ(one.code, 0) << one.error;
  const Json json = parsed(one.output);
  ASSERT_EQ(json["suite"]["rows"].size(), 1u);
  EXPECT_EQ(json["results"][0]["op"], "dot");
  EXPECT_GE(json["results"][0]["samples"], 1);
  const Outcome unknown = fulcrum({"bench", "--suite", "production", "--row", "dot_produt"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.error.find("dot_product"), std::string::npos) << unknown.error;
  EXPECT_EQ(fulcrum({"bench", "dot", "--row", "x"}).code, 2);
}

TEST(BenchSuite, AnInputThatMayBeLeftAwayIsThereOnceItIsDescribed) {
  const Folder data;
  const Outcome outcome = fulcrum_in(
      data, {"bench", "matmul", "--shape", "M=4,N=8,K=8,epilogue=gelu", "--input", "bias=uniform -1 1",
             "--backend", "scalar", "--variant", "default", "--budget", "0.1", "--precision", "0.5"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(BenchSuite, DescribedInputsAreAnotherCaseOfTheRecord) {
  const Folder data;
  const std::string record = data / "run.jsonl";
  const std::vector<std::string> plain = {"bench",    "vec_add", "--variant",   "default",
                                          "--shape",  "n=1000",  "--backend",   "simd",
                                          "--budget", "0.1",     "--precision", "0.5"};
  std::vector<std::string> first = plain, second = plain;
  first.insert(first.end(), {"--record", record});
  second.insert(second.end(), {"--resume", record, "--input", "a=index"});
  ASSERT_EQ(fulcrum_in(data, first).code, 0);
  ASSERT_EQ(fulcrum_in(data, second).code, 0);
  ASSERT_EQ(fulcrum_in(data, second).code, 0) << "the third run finds both";
  std::vector<std::string> cases;
  for (const std::string& line : lines_of(content(record))) {
    const Json json = parsed(line);
    if (json["type"] == "estimate") cases.push_back(json["case_id"]);
  }
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[1], cases[0] + "/inputs:a=index");
}

TEST(BenchSuite, AFinishedRunIsShownAgainFromItsRecord) {
  const Folder data;
  const auto path = put(data, "small.json", with_targets("1e-9", "0.1"));
  const std::string record = data / "run.jsonl";
  ASSERT_EQ(fulcrum_in(data, quick(path, {"--scaling", "--record", record, "--json", data / "a.json"})).code,
            0);
  ASSERT_EQ(fulcrum_in(data, {"bench", "--resume", record, "--json", data / "b.json"}).code, 0);
  EXPECT_EQ(content(data / "a.json"), content(data / "b.json"));
}

TEST(BenchSuite, SeveralProcessesMeasureTheDescribedInputsToo) {
  const Folder data;
  const Outcome outcome =
      fulcrum_in(data, quick(put(data, "small.json", kSuite), {"--processes", "2", "--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_EQ(parsed(outcome.output)["results"][0]["processes"], 2);
}

TEST(BenchSuite, ScalingMeasuresTheSweepsAndNamesTheClaim) {
  const Folder data;
  const Outcome outcome =
      fulcrum_in(data, quick(put(data, "small.json", kSuite), {"--scaling", "--json", "-"}));
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json json = parsed(outcome.output);
  EXPECT_EQ(json["results"].size(), 4u) << "the row on its inputs, and three sizes on drawn ones";
  ASSERT_EQ(json["scaling"].size(), 1u);
  const Json& family = json["scaling"][0];
  EXPECT_EQ(family["family"], "add, length (simd/default)");
  EXPECT_EQ(family["size"], "n");
  EXPECT_EQ(family["sizes"], 3);
  EXPECT_NEAR(family["expected_exponent"].get<double>(), 1, 1e-9);
  EXPECT_EQ(family["claimed_exponent"], 1.0);
  EXPECT_EQ(family["interval_from"], "pairs");
}

TEST(BenchSuite, WhatDoesNotFitIsRefusedBeforeAnythingIsMeasured) {
  const Folder data;
  std::string bad_input(kSuite), bad_shape(kSuite), nothing(kSuite);
  bad_input.replace(bad_input.find("index"), 5, "indes");
  bad_shape.replace(bad_shape.find("n=1000"), 6, "m=1000");
  nothing.replace(nothing.find("vec_add"), 7, "vec_sub");
  struct Case {
    std::vector<std::string> arguments;
    int code;
    std::string expected;
  };
  const Case cases[] = {
      {quick(put(data, "a.json", bad_input)), 2, "row add: 'indes' describes no input"},
      {quick(put(data, "b.json", bad_shape)), 2, "row add: vec_add has no size or parameter 'm'"},
      {quick(put(data, "c.json", nothing)), 3, "no row of suite small can be measured"},
      {quick(put(data, "d.json", kSuite), {"--shape", "n=1"}), 2, "bring their own --shape"},
      {quick(data / "none.json"), 3, "none.json"},
      {{"bench", "--suite", "producton"}, 2, "unknown suite 'producton'"},
      {{"bench", "dot", "--suite", "production"}, 2, "exclude each other"},
      {{"bench", "dot", "--input", "z=index"}, 2, "dot has no input 'z'"},
  };
  for (const auto& [arguments, code, expected] : cases) {
    const Outcome outcome = fulcrum_in(data, arguments);
    EXPECT_EQ(outcome.code, code) << expected;
    EXPECT_NE(outcome.error.find(expected), std::string::npos) << outcome.error;
  }
}

TEST(Warnings, FollowTheMeanTheVariationAndTheMaximum) {
  const SuiteTargets targets{.slow_seconds = 5e-3, .high_variance_cv = 0.2, .outlier_factor = 2};
  using enum Warning;
  const auto of = [&](double mean, double cv, double max) {
    return warnings_of(targets, Estimate{.mean = mean, .cv = cv, .max = max});
  };
  EXPECT_TRUE(of(5e-3, 0.2, 10e-3).empty());
  EXPECT_EQ(of(5.1e-3, 0.1, 6e-3), std::vector{slow});
  EXPECT_EQ(of(1e-3, 0.21, 1.5e-3), std::vector{high_variance});
  EXPECT_EQ(of(1e-3, 0.1, 2.1e-3), std::vector{outliers});
  EXPECT_EQ(of(6e-3, 0.5, 30e-3), (std::vector{slow, high_variance, outliers}));
}

TEST(TargetTables, ListTheFiveSlowestRowsAndTheThreeThatVaryMost) {
  Suite suite;
  suite.targets = SuiteTargets{.real_time_seconds = 1e-3, .stable_cv = 0.1, .calls_per_second = 100};
  std::vector<Measurement> results(7);
  for (std::size_t i = 0; i < results.size(); ++i) {
    suite.rows.push_back(SuiteRow{.name = "r" + std::to_string(i)});
    const double mean = 1e-4 * double(i + 1);
    results[i].seconds = Estimate{.median = mean, .mean = mean, .cv = i == 6 ? NAN : 0.05 * double(6 - i)};
    results[i].quality = Quality::stable;
  }
  suite.rows[0].budget_seconds = 2e-4;
  std::vector<SuiteLine> lines;
  for (std::size_t i = 0; i < results.size(); ++i) lines.push_back({&suite.rows[i], {&results[i]}});
  const std::string text = target_tables(suite, lines, Context({"fulcrum"}));
  for (const char* expected : {"Slowest: r6 700 us, r5 600 us, r4 500 us, r3 400 us, r2 300 us\n",
                               "Highest CV: r0 30.0 %, r1 25.0 %, r2 20.0 %\n", "200 us  50.0 %"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
}

/// A suite with targets whose one row, of the op given, took `seconds`.
std::vector<std::string> advice_for(const std::string& op, Estimate seconds, Environment environment = {},
                                    std::vector<Sample> raw = {}) {
  Suite suite;
  suite.targets = SuiteTargets{.slow_seconds = 5e-3, .high_variance_cv = 0.2, .outlier_factor = 2};
  const SuiteRow row{.name = "it", .op = op};
  Measurement m;
  m.op = op;
  m.seconds = seconds;
  m.seconds.median = seconds.mean;
  m.quality = Quality::stable;
  m.samples = static_cast<std::int64_t>(raw.size());
  m.raw = std::move(raw);
  m.environment = environment;
  m.shape.set("B", std::int64_t{32});
  return advice(suite, {SuiteLine{&row, {&m}}});
}

TEST(Advice, SaysWhatFitsTheOpAndTheFlag) {
  const Estimate slow{.mean = 6e-3, .cv = 0.01, .max = 6e-3};
  EXPECT_NE(advice_for("lstm_cell", slow)[1].find("the batch is 32 now"), std::string::npos);
  EXPECT_NE(advice_for("pixel_entropy", slow)[0].find("W=auto"), std::string::npos);
  EXPECT_NE(advice_for("matmul", slow)[0].find("only if it measures faster"), std::string::npos);
  EXPECT_NE(advice_for("conv2d", slow)[0].find("ceiling"), std::string::npos);
  const Estimate varied{.mean = 1e-3, .cv = 0.3, .max = 1e-3};
  EXPECT_NE(advice_for("dot", varied)[0].find("other programs"), std::string::npos);
  const Estimate calm{.mean = 1e-3, .cv = 0.01, .max = 1e-3};
  ASSERT_EQ(advice_for("dot", calm).size(), 1u) << "what always holds, and nothing else";
  EXPECT_EQ(advice_for("dot", Estimate{.mean = 1e-6, .cv = 0.01, .max = 1e-6})[0],
            "Batch calls that take less than 100 us: it.");
}

TEST(Advice, ShowsWhenOutliersFellAndWhatTheMachineDid) {
  const Estimate seconds{.mean = 1e-3, .cv = 0.01, .max = 5e-3};
  const std::vector<Sample> raw = {{9e-3, 0, 0}, {1e-3, 2, 0}, {1e-3, 2, 0}, {5e-3, 2, 1}, {1e-3, 2, 0}};
  const std::string text =
      advice_for("dot", seconds, {.clock_hz_before = 3e9, .clock_hz_after = 2.5e9}, raw)[1];
  for (const char* expected :
       {"1 of 5 samples", "2.00 ms (context switch)", "3.00 GHz before and 2.50 GHz after"})
    EXPECT_NE(text.find(expected), std::string::npos) << text;
}

/// Rows of one kernel whose time and work are given functions of the size.
template <class Seconds, class Bytes>
std::vector<Measurement> grown(const std::vector<std::int64_t>& sizes, const Seconds& seconds,
                               const Bytes& bytes) {
  std::vector<Measurement> rows;
  for (const std::int64_t n : sizes) {
    Measurement& m = rows.emplace_back();
    m.op = "op";
    m.quality = Quality::stable;
    m.shape.set("M", n);
    m.shape.set("N", n);
    m.shape.set("k", std::int64_t{3});
    m.seconds.median = seconds(double(n));
    m.seconds.ci_low = 0.99 * m.seconds.median;
    m.seconds.ci_high = 1.01 * m.seconds.median;
    m.work.read_bytes = bytes(double(n));
  }
  return rows;
}

std::optional<GrowthFinding> growth(const std::vector<Measurement>& rows) {
  std::vector<const Measurement*> pointers;
  for (const Measurement& row : rows) pointers.push_back(&row);
  return growth_of(pointers);
}

const std::vector<std::int64_t> kSizes = {10, 20, 40, 80, 160};
double square(double n) { return n * n; }

TEST(Growth, APowerLawIsFoundWithItsExponentAndItsInterval) {
  const auto finding = growth(grown(
      kSizes, [](double n) { return 1e-9 * n * n; }, square));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->size, "M=N");
  EXPECT_NEAR(finding->exponent, 2, 1e-9);
  EXPECT_NEAR(finding->expected, 2, 1e-9);
  EXPECT_FALSE(finding->from_pairs);
  EXPECT_TRUE(finding->one_power);
  EXPECT_EQ(finding->verdict, GrowthVerdict::as_expected);
}

TEST(Growth, OverheadFlattensItAndALostCacheMakesItSteep) {
  const auto flat = growth(grown(
      kSizes, [](double n) { return 1e-3 + 1e-9 * n * n; }, square));
  EXPECT_EQ(flat->verdict, GrowthVerdict::flatter);
  const auto steep = growth(grown(
      kSizes, [](double n) { return 1e-9 * n * n * n; }, square));
  EXPECT_EQ(steep->verdict, GrowthVerdict::steeper);
  const auto bent = growth(grown(
      kSizes, [](double n) { return n < 30 ? 1e-9 : 1e-6 * n; }, square));
  EXPECT_FALSE(bent->one_power);
}

TEST(Growth, FewSizesGiveTheRangeOfTheirPairs) {
  const auto finding = growth(grown(
      {10, 20}, [](double n) { return 1e-9 * n; }, square));
  ASSERT_TRUE(finding);
  EXPECT_TRUE(finding->from_pairs);
  EXPECT_NEAR(finding->exponent, 1, 1e-9);
  EXPECT_NEAR(finding->interval.low, 1 - std::log(1.01 / 0.99) / std::log(2), 1e-9);
  EXPECT_NEAR(finding->interval.high, 1 + std::log(1.01 / 0.99) / std::log(2), 1e-9);
  auto doubtful = grown({10, 20}, square, square);
  doubtful[1].seconds.level = 0;  // of a single sample
  EXPECT_EQ(growth(doubtful)->verdict, GrowthVerdict::undecided);
  EXPECT_FALSE(growth(grown({10}, square, square)));
  EXPECT_FALSE(growth(grown({10, 10}, square, square)));
}

TEST(Growth, SizesThatDoNotMoveTogetherAreFittedOverTheWork) {
  auto rows = grown(
      kSizes, [](double n) { return 1e-9 * n * n; }, square);
  rows[1].shape.set("N", std::int64_t{7});
  const auto finding = growth(rows);
  EXPECT_EQ(finding->size, "work");
  EXPECT_NEAR(finding->expected, 1, 1e-9);
  EXPECT_NEAR(finding->exponent, 1, 1e-9);
}

TEST(Growth, ManyOperationsAByteMakeArithmeticTheMeasure) {
  auto rows = grown(
      kSizes, [](double n) { return 1e-9 * n * n * n; }, square);
  for (Measurement& row : rows) row.work.issue_slots = std::pow(double(row.shape.dim("M")), 3);
  const auto finding = growth(rows);
  EXPECT_EQ(finding->expected_from, "arithmetic");
  EXPECT_NEAR(finding->expected, 3, 1e-9);
  EXPECT_EQ(finding->verdict, GrowthVerdict::as_expected);
}

TEST(Growth, TheSentenceNamesTheClaimAndTheDoubling) {
  const auto rows = grown(
      kSizes, [](double n) { return 1e-9 * n * n * n; }, square);
  Family family{"it", {}, nullptr};
  for (const Measurement& row : rows) family.rows.push_back(&row);
  Claim claim;
  claim.figure.value = 2;
  family.claimed = &claim;
  const std::string text = growth_sentence(family);
  for (const char* expected : {"it: time grows as (M=N)^3.00 [3.00, 3.00], its work as (M=N)^2.00",
                               "(claimed ^2)", "steeper than expected", "8x the time, by its bytes 4x"})
    EXPECT_NE(text.find(expected), std::string::npos) << text;
}

TEST(Figures, AreWrittenInTheirUnit) {
  EXPECT_EQ(figure_text({.value = 2e-6}, "s"), "2.00 us");
  EXPECT_EQ(figure_text({.low = 2e-4, .high = 5e-4}, "s"), "200 us to 500 us");
  EXPECT_EQ(figure_text({.value = 0.45}, "share"), "45.0 %");
  EXPECT_EQ(figure_text({.value = 609000}, "x"), "609,000x");
  EXPECT_EQ(figure_text({.low = 107, .high = 661}, "vectors"), "107 to 661 vectors");
  EXPECT_EQ(figure_text({.values = {1, NAN}}, ""), "1, -");
  EXPECT_EQ(figure_text({.text = "words"}, ""), "words");
}

}  // namespace
}  // namespace fulcrum::cli
