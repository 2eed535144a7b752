// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands that decide, as a user meets them on a machine without a GPU: plan, report, breakeven, roofline, batch.
#include <cmath>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

constexpr const char* kTinySuite = R"({
  "schema": "fulcrum.suite/1", "name": "tiny", "system": "a test", "summary": "three small ops",
  "regimes": ["resident"],
  "rows": [
    {"name": "squash", "op": "gelu", "shape": "n=4096", "share": 0.6, "frequency": 1, "effort_days": 3},
    {"name": "sum", "op": "dot", "shape": "n=4096", "share": 0.25, "frequency": 0.8, "effort_days": 3},
    {"name": "trifle", "op": "relu", "shape": "n=1024", "share": 0.01, "frequency": 1, "effort_days": 0.1}
  ]})";

/// One measured machine for all of them.
class Deciding : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Folder;
    const Outcome measured = fulcrum_in(*data_, {"machine", "--only", "cpu", "--budget", "1"});
    ASSERT_EQ(measured.code, 0) << measured.error;
    std::ofstream(suite()) << kTinySuite;
  }
  static void TearDownTestSuite() {
    delete data_;
    data_ = nullptr;
  }
  static std::string suite() { return *data_ / "tiny.json"; }
  static Outcome run(std::vector<std::string> arguments) { return fulcrum_in(*data_, std::move(arguments)); }
  static Folder* data_;
};
Folder* Deciding::data_ = nullptr;

