// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds a GpuTrace from what a program does: every call moves the clock of its host thread, every GPU op starts when
// its call, its stream, its events, the legacy default stream and its copy engine allow it. Times are those of an H200
// or what a test sets; the traces are exact, so expected figures can be worked out by hand.
#pragma once

#include <fulcrum/core/trace.h>

#include <algorithm>
#include <map>
#include <set>

namespace fulcrum::test {

/// Costs of the made-up machine, in nanoseconds.
struct TraceCosts {
  std::int64_t launch_call = 2200;     // a launch on the host
  std::int64_t launch_latency = 4000;  // from the beginning of the call to the kernel on an idle GPU
  std::int64_t back_to_back = 1000;    // between two queued ops of a stream
  std::int64_t copy_call = 2500;
  std::int64_t copy_floor = 1500;  // what a copy takes beside its bytes
  double pinned_bytes_per_ns = 55, pageable_bytes_per_ns = 10, device_bytes_per_ns = 1500;
  std::int64_t sync_call = 1200;    // a wait with nothing to wait for
  std::int64_t sync_return = 2500;  // from the end of the GPU's work to the return of a wait
  std::int64_t copy_return = 1000;  // the same for a synchronous copy
  std::int64_t event_call = 700, query_call = 600;
  std::int64_t alloc_call = 40'000, free_call = 40'000, pool_call = 1500;
  std::int64_t host_alloc_call = 1'000'000;
  std::int64_t graph_call = 4500, graph_latency = 6000, graph_node_gap = 700;
};

struct TraceNode {  // of a graph
  std::string name;
  std::int64_t grid = 1, block = 1, ns = 0;
};

class TraceBuilder {
 public:
  /// One H200, one process, one thread, its legacy default stream.
  explicit TraceBuilder(TraceCosts costs = {}) : costs_(costs) {
    trace_.command = "./made-up";
    trace_.created_utc = "2026-01-01T00:00:00Z";
    trace_.program = "test";
    device(132);
    process("./made-up");
  }

  // Where things happen. Each makes it and makes it the current one; on_* go back to one by its number.

  TraceBuilder& device(int sms, std::string name = "NVIDIA H200") {
    if (!own_devices_) trace_.devices.clear();  // the constructor's is a default
    own_devices_ = !trace_.processes.empty();
    trace_.devices.push_back({.id = int(trace_.devices.size()),
                              .name = std::move(name),
                              .sms = sms,
                              .compute_major = 9,
                              .compute_minor = 0,
                              .max_threads_per_sm = 2048,
                              .max_blocks_per_sm = 32,
                              .registers_per_sm = 65536,
                              .shared_per_sm = 233472,
                              .memory_bytes = std::int64_t{139} << 30,
                              .memory_bytes_per_second = 4.8e12,
                              .max_sm_mhz = 1980});
    device_ = int(trace_.devices.size()) - 1;
    return *this;
  }
  TraceBuilder& process(std::string command) {
    GpuTrace::Process process;
    process.pid = std::int64_t(1000 + trace_.processes.size());
    process.parent = 1;
    process.command = std::move(command);
    process.cupti_version = 130001;
    process.driver_version = 13000;
    process.complete = true;
    process.end = "exit";
    process.kinds = {"CONCURRENT_KERNEL", "MEMCPY",  "MEMSET",   "SYNCHRONIZATION",
                     "CUDA_EVENT",        "MEMORY2", "OVERHEAD", "API"};
    process.overhead_seconds = process.full_overhead_share = 0;
    trace_.processes.push_back(std::move(process));
    correlations_.push_back(0);
    process_ = std::uint32_t(trace_.processes.size() - 1);
    thread("main").at(0);
    return stream({.legacy = true});
  }
  TraceBuilder& thread(std::string name) {
    const std::int64_t now = host_ns_.empty() ? 0 : host();
    trace_.threads.push_back(
        {.process = process_, .tid = 1000 + std::int64_t(trace_.threads.size()), .name = std::move(name)});
    host_ns_.push_back(now);
    thread_ = std::uint32_t(trace_.threads.size() - 1);
    return *this;
  }
  struct StreamFlags {
    bool legacy = false;
    bool blocking = true;  // waits for the legacy default stream
  };
  TraceBuilder& stream(StreamFlags flags) {
    trace_.streams.push_back({.process = process_,
                              .device = device_,
                              .id = 7 + std::int64_t(trace_.streams.size()),
                              .legacy_default = flags.legacy,
                              .blocking = flags.blocking});
    stream_ns_.push_back(0);
    wait_ns_.push_back(0);
    stream_ = std::uint32_t(trace_.streams.size() - 1);
    return *this;
  }
  TraceBuilder& stream() { return stream({.legacy = false, .blocking = false}); }
  TraceBuilder& on_thread(std::uint32_t number) {
    thread_ = number;
    process_ = trace_.threads[number].process;
    return *this;
  }
  TraceBuilder& on_stream(std::uint32_t number) {
    stream_ = number;
    return *this;
  }
  std::uint32_t current_stream() const { return stream_; }
  std::uint32_t current_thread() const { return thread_; }
  std::int64_t host_now() const { return host_ns_[thread_]; }

