// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of rules against everything that must know them: a trace on which each fires, and the page that explains it.
#include <fstream>
#include <set>
#include <sstream>

#include "diagnose/frame.h"
#include "diagnose/scene.h"

namespace fulcrum::diagnose::test {
namespace {

using namespace fulcrum::test;
constexpr std::int64_t kFull = 132 * 16;

Handle kernel(std::int64_t grid, std::int64_t block, int launches = 1) {
  TraceBuilder t;
  for (int i = 0; i < launches; ++i) t.launch("work(float*)", grid, block, 1'000'000);
  return plain(t.trace());
}

Handle shaped(void (*change)(LaunchShape&)) {
  TraceBuilder t;
  LaunchShape shape = t.shape("work(float*)", kFull, 256);
  change(shape);
  return plain(t.launch(shape, 1'000'000).trace());
}

Handle prepared(void (*change)(TraceBuilder&)) {
  TraceBuilder t;
  t.launch("work(float*)", kFull, 256, 1'000'000);
  change(t);
  return plain(t.trace());
}

Handle counted(double dram, double sm) {
  Handle scene = kernel(kFull, 256);
  Timeline::Kernel& one = scene->timeline.kernels.front();
  one.dram_share = dram, one.sm_share = sm, one.counter_samples = 9;
  return scene;
}

Handle ncu(std::map<std::string, double> metrics) {
  Handle scene = kernel(kFull, 256);
  metrics["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"] = 50;
  metrics["sm__throughput.avg.pct_of_peak_sustained_elapsed"] = 50;
  scene->trace.kernel_counters.push_back(
      {.shape = 0, .origin = "x.csv", .launches = 1, .metrics = std::move(metrics)});
  return scene;
}

// Loops of the host: what each of them does in a step.
Handle loop(int steps, void (*step)(TraceBuilder&)) {
  TraceBuilder t;
  t.alloc(1 << 20);
  for (int i = 0; i < steps; ++i) step(t);
  t.device_sync();
  return real(t.trace());
}

Handle default_stream_turns() {
  TraceBuilder t;
  const auto legacy = t.current_stream();
  std::vector<std::uint32_t> streams;
  for (int i = 0; i < 4; ++i)
    streams.push_back(t.stream({.legacy = false, .blocking = true}).current_stream());
  for (int step = 0; step < 30; ++step) {
    for (const auto stream : streams) {
      t.on_stream(stream).launch("request(float*)", 33, 256, 200'000);
      t.on_stream(legacy).launch("count(int*)", 1, 32, 3'000);
    }
  }
  t.device_sync();
  return real(t.trace());
}

Handle faults() {
  TraceBuilder t;
  t.raw().processes[0].kinds.push_back("UNIFIED_MEMORY_COUNTER");
  for (int i = 0; i < 20; ++i) {
    t.launch("touch(float*)", kFull, 256, 500'000);
    const auto& op = t.last_op();
    t.fault(op.begin_ns, op.begin_ns + 400'000, 0, true)
        .fault(op.begin_ns, op.begin_ns + 400'000, 8 << 20, false);
  }
  t.device_sync();
  return real(t.trace());
}

using Golden = Handle (*)();
const std::map<std::string_view, Golden>& goldens() {
  static const std::map<std::string_view, Golden> all = {
      {"small_grid", [] { return kernel(2, 64); }},
      {"tail", [] { return kernel(264 * 11 / 10, 1024); }},
      {"ragged_block", [] { return kernel(5000, 48); }},
      {"low_occupancy",
       [] { return shaped([](LaunchShape& s) { s.occupancy = 0.4, s.blocks_per_sm = 3; }); }},
      {"missed_concurrency", [] { return kernel(264, 256, 8); }},
      {"spill", [] { return shaped([](LaunchShape& s) { s.local_bytes = 512; }); }},
      {"throttle", [] { return prepared([](TraceBuilder& t) { t.clock(500'000, 990, 0x20); }); }},
      {"other_processes",
       [] { return prepared([](TraceBuilder& t) { t.clock(500'000, 1980, 0, {4711}); }); }},
      {"stale_build",
       [] {
         return prepared([](TraceBuilder& t) { t.raw().binaries.push_back({.path = "a", .newer = "a.cu"}); });
       }},
      {"integrity", [] { return prepared([](TraceBuilder& t) { t.drops(10); }); }},
      {"one_off", [] { return prepared([](TraceBuilder& t) { t.overhead("jit", 0, 1'000'000'000); }); }},
      {"sol", [] { return counted(0.1, 0.1); }},
      {"roofline", [] { return counted(0.4, 0.1); }},
      {"tensor_unused", [] { return shaped([](LaunchShape& s) { s.name = "ampere_sgemm_128x64_nn"; }); }},
      {"occupancy_gap",
       [] {
         return ncu({{"sm__warps_active.avg.pct_of_peak_sustained_active", 40}});
       }},
      {"uncoalesced",
       [] {
         return ncu({{"memory_l2_theoretical_sectors_global", 8},
                     {"memory_l2_theoretical_sectors_global_ideal", 1}});
       }},
      {"bank_conflict",
       [] {
         return ncu({{"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", 5},
                     {"l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", 10}});
       }},
      {"divergence",
       [] {
         return ncu({{"smsp__thread_inst_executed_per_inst_executed.ratio", 8}});
       }},
      {"issue_slots",
       [] {
         return ncu({{"smsp__issue_active.avg.per_cycle_active", 0.1}});
       }},
      {"warp_stall",
       [] {
         return ncu({{"smsp__issue_active.avg.per_cycle_active", 0.1},
                     {"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", 9}});
       }},
      {"fp64_mix",
       [] {
         return ncu({{"smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", 5},
                     {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 5}});
       }},
      {"nonfused_fp",
       [] {
         return ncu({{"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 4},
                     {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 4},
                     {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2}});
       }},
      {"imbalance",
       [] {
         return ncu({{"sm__cycles_active.avg", 500},
                     {"sm__cycles_active.max", 1000},
                     {"sm__cycles_elapsed.max", 1000}});
       }},
      {"aperture",
       [] {
         return ncu({{"lts__t_sectors_srcunit_tex_aperture_sysmem.sum", 1e9},
                     {"lts__t_sectors_srcunit_tex_aperture_device.sum", 1e3}});
       }},
      {"launch_bound", [] { return real(launch_bound()); }},
      {"idle_gaps",
       [] {
         return loop(40, [](TraceBuilder& t) {
           t.host_work(400'000);
           for (int i = 0; i < 3; ++i) t.launch("step(float*)", kFull, 256, 100'000);
           t.device_sync();
         });
       }},
      {"sync_stall",
       [] {
         return loop(200,
                     [](TraceBuilder& t) { t.launch("step(float*)", kFull, 256, 50'000).device_sync(); });
       }},
      {"query_storm",
       [] {
         return loop(30, [](TraceBuilder& t) {
           t.launch("step(float*)", kFull, 256, 300'000);
           for (int i = 0; i < 400; ++i) t.query();
         });
       }},
      {"alloc_in_loop",
       [] {
         return loop(60, [](TraceBuilder& t) {
           t.alloc(1 << 20).launch("step(float*)", kFull, 256, 100'000).free();
         });
       }},
      {"setup_in_loop",
       [] {
         return loop(40, [](TraceBuilder& t) {
           t.instantiate_graph(300'000).graph_launch({{"step(float*)", kFull, 256, 200'000}}).device_sync();
         });
       }},
      {"pageable_copy", [] { return real(copy_bound()); }},
      {"small_copies",
       [] {
         return loop(40, [](TraceBuilder& t) {
           for (int i = 0; i < 32; ++i) t.copy_h2d(256);
           t.launch("step(float*)", kFull, 256, 20'000).device_sync();
         });
       }},
      {"redundant_copy",
       [] {
         return loop(20, [](TraceBuilder& t) {
           t.addresses(0x1000, 0x2000, 77)
               .copy_h2d(16 << 20)
               .launch("step(float*)", kFull, 256, 200'000)
               .device_sync();
         });
       }},
      {"no_overlap",
       [] {
         return loop(30, [](TraceBuilder& t) {
           t.copy_h2d(16 << 20).launch("step(float*)", kFull, 256, 300'000).copy_d2h(16 << 20);
         });
       }},
      {"default_stream", default_stream_turns},
      {"managed_faults", faults},
  };
  return all;
}

TEST(Rules, EachHasATraceOnWhichItFires) {
  for (const Rule& rule : rules()) {
    const auto golden = goldens().find(rule.id);
    if (golden == goldens().end()) {
      ADD_FAILURE() << rule.id << " has no golden here";
      continue;
    }
    const Looked looked = look(rule.id, *golden->second());
    EXPECT_FALSE(looked.findings.empty())
        << rule.id << ": " << (looked.not_checked ? looked.not_checked->why : "silent");
    for (const Finding& finding : looked.findings) {
      EXPECT_FALSE(finding.claim.empty() || finding.next_step.empty() || finding.subject.empty()) << rule.id;
      EXPECT_FALSE(finding.evidence.empty() && rule.id != "integrity") << rule.id;
      EXPECT_LE(finding.saved_low, finding.saved_high) << rule.id;
    }
  }
  EXPECT_EQ(goldens().size(), rules().size());
}

TEST(Rules, HaveNamesAndWordsOfTheirOwn) {
  std::set<std::string_view> ids, words;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
    EXPECT_TRUE(words.insert(rule.looks_for).second) << rule.id;
    EXPECT_FALSE(rule.needs.empty()) << rule.id;
  }
}

TEST(Rules, ThatReadCountersWaitForParallelism) {
  for (const Rule& rule : rules()) {
    if (rule.needs.find("counters") == std::string_view::npos) continue;
    EXPECT_TRUE(waits_for_parallelism(rule.id)) << rule.id;
  }
  for (const char* rule : {"small_grid", "tail", "launch_bound", "throttle", "integrity"}) {
    EXPECT_FALSE(waits_for_parallelism(rule)) << rule;
  }
}

TEST(Rules, AreExplainedOnTheirPage) {
  std::ifstream file(std::string(FULCRUM_SOURCE_DIR) + "/docs/rules.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();
  ASSERT_FALSE(text.empty());
  for (const Rule& rule : rules()) {
    const std::string row = "| `" + std::string(rule.id) + "` | " + std::string(rule.looks_for) + " |";
    EXPECT_NE(text.find(row), std::string::npos) << "docs/rules.md lacks the row that begins: " << row;
  }
}

}  // namespace
}  // namespace fulcrum::diagnose::test
