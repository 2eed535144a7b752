// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The sets. Metrics whose group has a name in front ("TPC.TriageCompute.") are made to be sampled together; chips
// without such groups take the plain names, fewer of which fit. What does not fit is left out, never the whole set.
// What no rule reads is left out too, since every metric costs time on the CPU; so is CUPTI's own throughput of an SM, which
// costs as much as all others together: the pipes that decide it are few. Hopper's count of warps is not to be had this way:
// it is right up to half of what an SM holds and wraps around above.
#include "trace/inject/metrics.h"

#include <algorithm>

namespace fulcrum::trace::inject {
namespace {

using file::Counter;

constexpr Metric kHopper[] = {
    {&Counter::sm_active, "TPC.TriageCompute.sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "TPC.TriageCompute.sm__inst_executed_pipe_fma_realtime", RollUp::share},
    {&Counter::sm_throughput, "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::sm_throughput, "TPC.TriageCompute.sm__pipe_fp64_cycles_active_realtime", RollUp::share},
    {&Counter::tensor_active, "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::instructions, "TPC.TriageCompute.sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "FBSP.TriageCompute.dramc__read_throughput", RollUp::share},
    {&Counter::dram, "FBSP.TriageCompute.dramc__throughput", RollUp::share},
};
constexpr const char* kHopperChips[] = {"GH100"};

constexpr Metric kBlackwell[] = {
    {&Counter::sm_active, "TPC.TriageCompute.sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::tensor_active, "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::warps_active, "TPC.TriageCompute.tpc__warps_active_shader_cs_realtime", RollUp::share},
    {&Counter::instructions, "TPC.TriageCompute.sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "FBSP.TriageCompute.dram__read_throughput", RollUp::share},
    {&Counter::dram, "FBSP.TriageCompute.dram__throughput", RollUp::share},
};
constexpr const char* kBlackwellChips[] = {"GB100", "GB102"};

constexpr Metric kBlackwellUltra[] = {
    {&Counter::sm_active, "TPC.TriageCompute.sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::tensor_active, "TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::warps_active, "TPC.TriageCompute.tpc__warps_active_shader_cs_realtime", RollUp::share},
    {&Counter::instructions, "TPC.TriageCompute.sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "FBSP.TriageCompute.dram__read_throughput", RollUp::share},
    {&Counter::dram, "FBSP.TriageCompute.dram__throughput", RollUp::share},
};
constexpr const char* kBlackwellUltraChips[] = {"GB110"};

constexpr Metric kAda[] = {
    {&Counter::sm_active, "SM_A.TriageAC.sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "SM_A.TriageAC.sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::tensor_active, "sm__pipe_tensor_cycles_active_realtime_v2", RollUp::share},
    {&Counter::warps_active, "TPC.TriageAC.tpc__warps_active_shader_cs_realtime", RollUp::share},
    {&Counter::instructions, "SM_A.TriageAC.sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "FBSP.TriageAC.dramc__read_throughput", RollUp::share},
    {&Counter::dram, "FBSP.TriageAC.dramc__throughput", RollUp::share},
};
constexpr const char* kAdaChips[] = {"AD102", "AD103", "AD104", "AD106", "AD107"};

constexpr Metric kAmpereGraphics[] = {
    {&Counter::sm_active, "SM_A.TriageAC.sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "SM_A.TriageAC.sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::tensor_active, "sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::warps_active, "TPC.TriageAC.tpc__warps_active_shader_cs_realtime", RollUp::share},
    {&Counter::instructions, "SM_A.TriageAC.sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "FBSP.TriageAC.dramc__read_throughput", RollUp::share},
    {&Counter::dram, "FBSP.TriageAC.dramc__throughput", RollUp::share},
};
constexpr const char* kAmpereGraphicsChips[] = {"GA102", "GA103", "GA104", "GA106", "GA107"};

constexpr Metric kAmpere[] = {
    {&Counter::sm_active, "sm__cycles_active", RollUp::share},
    {&Counter::sm_throughput, "sm__inst_executed_pipe_fma_realtime", RollUp::share},
    {&Counter::sm_throughput, "sm__inst_executed_pipe_alu_realtime", RollUp::share},
    {&Counter::tensor_active, "sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::warps_active, "tpc__warps_active_realtime", RollUp::share},
    {&Counter::instructions, "sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "dramc__read_throughput", RollUp::share},
    {&Counter::dram, "dramc__throughput", RollUp::share},
};
constexpr const char* kAmpereChips[] = {"GA100"};

constexpr Metric kBlackwellGraphics[] = {
    {&Counter::sm_active, "sm__cycles_active", RollUp::share},
    {&Counter::tensor_active, "sm__pipe_tensor_cycles_active_realtime", RollUp::share},
    {&Counter::warps_active, "tpc__warps_active_realtime", RollUp::share},
    {&Counter::instructions, "sm__inst_executed_realtime", RollUp::a_cycle},
    {&Counter::dram_read, "dram__read_throughput", RollUp::share},
    {&Counter::dram, "dram__throughput", RollUp::share},
};
constexpr const char* kBlackwellGraphicsChips[] = {"GB202", "GB203", "GB205", "GB206", "GB207"};

// GA100 has no trigger by time (so the header of CUPTI's sampling says).
constexpr MetricSet kSets[] = {
    {kHopperChips, kHopper, true},  {kBlackwellChips, kBlackwell, true},
    {kAdaChips, kAda, true},        {kAmpereGraphicsChips, kAmpereGraphics, true},
    {kAmpereChips, kAmpere, false}, {kBlackwellGraphicsChips, kBlackwellGraphics, true},
};

struct Reason {
  int result;
  const char* text;
};
// Numbers of CUptiResult: the table must say the same whichever header this was compiled with.
constexpr Reason kReasons[] = {
    {26,
     "another program holds the counters of this GPU, often DCGM: `dcgmi profile --pause`, later `--resume`"},
    {27, "this GPU, or the way it is shared, has no PM sampling"},
    {33, "a virtual GPU has no PM sampling"},
    {35,
     "only administrators may read counters here: run as root (in a container with --cap-add=SYS_ADMIN), or "
     "load the "
     "driver with NVreg_RestrictProfilingToAdminUsers=0"},
    {39, "another profiler holds CUPTI: end it (nsys, ncu, torch.profiler, cuda-gdb) and trace again"},
    {40, "the host of this virtual GPU does not allow counters: ask for profiling to be switched on"},
    {41, "confidential computing is on, which forbids counters"},
    {42, "this GPU is made for mining and has no counters"},
    {43, "an instance of a GPU that MIG has divided has no PM sampling: use a whole GPU"},
    {44, "GPUs joined by SLI have no counters"},
    {45, "this Windows subsystem does not allow counters"},
    {46, "this CUPTI does not know the chip: take one as new as the GPU"},
};

}  // namespace

std::string full_name(const Metric& metric) {
  const bool rate = metric.roll_up == RollUp::a_cycle;
  return std::string(metric.name) + (rate ? ".avg.per_cycle_elapsed" : ".avg.pct_of_peak_sustained_elapsed");
}

float unit(const Metric& metric) {
  constexpr float kPercent = 0.01F;
  switch (metric.roll_up) {
    case RollUp::share:
      return kPercent;
    case RollUp::a_cycle:
      break;
  }
  return 1;
}

std::span<const MetricSet> metric_sets() { return kSets; }

const MetricSet* metrics_of(std::string_view chip) {
  for (const MetricSet& set : kSets)
    if (std::find(set.chips.begin(), set.chips.end(), chip) != set.chips.end()) return &set;
  return nullptr;
}

file::Counter empty_counter() {
  Counter counter{};
  for (float Counter::*field :
       {&Counter::sm_active, &Counter::tensor_active, &Counter::warps_active, &Counter::instructions,
        &Counter::dram_read, &Counter::dram, &Counter::l2_hit, &Counter::l1_hit, &Counter::pcie_read,
        &Counter::pcie_write, &Counter::sm_throughput})
    counter.*field = -1;
  return counter;
}

void finish(Counter& counter) {
  constexpr float kIssueSlots = 4;
  counter.sm_throughput =
      std::max({counter.sm_throughput, counter.tensor_active,
                counter.instructions >= 0 ? std::min(counter.instructions / kIssueSlots, 1.0F) : -1.0F});
}

std::string why_refused(int cupti_result, const char* call) {
  const char* text = "CUPTI does not say more";
  for (const Reason& reason : kReasons)
    if (reason.result == cupti_result) text = reason.text;
  return std::string("error ") + std::to_string(cupti_result) + " at " + call + ": " + text;
}

}  // namespace fulcrum::trace::inject