  // What the program does.

  TraceBuilder& host_work(std::int64_t ns) {
    host() += ns;
    return *this;
  }
  TraceBuilder& at(std::int64_t host_ns) {
    host() = host_ns;
    return *this;
  }
  /// The current thread goes on when another has come as far.
  TraceBuilder& join_thread(std::uint32_t other) {
    host() = std::max(host(), host_ns_[other]);
    return *this;
  }
  TraceBuilder& launch(const std::string& name, std::int64_t grid, std::int64_t block, std::int64_t ns) {
    return launch(shape(name, grid, block), ns);
  }
  TraceBuilder& launch(LaunchShape shape, std::int64_t ns) {
    const auto begin = call(CallKind::launch, costs_.launch_call);
    add({.kind = GpuOpKind::kernel, .shape = shape_number(std::move(shape))}, begin + costs_.launch_latency,
        ns);
    return *this;
  }
  /// One replay: its nodes run one after the other.
  TraceBuilder& graph_launch(const std::vector<TraceNode>& nodes, std::uint32_t graph = 1) {
    const auto begin = call(CallKind::graph_launch, costs_.graph_call);
    auto earliest = begin + costs_.graph_latency;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const TraceNode& node = nodes[i];
      const auto gap = i ? costs_.graph_node_gap : costs_.back_to_back;
      add({.kind = GpuOpKind::kernel,
           .shape = shape_number(shape(node.name, node.grid, node.block)),
           .graph = graph,
           .graph_node = i + 1},
          earliest, node.ns, gap);
    }
    return *this;
  }
  TraceBuilder& copy_h2d(std::int64_t bytes, MemoryKind host_memory = MemoryKind::pinned, bool async = true) {
    return copy(CopyKind::h2d, host_memory, MemoryKind::device, bytes, async);
  }
  TraceBuilder& copy_d2h(std::int64_t bytes, MemoryKind host_memory = MemoryKind::pinned, bool async = true) {
    return copy(CopyKind::d2h, MemoryKind::device, host_memory, bytes, async);
  }
  TraceBuilder& copy_d2d(std::int64_t bytes) {
    return copy(CopyKind::d2d, MemoryKind::device, MemoryKind::device, bytes, true);
  }
  /// Where the next copies are from and go to; 0: not seen.
  TraceBuilder& addresses(std::uint64_t from, std::uint64_t to, std::uint64_t content_hash = 0) {
    from_address_ = from, to_address_ = to, content_hash_ = content_hash;
    return *this;
  }
  TraceBuilder& memset(std::int64_t bytes, bool async = true) {
    const auto begin = call(CallKind::memset, costs_.copy_call);
    add({.kind = GpuOpKind::memset, .bytes = bytes, .to = MemoryKind::device, .async = async},
        begin + costs_.launch_latency,
        costs_.copy_floor + std::int64_t(double(bytes) / costs_.device_bytes_per_ns));
    if (!async) wait_until(stream_ns_[stream_], costs_.copy_return);
    return *this;
  }
  TraceBuilder& device_sync() {
    call(CallKind::device_sync, costs_.sync_call, -1);
    std::int64_t end = 0;
    for (std::size_t s = 0; s < trace_.streams.size(); ++s) {
      if (trace_.streams[s].process == process_) end = std::max(end, stream_ns_[s]);
    }
    return wait_until(end, costs_.sync_return);
  }
  TraceBuilder& stream_sync() {
    call(CallKind::stream_sync, costs_.sync_call);
    return wait_until(stream_ns_[stream_], costs_.sync_return);
  }
  TraceBuilder& record_event(int handle) {
    call(CallKind::event_record, costs_.event_call);
    Record& record = records_[handle];
    record = {++last_record_, std::max(stream_ns_[stream_], wait_ns_[stream_])};
    trace_.calls.back().event = record.number;
    return *this;
  }
  TraceBuilder& stream_wait(int handle) {
    call(CallKind::stream_wait, costs_.event_call);
    trace_.calls.back().event = records_[handle].number;
    wait_ns_[stream_] = std::max(wait_ns_[stream_], records_[handle].done_ns);
    return *this;
  }
  TraceBuilder& event_sync(int handle) {
    call(CallKind::event_sync, costs_.sync_call, -1);
    trace_.calls.back().event = records_[handle].number;
    return wait_until(records_[handle].done_ns, costs_.sync_return);
  }
  TraceBuilder& query() {
    call(CallKind::query, costs_.query_call);
    return *this;
  }
  TraceBuilder& alloc(std::int64_t bytes, std::uint64_t address = 0x7000'0000) {
    call(CallKind::alloc, costs_.alloc_call, -1);
    return allocation(bytes, address);
  }
  /// cudaFree waits for the device.
  TraceBuilder& free(std::int64_t bytes = 0, std::uint64_t address = 0x7000'0000) {
    call(CallKind::free, 0, -1);
    allocation(bytes, address);
    std::int64_t end = 0;
    for (const auto ns : stream_ns_) end = std::max(end, ns);
    wait_until(end, 0);
    return extend(costs_.free_call);
  }
  TraceBuilder& pool_alloc(std::int64_t bytes, std::uint64_t address = 0x7000'0000) {
    call(CallKind::pool_alloc, costs_.pool_call);
    return allocation(bytes, address);
  }
  TraceBuilder& pool_free(std::uint64_t address = 0x7000'0000) {
    call(CallKind::pool_free, costs_.pool_call);
    return allocation(0, address);
  }
  TraceBuilder& host_alloc(std::int64_t bytes) {
    call(CallKind::host_alloc, costs_.host_alloc_call, -1);
    return allocation(bytes, 0);
  }
  /// Code that is loaded or compiled, with its overhead record ("jit", "module load", "lazy load").
  TraceBuilder& module_load(std::int64_t ns, const std::string& what = "module load") {
    const auto begin = call(CallKind::module_load, ns, -1);
    return overhead(what, begin, begin + ns);
  }
  TraceBuilder& instantiate_graph(std::int64_t ns = 200'000) {
    call(CallKind::graph_instantiate, ns, -1);
    return *this;
  }
  TraceBuilder& range_begin(std::string name) {
    open_ranges_.push_back({.begin_ns = host(), .thread = thread_, .name = std::move(name)});
    return *this;
  }
  TraceBuilder& range_end() {
    open_ranges_.back().end_ns = host();
    trace_.ranges.push_back(open_ranges_.back());
    open_ranges_.pop_back();
    return *this;
  }

