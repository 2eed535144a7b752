// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench on a GPU that is none: regimes, paths, the ledger and the CPU beside it. What is fast does not matter here.
#include <algorithm>
#include <set>

#include "cli/program.h"

namespace fulcrum::cli {
namespace {

Variables fake_gpu(bool there = true) {
  Variables variables = {{"FULCRUM_MODULE_PATH", std::string(FULCRUM_TEST_MODULE_DIR) + "/gpu"}};
  if (!there) variables.emplace_back("FAKEGPU_UNAVAILABLE", "1");
  return variables;
}

struct Ran {
  Outcome outcome;
  Json document;
  std::string record;

  std::set<std::string> rows() const {  // "fakegpu roundtrip auto"
    std::set<std::string> names;
    for (const Json& row : document.value("results", Json::array())) {
      names.insert(row["backend"].get<std::string>() + " " + row["regime"].get<std::string>() +
                   (row["path"] == "" ? "" : " " + row["path"].get<std::string>()));
    }
    return names;
  }
  Json row(const std::string& backend, const std::string& regime) const {
    for (const Json& row : document.value("results", Json::array())) {
      if (row["backend"] == backend && row["regime"] == regime) return row;
    }
    return nullptr;
  }
};

Ran bench(std::vector<std::string> more, bool there = true) {
  const Folder data;
  const std::string file = data / "out.json", record = data / "record.jsonl";
  std::vector<std::string> arguments = {"bench",       "relu", "--shape", "n=1000", "--budget", "0.2",
                                        "--precision", "0.5",  "--json",  file,     "--record", record};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Ran ran{fulcrum_in(data, arguments, fake_gpu(there)), {}, content(record)};
  const auto document = json_parse(content(file), file);
  if (document.ok()) ran.document = *document;
  return ran;
}

const std::vector<std::string> kGpu = {"--backend", "fakegpu", "--variant", "default"};
std::vector<std::string> gpu_with(std::vector<std::string> more) {
  more.insert(more.end(), kGpu.begin(), kGpu.end());
  return more;
}

TEST(GpuRegimes, NoGpuTimeStandsAlone) {
  const Ran ran = bench(kGpu);
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error << ran.outcome.output;
  const auto rows = ran.rows();
  EXPECT_TRUE(rows.contains("fakegpu roundtrip auto"));
  EXPECT_TRUE(rows.contains("fakegpu resident"));
  EXPECT_TRUE(rows.contains("simd host")) << "the best of the CPU is measured beside";
  EXPECT_NE(ran.outcome.output.find("vs CPU (medians)"), std::string::npos) << ran.outcome.output;
  const Json resident = ran.row("fakegpu", "resident");
  EXPECT_GE(resident["device_calls"].get<int>(), 20);
  EXPECT_TRUE(resident["device_seconds"].is_object());
  EXPECT_TRUE(resident["environment"]["gpu"].is_object());
}

TEST(GpuRegimes, ReuseAndManagedRowsSayTheirNumberAndPath) {
  const Ran ran = bench(gpu_with({"--regime", "reuse=16,managed"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  EXPECT_EQ(ran.row("fakegpu", "reuse")["reuse"], 16);
  EXPECT_TRUE(ran.rows().contains("fakegpu managed managed"));
  EXPECT_TRUE(ran.rows().contains("fakegpu managed managed_prefetch")) << "with and without are two rows";
  EXPECT_NE(ran.record.find("/regime:reuse=16/path:auto/cache:warm"), std::string::npos);
  EXPECT_NE(ran.outcome.output.find("reuse=16"), std::string::npos) << ran.outcome.output;
}

TEST(GpuRegimes, PathsAreMeasuredBesideEachOther) {
  const Ran ran = bench(gpu_with({"--regime", "roundtrip", "--path", "copy,latency"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error;
  EXPECT_TRUE(ran.rows().contains("fakegpu roundtrip copy"));
  EXPECT_TRUE(ran.rows().contains("fakegpu roundtrip latency"));
}

TEST(GpuRegimes, OverlappedRowsSayHowManyCallsWereUnderWay) {
  const Ran ran = bench(gpu_with({"--regime", "overlapped", "--vs", "simd"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error << ran.outcome.output;
  EXPECT_TRUE(ran.rows().contains("fakegpu overlapped overlapped"));
  EXPECT_TRUE(ran.rows().contains("simd host")) << "the best of the CPU is measured beside";
  const Json row = ran.row("fakegpu", "overlapped");
  EXPECT_GE(row["calls_per_sample"].get<int>(), 16) << "fewer would measure how a pipeline fills";
  EXPECT_EQ(row["detail"].get<std::string>().rfind("overlapped; one call alone", 0), 0U);
  EXPECT_NE(ran.record.find("/regime:overlapped/path:overlapped/cache:warm"), std::string::npos);
  EXPECT_EQ(ran.document["comparisons"][0]["regime"], "overlapped");
}

TEST(GpuRegimes, AFirstCallIsOneSampleAProcess) {
  const Ran ran = bench(gpu_with({"--regime", "first_call"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error << ran.outcome.output;
  const Json row = ran.row("fakegpu", "first_call");
  EXPECT_EQ(row["processes"], 6);
  EXPECT_EQ(row["samples"], 6);
}

TEST(GpuRegimes, TheLedgerAddsUpAndStandsUnderTheTable) {
  const Ran ran = bench(gpu_with({"--regime", "roundtrip", "--ledger"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error << ran.outcome.output;
  const Json ledger = ran.row("fakegpu", "roundtrip")["ledger"];
  ASSERT_TRUE(ledger.is_object()) << ran.document.dump(1);
  double sum = 0;
  for (const char* phase :
       {"alloc", "pin", "h2d", "launch", "queue", "kernel", "sync", "d2h", "migrate", "free", "unattributed"})
    sum += ledger[phase].get<double>();
  const double whole = ledger["end_to_end_instrumented"];
  EXPECT_NEAR(sum, whole, 1e-9 * whole);
  EXPECT_GT(ledger["end_to_end_bare"].get<double>(), 0);
  EXPECT_TRUE(ledger.contains("residual") && ledger.contains("perturbation") && ledger.contains("busy"));
  EXPECT_NE(ran.outcome.output.find("ledger of relu/fakegpu/default"), std::string::npos);
  EXPECT_NE(ran.outcome.output.find("unattributed"), std::string::npos);
  EXPECT_NE(ran.record.find("\"type\":\"ledger\""), std::string::npos);
  EXPECT_TRUE(ran.row("simd", "host")["ledger"].is_null());
}

TEST(GpuRegimes, ABaselineOfTheOtherKindKeepsItsOwnRegime) {
  const Ran ran = bench(gpu_with({"--regime", "resident", "--vs", "simd"}));
  ASSERT_EQ(ran.outcome.code, 0) << ran.outcome.error << ran.outcome.output;
  ASSERT_EQ(ran.document["comparisons"].size(), 1U);
  EXPECT_EQ(ran.document["comparisons"][0]["a"], "relu/fakegpu/default");
  EXPECT_EQ(ran.document["comparisons"][0]["b"], "relu/simd/default");
  EXPECT_EQ(ran.document["comparisons"][0]["regime"], "resident");
  EXPECT_FALSE(ran.document.contains("not_measured")) << ran.document.dump(1);

  const Ran reverse = bench({"--backend", "scalar", "--regime", "roundtrip", "--vs", "fakegpu"});
  ASSERT_EQ(reverse.outcome.code, 0) << reverse.outcome.error << reverse.outcome.output;
  EXPECT_TRUE(reverse.rows().contains("scalar host"));
  EXPECT_TRUE(reverse.rows().contains("fakegpu roundtrip auto"));
  ASSERT_EQ(reverse.document["comparisons"].size(), 1U);
  EXPECT_EQ(reverse.document["comparisons"][0]["b"], "relu/fakegpu/default");
}

TEST(GpuRegimes, AWrongKernelIsInvalidAndTheOthersAreMeasured) {
  const Ran ran = bench({"--backend", "fakegpu", "--regime", "resident"});
  EXPECT_EQ(ran.outcome.code, 5) << ran.outcome.output;
  EXPECT_FALSE(ran.row("fakegpu", "resident").is_null());
  EXPECT_NE(ran.outcome.output.find("WRONG: relu/fakegpu/wrong"), std::string::npos) << ran.outcome.output;
}

TEST(GpuRegimes, ADeviceThatIsNotThereIsNotRunAndNeverZero) {
  const Ran alone = bench(kGpu, false);
  EXPECT_EQ(alone.outcome.code, 3);
  EXPECT_NE(alone.outcome.error.find("switched off"), std::string::npos) << alone.outcome.error;
  const Ran beside = bench({"--backend", "scalar,fakegpu"}, false);
  EXPECT_EQ(beside.outcome.code, 3);
  EXPECT_TRUE(beside.rows().contains("scalar host"));
  ASSERT_EQ(beside.document["not_measured"].size(), 1U);
  EXPECT_EQ(beside.document["not_measured"][0]["row"], "relu/fakegpu/*");
  EXPECT_NE(beside.outcome.output.find("not run: relu/fakegpu/*"), std::string::npos)
      << beside.outcome.output;
}

TEST(GpuRegimes, ImpossibleRequestsAreUsageErrors) {
  const std::vector<std::vector<std::string>> requests = {
      {"--backend", "scalar", "--regime", "resident"},
      {"--backend", "scalar", "--ledger"},
      {"--backend", "scalar", "--path", "copy"},
      gpu_with({"--regime", "reuse"}),
      gpu_with({"--regime", "reuse=0"}),
      gpu_with({"--regime", "resident=3"}),
      gpu_with({"--regime", "overlapped=8"}),
      gpu_with({"--regime", "overlapped", "--path", "copy"}),
      gpu_with({"--regime", "sideways"}),
      gpu_with({"--path", "teleport"}),
      gpu_with({"--regime", "resident", "--path", "copy"}),
      gpu_with({"--regime", "roundtrip", "--path", "managed"}),
  };
  for (const auto& request : requests) {
    const Ran ran = bench(request);
    std::string words;
    for (const std::string& word : request) words += word + " ";
    EXPECT_EQ(ran.outcome.code, 2) << words << ran.outcome.output << ran.outcome.error;
    EXPECT_NE(ran.outcome.error.find("hint:"), std::string::npos) << words;
  }
}

}  // namespace
}  // namespace fulcrum::cli
