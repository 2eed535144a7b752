// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The timeline that a GpuTrace becomes, what a change to it would bring, and findings: plain data between trace, which
// makes the first two, diagnose, which makes the third, and whoever shows them.
#pragma once

#include <fulcrum/core/trace.h>

#include <set>

namespace fulcrum {

// The timeline.

enum class GapCause : std::uint8_t {
  host,    // the host had not launched yet and was outside the CUDA API: computing, or I/O
  launch,  // the host was inside launch calls, one after the other: they take longer than what they launch
  sync,    // the host had waited for the GPU and the next launch came after that
  alloc,   // the host was inside an allocation or a free
  copy,    // the host was inside a synchronous copy
  dependency,   // the work was queued and waited for an event or another stream
  queue,        // the work was queued with nothing to wait for: the time between two ops of a stream
  module_load,  // code was loaded or compiled
  unknown,
};
std::string_view to_string(GapCause);

struct Timeline {
  /// What all shares are of: from the first to the last op, or the iterations when there are any, off-windows and
  /// one-off work left out.
  std::int64_t begin_ns = 0, end_ns = 0;
  double seconds = 0;

  /// For every op of the trace the call that caused it, the outermost where calls nest; -1: not seen.
  std::vector<std::int64_t> call_of_op;

  struct Device {
    int id = 0;
    double busy_seconds = 0;                      // union of intervals
    double kernel_seconds = 0, copy_seconds = 0;  // unions
    double exposed_copy_seconds = 0;              // copies with no kernel beside them
    double ops = 0;
  };
  std::vector<Device> devices;
  double busy_share() const;  // of the busiest device; 0 without any

  struct Gap {
    int device = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    GapCause cause = GapCause::unknown;
    std::uint32_t before = 0, after = 0;  // ops around it
    std::int64_t call = -1;               // the call that the host was in for most of it; -1: none
    std::string function;                 // of the host program, by --with-cpu: the hottest in that time
    bool steady = true;                   // inside an iteration, not in one-off work
  };
  std::vector<Gap> gaps;

  /// Ops that are one kernel at one shape.
  struct Kernel {
    std::uint32_t shape = 0;
    std::vector<std::uint32_t> ops;
    double seconds = 0;                             // sum
    double share = 0;                               // of `seconds` of the timeline
    double median_ns = 0, low_ns = 0, high_ns = 0;  // 5th and 95th of a hundred
    double waves = 0;                               // blocks over what the device holds at once
    bool persistent = false;  // one grid that fills the device and loops inside, or one block an SM by design
    bool tensor = false;      // named like a library's tensor-core kernel
    // T1; -1: not known. sm_share: of sm_throughput, the busiest pipe.
    double dram_share = -1, sm_share = -1, tensor_share = -1, warps_share = -1;
    int counter_samples = 0;
  };
  std::vector<Kernel> kernels;  // longest sum first

  struct Iterations {
    std::string how;  // "NVTX range 'step'", "43 kernels that repeat"; empty: none were found
    std::vector<std::int64_t> begins_ns;  // and one more: the end of the last
    double median_seconds = 0, low_seconds = 0, high_seconds = 0;
    std::int64_t count() const {
      return begins_ns.empty() ? 0 : static_cast<std::int64_t>(begins_ns.size()) - 1;
    }
  };
  Iterations iterations;

  /// Calibrated or observed costs of this machine and run, in seconds; each says where it is from.
  struct Cost {
    double seconds = 0;
    std::string from;  // "this trace", "machine profile x", "assumed"
  };
  Cost back_to_back;        // between two queued ops of a stream (g0)
  Cost launch;              // one launch call of the host
  Cost launch_latency;      // from the end of a launch call to the start of the kernel on an idle GPU
  Cost small_copy;          // an asynchronous copy of a few bytes, launch to end
  Cost pinned_bytes;        // seconds a byte of pinned copies
  Cost tracing_per_launch;  // that tracing itself adds to a launch

  /// From every op its call and its waits, as simulated; without API records there is no simulation.
  bool simulated = false;
  double model_error = 0;   // |simulated - observed| / observed, with nothing changed
  std::string why_not;      // simulated is false: why
  std::int64_t skewed = 0;  // kernels that began before their launch call: clamped
  std::vector<std::string> notes;
};

// What if.

/// A run that differs from the traced one. Numbers are those of GpuTrace::ops and ::calls.
struct Change {
  std::map<std::uint32_t, std::int64_t> op_ns;  // new duration of GPU ops
  std::map<std::uint32_t, std::int64_t>
      call_ns;                           // new host time of calls, waiting left out; 0: the call is gone
  std::set<std::uint32_t> no_wait;       // calls that no longer wait for the GPU
  std::set<std::uint32_t> not_launched;  // ops that no longer wait for the host: nodes of a graph
  std::set<std::uint32_t> gone;          // ops that are not done at all (nor are their calls)
  std::set<std::uint32_t> own_stream;    // ops that wait for their own inputs' calls only: other streams
  double host_scale = 1;                 // of host time outside the API
  std::map<std::uint32_t, std::int64_t> host_before_ns;  // new host time outside the API right before calls
};
struct Saved {
  double seconds = 0;  // of Timeline::seconds; what was simulated unchanged less what was simulated changed
  double share = 0;    // of Timeline::seconds
};
using WhatIf = std::function<Saved(const Change&)>;

// Findings.

enum class Severity : std::uint8_t { fix, consider, info };
enum class Evidence : std::uint8_t { measured, bounded, modelled };
std::string_view to_string(Severity);
std::string_view to_string(Evidence);

struct Finding {
  std::string id;  // the rule: file stem
  Severity severity = Severity::info;
  std::string claim;  // one sentence with its number
  std::vector<std::string> evidence;
  std::string next_step;
  /// End to end, as shares of Timeline::seconds saved; high 0: no gain of its own.
  double saved_low = 0, saved_high = 0;
  Evidence grade = Evidence::measured;
  std::string blocked_by;  // another rule's id: this waits for it
  std::string verify;      // a command
  std::string subject;  // what it is about: a kernel's name, "copies", "host"; one finding a rule and subject
  std::vector<std::uint32_t> ops, calls;  // some that show it, for the page
  Change change;                          // what its gain was simulated with; empty: not simulated
  double speedup_low() const { return 1 / (1 - saved_low); }
  double speedup_high() const { return 1 / (1 - saved_high); }
};

struct NotChecked {
  std::string rule, why, hint;
};

struct Diagnosis {
  std::string verdict;            // one sentence: what the run is bound by
  std::vector<Finding> findings;  // best first; at most five
  std::vector<Finding> waiting;   // blocked by another, or beyond five
  std::vector<std::string> fine;  // rules that looked and found nothing
  std::vector<NotChecked> not_checked;
  double together_low = 0, together_high = 0;  // all changes of the findings simulated at once, share saved
  bool unreliable = false;                     // integrity: drops, skew, a model error that is too large
};

/// fulcrum.findings/1, with the timeline's figures.
Json to_json(const Diagnosis&);
Json to_json(const Timeline&);

}  // namespace fulcrum