  // What was seen of it.

  /// Only what begins between these two is kept; without any window everything is.
  TraceBuilder& window_begin() {
    trace_.windows.push_back({.process = process_, .begin_ns = host(), .end_ns = -1});
    return *this;
  }
  TraceBuilder& window_end() {
    trace_.windows.back().end_ns = host();
    return *this;
  }
  TraceBuilder& drops(std::int64_t records) {
    trace_.processes[process_].dropped += records;
    return *this;
  }
  TraceBuilder& zero_stamps(std::int64_t records) {
    trace_.processes[process_].zero_stamps += records;
    return *this;
  }
  /// The last op's clock is wrong by this much.
  TraceBuilder& skew_last_op(std::int64_t ns) {
    trace_.ops.back().begin_ns += ns;
    trace_.ops.back().end_ns += ns;
    return *this;
  }
  TraceBuilder& overhead(const std::string& what, std::int64_t begin_ns, std::int64_t end_ns) {
    trace_.overheads.push_back({.what = what, .begin_ns = begin_ns, .end_ns = end_ns, .thread = thread_});
    return *this;
  }
  TraceBuilder& fault(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t bytes, bool stalled) {
    trace_.faults.push_back({.begin_ns = begin_ns,
                             .end_ns = end_ns,
                             .bytes = bytes,
                             .count = stalled ? 1 : 0,
                             .direction = CopyKind::h2d,
                             .stalled = stalled,
                             .process = process_,
                             .device = device_});
    return *this;
  }
  TraceBuilder& clock(std::int64_t at_ns, double sm_mhz, std::uint64_t reasons = 0,
                      std::vector<std::int64_t> others = {}) {
    trace_.clocks.push_back({.at_ns = at_ns,
                             .device = device_,
                             .sm_mhz = sm_mhz,
                             .memory_mhz = 3201,
                             .watts = 400,
                             .celsius = 50,
                             .reasons = reasons,
                             .others = std::move(others)});
    return *this;
  }
  /// Counter samples over the last op, one every `every_ns`.
  TraceBuilder& counters_of_last_op(std::int64_t every_ns, GpuTrace::CounterSample values) {
    const auto begin = trace_.ops.back().begin_ns, end = trace_.ops.back().end_ns;
    for (auto at = begin; at + every_ns <= end; at += every_ns) {
      values.begin_ns = at, values.end_ns = at + every_ns, values.device = device_;
      trace_.counter_samples.push_back(values);
    }
    return *this;
  }