TEST_F(Deciding, APlanRanksBySavedTimeFrequencyAndEffort) {
  const Folder out;
  const Outcome outcome = run({"plan", "--suite", suite(), "--json", out / "plan.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json document = read(out / "plan.json");
  EXPECT_EQ(document["schema"], "fulcrum.plan/1");
  const Json& rows = document["plans"][0]["rows"];
  ASSERT_GE(rows.size(), 3u);
  double above = INFINITY;
  for (const Json& row : rows) {
    const double rank = row["saved"]["value"].get<double>() * row["frequency"]["value"].get<double>() /
                        row["effort_days"]["value"].get<double>();
    EXPECT_NEAR(rank, row["rank"].get<double>(), 1e-9) << row;
    EXPECT_LE(rank, above) << "rows are not in the order of their formula: " << row["name"];
    above = rank;
    EXPECT_TRUE(has("ABCD", row["best_cpu"]["grade"].get<std::string>()));
    if (row["name"] == "trifle") {
      EXPECT_NE(row["verdict"], "offload now") << "a share of 1 %";
    }
  }
}

TEST_F(Deciding, ASecondPlanMeasuresNothing) {
  ASSERT_EQ(run({"plan", "--suite", suite()}).code, 0);
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(*data_ / "measured")) file = entry.path();
  const std::string before = content(file);
  ASSERT_EQ(run({"plan", "--suite", suite()}).code, 0);
  EXPECT_EQ(content(file), before);
}

TEST_F(Deciding, EveryTimeOfARowIsExplainedByItsTerms) {
  const Outcome outcome = run({"plan", "--suite", suite(), "--explain", "squash"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "best GPU: ")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "launch")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "Engram's score")) << outcome.output;
  const Outcome unknown = run({"plan", "--suite", suite(), "--explain", "squush"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(has(unknown.error, "did you mean 'squash'")) << unknown.error;
}

TEST_F(Deciding, SeveralDevicesStandBesideEachOtherAndDataSheetsSayWhatTheyAre) {
  const Folder out;
  const Outcome outcome =
      run({"plan", "--suite", suite(), "--gpu", "h200,l4", "--price", "2.5", "--json", out / "plan.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json document = read(out / "plan.json");
  ASSERT_EQ(document["plans"].size(), 2u);
  EXPECT_EQ(document["plans"][1]["gpu"], "l4");
  for (const Json& row : document["plans"][1]["rows"]) {
    if (!row["best_gpu"]["missing"].is_null()) continue;
    EXPECT_EQ(row["best_gpu"]["grade"], "D");
    if (row["action"] == "offload") {
      EXPECT_GT(row["cost_per_million"].get<double>(), 0);
    }
  }
}

TEST_F(Deciding, TheReportIsOneFileInEachOfItsFormats) {
  const Folder out;
  ASSERT_EQ(run({"report", "--suite", suite(), "--output", out / "page.html"}).code, 0);
  const std::string page = content(out / "page.html");
  EXPECT_TRUE(has(page, "fulcrum.report/1"));
  EXPECT_TRUE(has(page, "squash"));
  const Outcome markdown = run({"report", "--suite", suite(), "--format", "markdown", "--output", "-"});
  ASSERT_EQ(markdown.code, 0) << markdown.error;
  EXPECT_TRUE(has(markdown.output, "| squash")) << markdown.output;
  ASSERT_EQ(run({"report", "--suite", suite(), "--format", "json", "--output", out / "page.json"}).code, 0);
  const Json document = read(out / "page.json");
  EXPECT_EQ(document["schema"], "fulcrum.report/1");
  EXPECT_FALSE(document["breakevens"].empty());
  EXPECT_FALSE(document["roofline"]["points"].empty());
  EXPECT_FALSE(document["commands"].empty());
}

TEST_F(Deciding, AReportNeverReplacesAFileThatIsNotOurs) {
  const Folder out;
  std::ofstream(out / "thesis.html") << "ten years of work";
  const Outcome outcome = run({"report", "--suite", suite(), "--output", out / "thesis.html"});
  EXPECT_EQ(outcome.code, 3) << outcome.error;
  EXPECT_EQ(content(out / "thesis.html"), "ten years of work");
}

TEST_F(Deciding, BadFilesAreNamedWithTheFieldAndChangeNothing) {
  const Folder out;
  std::ofstream(out / "cut.json") << R"({"schema": "fulcrum.bench/1", "results": [{"op": "gelu")";
  std::ofstream(out / "other.json") << R"({"schema": "fulcrum.machine/1"})";
  std::ofstream(out / "field.json") << R"({"schema": "fulcrum.bench/1", "results": [{"op": 7}]})";
  std::ofstream(out / "suite.json")
      << R"({"schema": "fulcrum.suite/1", "name": "x", "system": "s", "summary": "t", "rows": [], "colour": "red"})";
  for (const std::string name : {"cut.json", "other.json", "field.json"}) {
    const std::string before = content(out / name);
    const Outcome outcome = run({"plan", "--results", out / name});
    EXPECT_EQ(outcome.code, 3) << name << outcome.error;
    EXPECT_TRUE(has(outcome.error, name)) << outcome.error;
    EXPECT_EQ(content(out / name), before);
  }
  EXPECT_TRUE(has(run({"plan", "--results", out / "field.json"}).error, "op"));
  const Outcome suite = run({"plan", "--suite", out / "suite.json"});
  EXPECT_EQ(suite.code, 3) << suite.error;
  EXPECT_TRUE(has(suite.error, "colour")) << suite.error;
  const Outcome gpu = run({"plan", "--suite", Deciding::suite(), "--gpu", "h2000"});
  EXPECT_EQ(gpu.code, 2) << gpu.error;
}

TEST_F(Deciding, AStoreOfTimesThatIsDamagedIsNamedAndLeftAlone) {
  const Folder other;
  std::filesystem::copy(
      data_->path(), other.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  ASSERT_EQ(fulcrum_in(other, {"plan", "--suite", suite()}).code, 0);
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(other / "measured")) file = entry.path();
  std::ofstream(file) << "{";
  const Outcome outcome = fulcrum_in(other, {"plan", "--suite", suite()});
  EXPECT_EQ(outcome.code, 3) << outcome.error;
  EXPECT_TRUE(has(outcome.error, file.filename().string())) << outcome.error;
  EXPECT_EQ(content(file), "{");
}

TEST_F(Deciding, AnElementWiseOpOnHostDataIsNeverForTheGpuAndSaysWhy) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "CPU kernels of such a build are some ten times slower, and lose";
#endif
  const Folder out;
  const Outcome outcome = run({"breakeven", "relu", "--regime", "roundtrip", "--to", "65536", "--budget", "5",
                               "--json", out / "b.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json document = read(out / "b.json");
  EXPECT_EQ(document["schema"], "fulcrum.breakeven/1");
  const Json& first = document["breakevens"][0];
  EXPECT_EQ(first["kind"], "never") << outcome.output;
  EXPECT_FALSE(first["reason"].is_null());
  EXPECT_GE(first["cpu"].size(), 10u);
}

TEST_F(Deciding, ACallThatDoesNotFitTheBudgetIsNotBegun) {
  const Folder other, out;
  std::filesystem::copy(*data_ / "machines", other / "machines");
  const Outcome outcome =
      fulcrum_in(other, {"breakeven", "lstm_sequence", "--shape", "T=4096,B=32,I=64,H=128", "--dim", "T",
                         "--from", "4096", "--to", "16384", "--budget", "0.5", "--json", out / "b.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_FALSE(std::filesystem::exists(other / "measured")) << outcome.output;
  const Json document = read(out / "b.json");
  for (const Json& point : document["breakevens"][0]["cpu"]) EXPECT_FALSE(point["measured"]);
}

TEST_F(Deciding, AnIndexTooLargeForTheBudgetIsNotBuiltThoughAWalkTouchesLittleOfIt) {
  const Folder other, out;
  std::filesystem::copy(*data_ / "machines", other / "machines");
  const Outcome outcome = fulcrum_in(
      other, {"breakeven", "hnsw_search", "--shape", "Q=100,N=1000,D=128,k=10,ef=64", "--dim", "N",
              "--regime", "roundtrip", "--gpu", "h200", "--budget", "2", "--json", out / "b.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  const Json document = read(out / "b.json");
  double largest = 0, measured = 0;
  for (const Json& point : document["breakevens"][0]["cpu"]) {
    const auto n = point["n"].get<double>();
    largest = std::max(largest, n);
    if (point["measured"].get<bool>()) measured = std::max(measured, n);
  }
  EXPECT_GE(largest, 1 << 20) << "the curve itself goes on";
  EXPECT_LE(measured * 128 * 4, 4e6);
}

TEST_F(Deciding, ABatchKeepsItsLatencyAndABadOneIsRefused) {
  const Folder out;
  const Outcome outcome = run({"batch", "lstm_cell", "--shape", "B=1,I=16,H=16", "--to", "8", "--latency",
                               "1s", "--budget", "5", "--json", out / "b.json"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_GT(read(out / "b.json")["cpu"]["batch"].get<double>(), 0);
  EXPECT_EQ(run({"batch", "lstm_cell", "--latency", "soon"}).code, 2);
  EXPECT_EQ(run({"batch", "lstm_cell", "--shape", "B=1,I=16,H=16", "--to", "2", "--latency", "1ns", "--gpu",
                 "none"})
                .code,
            4);
}

TEST_F(Deciding, ARooflineNamesTheRoofThatBinds) {
  const Outcome outcome = run({"roofline", "gelu", "--shape", "n=4096", "--gpu", "none"});
  ASSERT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "gelu")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "Roofs:")) << outcome.output;
}

TEST_F(Deciding, PredictionsAreAppendedAndCheckedLater) {
  const Folder out;
  const std::string ledger = out / "ledger.jsonl";
  ASSERT_EQ(run({"plan", "--suite", suite(), "--predictions", ledger}).code, 0);
  const std::size_t first = lines_of(content(ledger)).size();
  EXPECT_EQ(first, 6u) << "three rows, two regimes";
  EXPECT_EQ(run({"plan", "--verify", ledger}).code, 4) << "nothing is measured yet";
  EXPECT_EQ(lines_of(content(ledger)).size(), first);
  std::ofstream(ledger, std::ios::app) << "{\"schema\": \"fulcrum.prediction/1\"}\n";
  const Outcome broken = run({"plan", "--verify", ledger});
  EXPECT_EQ(broken.code, 3) << broken.error;
  EXPECT_TRUE(has(broken.error, "ledger.jsonl:7")) << broken.error;
}

TEST_F(Deciding, AProgramThatIsStoppedIsPlannedFromWhatRanUntilThen) {
  const std::string loop =
      "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; kill -INT $PPID; while :; do :; done";
  const Folder out;
  const Outcome outcome = run({"plan", "--json", out / "plan.json", "--", "sh", "-c", loop});
  if (outcome.code == 3 && has(outcome.error, "not allowed")) GTEST_SKIP() << outcome.error;
  EXPECT_EQ(outcome.code, 130) << outcome.error;
  EXPECT_TRUE(has(outcome.output, "interrupted: this is about what ran until then")) << outcome.output;
  EXPECT_TRUE(has(outcome.output, "rows hold ")) << outcome.output;
  EXPECT_GE(read(out / "plan.json")["plans"][0]["rows"].size(), 1u);
  // The command that explains a row is about this program and not about the demo.
  EXPECT_TRUE(has(outcome.output, " -- sh -c 'i=0; while [ $i -lt 400000 ]")) << outcome.output;
}

}  // namespace
}  // namespace fulcrum::cli
