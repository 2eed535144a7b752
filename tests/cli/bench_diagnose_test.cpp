// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --diagnose: what the rules say about the kernels of a row, whatever the harness did around them.
#include "cli/bench/diagnose.h"

#include "cli/program.h"
#include "support/traces.h"

namespace fulcrum::cli {
namespace {

Shape attention_shape() {
  Result<Shape> shape = parse_shape("B=1,H=1,Sq=128,Skv=128,D=64,dtype=f16");
  EXPECT_TRUE(shape.ok());
  return *shape;
}

// A worker: the operands go up, then calls with waits between them.
GpuTrace worker(std::int64_t grid, std::int64_t ns) {
  test::TraceBuilder t;
  t.device(58).module_load(200'000'000).copy_h2d(64 << 20, MemoryKind::pageable, false);
  for (int i = 0; i < 50; ++i) {
    t.host_work(500'000)
        .launch("attention_flash_kernel<64, true>(Call, long, long)", grid, 128, ns)
        .device_sync();
  }
  return t.trace();
}

TEST(BenchDiagnose, TwoBlocksOn58SmsAreUnderfilledAndOtherTilesAreNamed) {
  const KernelDiagnosis row = diagnose_row(worker(2, 30'000), "attention", attention_shape());
  ASSERT_FALSE(row.diagnosis.findings.empty());
  const Finding& first = row.diagnosis.findings.front();
  EXPECT_EQ(first.id, "small_grid");
  EXPECT_NE(first.claim.find("2 blocks on 58 SMs: 3.4 % of the GPU can work"), std::string::npos)
      << first.claim;
  std::string text = first.next_step;
  for (const std::string& line : first.evidence) text += "\n" + line;
  EXPECT_NE(text.find("UNDERFILLED"), std::string::npos) << text;
  EXPECT_NE(text.find("at most 4 CTAs with tiles Sq 64 x Skv 64"), std::string::npos) << text;
  EXPECT_NE(text.find("at most 64 CTAs with tiles Sq 16 x Skv 16"), std::string::npos) << text;
}

TEST(BenchDiagnose, LooksAtTheKernelsAndNotAtTheHarness) {
  const KernelDiagnosis row = diagnose_row(worker(58 * 16, 30'000), "attention", attention_shape());
  for (const Finding& finding : row.diagnosis.findings) ADD_FAILURE() << finding.id << ": " << finding.claim;
  EXPECT_EQ(row.trace.ops.size(), 50U);
  EXPECT_TRUE(row.trace.calls.empty());
  EXPECT_GT(row.timeline.busy_share(), 0.9);
}

TEST(BenchDiagnose, SaysWhatCouldNotBeTracedAndKeepsTheRows) {
  const Folder data;
  const std::string file = data / "out.json";
  const Outcome outcome = fulcrum_in(
      data,
      {"bench", "relu", "--shape", "n=1000", "--backend", "fakegpu", "--variant", "default", "--regime",
       "resident", "--budget", "0.1", "--precision", "0.5", "--diagnose", "--json", file},
      {{"FULCRUM_MODULE_PATH", std::string(FULCRUM_TEST_MODULE_DIR) + "/gpu"}});
  EXPECT_EQ(outcome.code, 0) << outcome.error;
  EXPECT_NE(outcome.output.find("relu/fakegpu/default at n=1000: not diagnosed: "), std::string::npos)
      << outcome.output;
  const auto document = json_parse(content(file), file);
  ASSERT_TRUE(document.ok());
  EXPECT_FALSE((*document)["results"].empty());
  EXPECT_FALSE((*document)["diagnosis"][0]["error"].get<std::string>().empty());
}

TEST(BenchDiagnose, NeedsAGpuKernel) {
  const Outcome outcome = fulcrum({"bench", "sigmoid", "--backend", "simd", "--diagnose"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.error.find("--diagnose"), std::string::npos) << outcome.error;
}

}  // namespace
}  // namespace fulcrum::cli