  /// For what has no function here.
  GpuTrace& raw() { return trace_; }
  const GpuTrace::Op& last_op() const { return trace_.ops.back(); }
  /// A shape whose theoretical occupancy follows from its threads alone.
  LaunchShape shape(const std::string& name, std::int64_t grid, std::int64_t block) const {
    const GpuTrace::Device& device = trace_.devices[std::size_t(device_)];
    const auto warps = (block + 31) / 32;
    const auto fit = std::min<std::int64_t>(device.max_blocks_per_sm, device.max_threads_per_sm / 32 / warps);
    return {.name = name,
            .grid = {grid, 1, 1},
            .block = {block, 1, 1},
            .registers = 32,
            .blocks_per_sm = int(fit),
            .occupancy = double(fit * warps) / (device.max_threads_per_sm / 32.0),
            .limiter = fit == device.max_blocks_per_sm ? "blocks" : "warps"};
  }

  GpuTrace trace() const {
    GpuTrace result = trace_;
    keep_windows(result);
    for (const auto& op : result.ops) result.wall_ns = std::max(result.wall_ns, op.end_ns);
    for (const auto& call : result.calls) result.wall_ns = std::max(result.wall_ns, call.end_ns);
    for (auto& process : result.processes) process.end_ns = result.wall_ns;
    const auto earlier = [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; };
    std::stable_sort(result.ops.begin(), result.ops.end(), earlier);
    std::stable_sort(result.calls.begin(), result.calls.end(), earlier);
    std::stable_sort(result.ranges.begin(), result.ranges.end(), earlier);
    return result;
  }

 private:
  struct Record {
    std::uint64_t number = 0;
    std::int64_t done_ns = 0;
  };

  std::int64_t& host() { return host_ns_[thread_]; }

  /// A call of this length on the current thread and stream (-1: of none); returns when it began.
  std::int64_t call(CallKind kind, std::int64_t ns) { return call(kind, ns, stream_); }
  std::int64_t call(CallKind kind, std::int64_t ns, std::int64_t stream) {
    const auto begin = host();
    host() += ns;
    trace_.calls.push_back({.kind = kind,
                            .begin_ns = begin,
                            .end_ns = host(),
                            .thread = thread_,
                            .correlation = ++correlations_[process_],
                            .stream = stream});
    return begin;
  }
  TraceBuilder& extend(std::int64_t ns) {
    host() += ns;
    trace_.calls.back().end_ns = host();
    return *this;
  }
  TraceBuilder& wait_until(std::int64_t gpu_ns, std::int64_t return_ns) {
    if (gpu_ns > trace_.calls.back().begin_ns) host() = std::max(host(), gpu_ns + return_ns);
    trace_.calls.back().end_ns = host();
    return *this;
  }
  TraceBuilder& allocation(std::int64_t bytes, std::uint64_t address) {
    trace_.calls.back().bytes = bytes;
    trace_.calls.back().address = address;
    return *this;
  }

