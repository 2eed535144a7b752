// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU and the host calls that drive it did, as plain data: what `trace` collects and what other tools' files
// become. Instants are nanoseconds since begin_ns; what was not seen is absent or -1, never zero.
#pragma once

#include <fulcrum/core.h>
#include <fulcrum/core/profile.h>

namespace fulcrum {

enum class GpuOpKind : std::uint8_t { kernel, copy, memset, graph };  // graph: a whole replay, nodes not seen
enum class MemoryKind : std::uint8_t { unknown, pageable, pinned, device, array, managed };
enum class CopyKind : std::uint8_t { unknown, h2d, d2h, d2d, h2h, p2p };
enum class CallKind : std::uint8_t {
  other,
  launch,
  graph_launch,
  copy,
  memset,
  device_sync,
  stream_sync,
  event_sync,
  event_record,
  stream_wait,
  query,
  alloc,
  free,
  pool_alloc,
  pool_free,
  host_alloc,
  host_free,
  host_register,
  module_load,
  graph_instantiate,
  prefetch,
};
std::string_view to_string(GpuOpKind);
std::string_view to_string(MemoryKind);
std::string_view to_string(CopyKind);
std::string_view to_string(CallKind);

/// One kernel as it was launched: everything that its geometry decides.
struct LaunchShape {
  std::string name;  // demangled
  std::int64_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {0, 0, 0};
  int registers = 0;                                   // a thread
  std::int64_t static_shared = 0, dynamic_shared = 0;  // bytes a block
  std::int64_t local_bytes = 0;                        // a thread: spills and arrays
  // Computed by the collector for the device it ran on; 0 or empty: not known.
  int blocks_per_sm = 0;  // that fit at once
  double occupancy = 0;   // theoretical: warps that fit over warps an SM holds
  std::string limiter;    // "registers", "shared memory", "blocks", "warps"
  double blocks() const { return double(grid[0]) * double(grid[1]) * double(grid[2]); }
  double threads() const { return double(block[0]) * double(block[1]) * double(block[2]); }
  bool operator==(const LaunchShape&) const = default;
};

struct GpuTrace {
  std::string command, created_utc, machine_id, program;  // program: version and commit of the writer
  std::string origin = "fulcrum";                         // "fulcrum", "kineto", "bench"
  std::int64_t begin_ns = 0;                              // CLOCK_MONOTONIC of instant 0
  std::int64_t wall_ns = 0;                               // from the program's start to its end
  int exit_code = 0;                                      // of the target; 128 + signal when killed

  struct Device {
    int id = 0;
    std::string name;
    int sms = 0, compute_major = 0, compute_minor = 0;
    int max_threads_per_sm = 0, max_blocks_per_sm = 0, registers_per_sm = 0;
    std::int64_t shared_per_sm = 0, memory_bytes = 0;
    double memory_bytes_per_second = 0;  // nominal; measured roofs come from a machine profile
    double max_sm_mhz = 0;
  };
  std::vector<Device> devices;

  struct Process {
    std::int64_t pid = 0, parent = 0;
    std::string command;
    std::string profiler;  // who held CUPTI, so that nothing was traced here; empty: nobody
    std::int64_t cupti_version = 0, driver_version = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    bool complete = false;  // the file has its footer
    std::string end;        // "exit", "_exit", "signal 15", "cut off"
    std::vector<std::string> kinds,
        refused;  // activity kinds that were on, and those CUPTI refused: "ENVIRONMENT (14)"
    double overhead_seconds =
        -1;  // that tracing added to the program's threads, as predicted from calibrated costs
    double full_overhead_share = -1;  // predicted, had everything been traced
    std::int64_t dropped = 0, zero_stamps = 0;
    std::int64_t file_bytes = 0;
  };
  std::vector<Process> processes;

  struct Stream {
    std::uint32_t process = 0;
    int device = 0;
    std::int64_t id = 0;                           // as CUPTI numbers it
    bool legacy_default = false, blocking = true;  // blocking: waits for the legacy default stream
  };
  std::vector<Stream> streams;

  std::vector<LaunchShape> shapes;

  /// Something the GPU did, in order of begin_ns. Its number is its place.
  struct Op {
    GpuOpKind kind = GpuOpKind::kernel;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t stream = 0;       // number in streams
    std::uint32_t shape = 0;        // kernels: number in shapes
    std::uint32_t correlation = 0;  // of the call that caused it, within its process
    std::uint32_t graph = 0;        // id of the executable graph; 0: not from one
    std::uint64_t graph_node = 0;
    // Copies and memsets:
    std::int64_t bytes = 0;
    CopyKind copy = CopyKind::unknown;
    MemoryKind from = MemoryKind::unknown, to = MemoryKind::unknown;
    bool async = false;
    std::uint64_t from_address = 0, to_address = 0;  // 0: not seen
    std::uint64_t content_hash = 0;  // of a source on the host, where asked for; 0: not hashed
    std::int64_t duration_ns() const { return end_ns - begin_ns; }
  };
  std::vector<Op> ops;

  /// A call of the CUDA API by the program, in order of begin_ns.
  struct Call {
    CallKind kind = CallKind::other;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t thread = 0;  // number in threads
    std::uint32_t correlation = 0;
    std::int64_t stream = -1;   // number in streams that it waits for or works on; -1: not known or all
    std::uint64_t event = 0;    // number of the one record that it makes or waits for; 0: none
    std::int64_t bytes = 0;     // allocations
    std::uint64_t address = 0;  // allocations and frees
    bool per_thread_stream = false;
  };
  std::vector<Call> calls;

  struct Thread {
    std::uint32_t process = 0;
    std::int64_t tid = 0;
    std::string name;
  };
  std::vector<Thread> threads;

  /// NVTX ranges and other marks of the program.
  struct Range {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t thread = 0;
    std::string name;
  };
  std::vector<Range> ranges;

  /// Time that the driver or CUPTI took: "jit", "module load", "lazy load", "queue full", "flush", "instrumentation".
  struct Overhead {
    std::string what;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint32_t thread = 0;
  };
  std::vector<Overhead> overheads;

  /// Unified memory: pages that moved or stalled a kernel.
  struct Fault {
    std::int64_t begin_ns = 0, end_ns = 0;
    std::int64_t bytes = 0, count = 0;
    CopyKind direction = CopyKind::unknown;
    bool stalled = false;  // a group of GPU page faults, not a transfer
    std::uint32_t process = 0;
    int device = 0;
  };
  std::vector<Fault> faults;

  /// What NVML said, about ten times a second.
  struct Clock {
    std::int64_t at_ns = 0;
    int device = 0;
    double sm_mhz = 0, memory_mhz = 0, watts = 0, celsius = 0;
    std::uint64_t reasons = 0;         // NVML's bits for clocks held down
    std::vector<std::int64_t> others;  // processes on the device that are not ours
    double utilisation = -1;           // 0 to 1
  };
  std::vector<Clock> clocks;

  /// One instant of PM sampling: shares of the peak, 0 to 1; -1: not in the set.
  struct CounterSample {
    std::int64_t begin_ns = 0, end_ns = 0;
    int device = 0;
    double sm_active = -1, tensor_active = -1, warps_active = -1,
           instructions = -1;  // instructions: a cycle and SM
    double dram_read = -1, dram = -1, l2_hit = -1, l1_hit = -1;
    double pcie_read_bytes = -1, pcie_write_bytes = -1;
    /// Of the busiest pipe of the SMs: what "compute-bound" means; sm_active is not.
    double sm_throughput = -1;
  };
  std::vector<CounterSample> counter_samples;
  std::string counters_refused;  // why there are none; empty: they are there, or nobody asked

  /// Counters of one kernel by their names at NVIDIA, from `ncu --csv`: joined by name, grid and block.
  struct KernelCounters {
    std::uint32_t shape = 0;
    std::string origin;  // the file
    int launches = 0;    // averaged
    std::map<std::string, double> metrics;
  };
  std::vector<KernelCounters> kernel_counters;

  /// Spans in which everything was traced; empty: all of it. Outside them there are totals at most.
  struct Window {
    std::uint32_t process = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  std::vector<Window> windows;

  /// Totals a kernel, also of what was not kept as ops (beyond the size cap). Log2 histogram of nanoseconds.
  struct Total {
    std::uint32_t shape = 0, stream = 0;
    std::int64_t count = 0, sum_ns = 0, min_ns = 0, max_ns = 0;
    std::map<int, std::int64_t> histogram;
  };
  std::vector<Total> totals;

  struct Binary {
    std::string path, build_id;
    std::int64_t modified_ns = 0;  // wall clock
    std::string newer;             // a source or another build of it that is newer; empty: none was found
    std::int64_t newer_by_ns = 0;
  };
  std::vector<Binary> binaries;

  std::optional<CpuProfile>
      cpu;  // of the same run; samples' seconds + cpu_offset_seconds = seconds since begin_ns
  double cpu_offset_seconds = 0;

  std::vector<std::string> notes;  // what was lost or could not be had, each with its reason

  double traced_share() const;  // by windows, of the time from the first op to the program's end; 1 without
  std::int64_t dropped() const;
};

/// fulcrum.trace/1: everything, for scripts. The binary file is far smaller: include/fulcrum/trace.h.
Json to_json(const GpuTrace&);
Result<GpuTrace> trace_from_json(const Json&, std::string_view origin);

}  // namespace fulcrum