  TraceBuilder& copy(CopyKind kind, MemoryKind from, MemoryKind to, std::int64_t bytes, bool async) {
    const auto begin = call(CallKind::copy, costs_.copy_call);
    const bool pageable = from == MemoryKind::pageable || to == MemoryKind::pageable;
    const double rate = kind == CopyKind::d2d ? costs_.device_bytes_per_ns
                        : pageable            ? costs_.pageable_bytes_per_ns
                                              : costs_.pinned_bytes_per_ns;
    add({.kind = GpuOpKind::copy,
         .bytes = bytes,
         .copy = kind,
         .from = from,
         .to = to,
         .async = async,
         .from_address = from_address_,
         .to_address = to_address_,
         .content_hash = content_hash_},
        begin + costs_.launch_latency, costs_.copy_floor + std::int64_t(double(bytes) / rate));
    if (pageable || !async) wait_until(stream_ns_[stream_], costs_.copy_return);
    return *this;
  }

  /// An op of the current stream that begins at `earliest` or when what it waits for is done.
  void add(GpuTrace::Op op, std::int64_t earliest, std::int64_t ns) {
    add(op, earliest, ns, costs_.back_to_back);
  }
  void add(GpuTrace::Op op, std::int64_t earliest, std::int64_t ns, std::int64_t gap) {
    auto begin = std::max(earliest, after(stream_ns_[stream_], gap));
    begin = std::max(begin, after(wait_ns_[stream_], gap));
    const GpuTrace::Stream& own = trace_.streams[stream_];
    for (std::size_t s = 0; s < trace_.streams.size(); ++s) {
      const GpuTrace::Stream& other = trace_.streams[s];
      const bool ordered = (own.legacy_default && other.blocking) || (other.legacy_default && own.blocking);
      if (s != stream_ && ordered && other.process == own.process && other.device == own.device) {
        begin = std::max(begin, after(stream_ns_[s], gap));
      }
    }
    if (op.kind == GpuOpKind::copy && op.copy != CopyKind::d2d) {
      std::int64_t& engine = engine_ns_[{own.device, op.copy}];
      begin = std::max(begin, engine);
      engine = begin + ns;
    }
    op.begin_ns = begin;
    op.end_ns = begin + ns;
    op.stream = stream_;
    op.correlation = correlations_[process_];
    stream_ns_[stream_] = op.end_ns;
    trace_.ops.push_back(op);
  }
  static std::int64_t after(std::int64_t end, std::int64_t gap) { return end ? end + gap : 0; }

  std::uint32_t shape_number(LaunchShape shape) {
    const auto at = std::find(trace_.shapes.begin(), trace_.shapes.end(), shape);
    if (at != trace_.shapes.end()) return std::uint32_t(at - trace_.shapes.begin());
    trace_.shapes.push_back(std::move(shape));
    return std::uint32_t(trace_.shapes.size() - 1);
  }

  static void keep_windows(GpuTrace& trace) {
    if (trace.windows.empty()) return;
    const auto inside = [&](std::uint32_t process, std::int64_t at_ns) {
      return std::any_of(trace.windows.begin(), trace.windows.end(), [&](const GpuTrace::Window& w) {
        return w.process == process && at_ns >= w.begin_ns && at_ns < w.end_ns;
      });
    };
    std::set<std::pair<std::uint32_t, std::uint32_t>> kept;
    std::erase_if(trace.calls, [&](const GpuTrace::Call& call) {
      const auto process = trace.threads[call.thread].process;
      if (!inside(process, call.begin_ns)) return true;
      kept.emplace(process, call.correlation);
      return false;
    });
    std::erase_if(trace.ops, [&](const GpuTrace::Op& op) {
      return !kept.count({trace.streams[op.stream].process, op.correlation});
    });
  }

  TraceCosts costs_;
  GpuTrace trace_;
  bool own_devices_ = false;
  int device_ = 0;
  std::uint32_t process_ = 0, thread_ = 0, stream_ = 0;
  std::vector<std::uint32_t> correlations_;  // last of each process
  std::uint64_t last_record_ = 0, from_address_ = 0, to_address_ = 0, content_hash_ = 0;
  std::vector<std::int64_t> host_ns_, stream_ns_, wait_ns_;
  std::map<std::pair<int, CopyKind>, std::int64_t> engine_ns_;
  std::map<int, Record> records_;
  std::vector<GpuTrace::Range> open_ranges_;
};

}  // namespace fulcrum::test
