// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Chrome's trace format, which Perfetto reads too: a process a GPU with a row a stream, a process a host process with a
// row a thread, arrows from launches to what they launched, samples of the CPU and counters, all on one clock. Calls,
// copies and devices are named as torch.profiler names them, so that whoever reads its files can read these.
#include <fmt/format.h>
#include <fulcrum/trace.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "trace/import/names.h"

namespace fulcrum::trace {
namespace {

/// Rows of a GPU need a process number that no real process has.
constexpr std::int64_t kGpuProcess = std::int64_t{1} << 30;
constexpr std::int64_t kFaultRow = 1'000'000, kWindowRow = 2'000'000'000, kSampleRow = 1'000'000'000;
/// Outermost frames of deep stacks are left out.
constexpr std::size_t kMostFrames = 24;

std::int64_t nanoseconds(double seconds) {
  constexpr double kMost = 1e9;  // thirty years: damaged files say more
  return static_cast<std::int64_t>(std::clamp(seconds, -kMost, kMost) * 1e9);
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class ChromeWriter {
 public:
  explicit ChromeWriter(const GpuTrace& trace) : trace_(trace) {}

  std::string text() {
    out_ = fmt::format(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"command\":{},\"created_utc\":{},"
        "\"program\":{}}},\"exportedBy\":\"fulcrum\",\"traceName\":{},\"deviceProperties\":[",
        quoted(trace_.command), quoted(trace_.created_utc), quoted(trace_.program), quoted(trace_.command));
    for (const GpuTrace::Device& device : trace_.devices) add(device);
    if (out_.ends_with(',')) out_.pop_back();
    out_ += "],\"traceEvents\":[";
    name_rows();
    for (const GpuTrace::Op& op : trace_.ops) add(op);
    add_calls();
    add_arrows();
    for (const GpuTrace::Range& range : trace_.ranges)
      slice(pid(range.thread), tid(range.thread), "user_annotation", range.name, range.begin_ns,
            range.end_ns);
    for (const GpuTrace::Overhead& o : trace_.overheads)
      slice(pid(o.thread), tid(o.thread), "overhead", o.what, o.begin_ns, o.end_ns);
    add_faults();
    for (const GpuTrace::Window& window : trace_.windows)
      slice(process_id(window.process), kWindowRow, "window", "traced", window.begin_ns, window.end_ns);
    add_counters();
    if (trace_.cpu) add_samples(*trace_.cpu);
    if (out_.ends_with(',')) out_.pop_back();
    out_ += "]}\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += ',';
  }
  static double microseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

  void slice(std::int64_t process, std::int64_t row, const char* category, const std::string& name,
             std::int64_t begin, std::int64_t end, const std::string& args = "{}") {
    put(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{}}})", category,
        quoted(name), process, row, microseconds(begin), microseconds(end - begin), args);
  }
  void name(const char* what, std::int64_t process, std::int64_t row, const std::string& name) {
    put(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":{}}}}})", what, process, row,
        quoted(name));
  }
  void sort_index(const char* what, std::int64_t process, std::int64_t row, std::int64_t index) {
    put(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", what, process, row,
        index);
  }

  std::int64_t process_id(std::uint32_t process) const {
    return process < trace_.processes.size() ? trace_.processes[process].pid : 0;
  }
  std::int64_t pid(std::uint32_t thread) const {
    return thread < trace_.threads.size() ? process_id(trace_.threads[thread].process) : 0;
  }
  std::int64_t tid(std::uint32_t thread) const {
    return thread < trace_.threads.size() ? trace_.threads[thread].tid : 0;
  }
  std::int64_t gpu(std::uint32_t stream) const {
    return kGpuProcess + (stream < trace_.streams.size() ? trace_.streams[stream].device : 0);
  }
  static std::int64_t row(std::uint32_t stream) { return std::int64_t{stream} + 1; }
  /// Where an op ran, as its arguments; processes number their streams alike.
  std::string place(std::uint32_t stream) const {
    constexpr std::uint64_t kApart = 1'000'000;
    if (stream >= trace_.streams.size()) return R"("device":0,"stream":0)";
    const GpuTrace::Stream& s = trace_.streams[stream];
    const auto number = static_cast<std::uint64_t>(s.id) + kApart * s.process;  // damaged files have any
    return fmt::format(R"("device":{},"stream":{})", s.device, static_cast<std::int64_t>(number));
  }

  void add(const GpuTrace::Device& d) {
    put(R"({{"id":{},"name":{},"totalGlobalMem":{},"computeMajor":{},"computeMinor":{},)"
        R"("maxThreadsPerMultiprocessor":{},"regsPerMultiprocessor":{},"sharedMemPerMultiprocessor":{},)"
        R"("numSms":{}}})",
        d.id, quoted(d.name), d.memory_bytes, d.compute_major, d.compute_minor, d.max_threads_per_sm,
        d.registers_per_sm, d.shared_per_sm, d.sms);
  }

  void name_rows() {
    for (const GpuTrace::Device& device : trace_.devices) {
      name("process_name", kGpuProcess + device.id, 0, fmt::format("GPU {} {}", device.id, device.name));
      sort_index("process_sort_index", kGpuProcess + device.id, 0, -1);
    }
    for (std::uint32_t i = 0; i < trace_.streams.size(); ++i) {
      const GpuTrace::Stream& stream = trace_.streams[i];
      const std::string of =
          trace_.processes.size() > 1 ? fmt::format(" of {}", process_id(stream.process)) : "";
      name("thread_name", gpu(i), row(i),
           fmt::format("stream {}{}{}", stream.id, stream.legacy_default ? " (default)" : "", of));
    }
    for (const GpuTrace::Process& process : trace_.processes)
      name("process_name", process.pid, 0, process.command.empty() ? "host" : process.command);
    for (std::uint32_t i = 0; i < trace_.threads.size(); ++i) {
      const std::string& known = trace_.threads[i].name;
      name("thread_name", pid(i), tid(i), known.empty() ? fmt::format("thread {}", tid(i)) : known);
    }
    for (std::uint32_t i = 0; i < trace_.processes.size() && !trace_.windows.empty(); ++i)
      name("thread_name", process_id(i), kWindowRow, "traced windows");
  }

  void add(const GpuTrace::Op& op) {
    if (op.kind == GpuOpKind::kernel && op.shape < trace_.shapes.size()) {
      const LaunchShape& s = trace_.shapes[op.shape];
      slice(gpu(op.stream), row(op.stream), "kernel", s.name, op.begin_ns, op.end_ns,
            fmt::format(
                R"({{{},"grid":[{},{},{}],"block":[{},{},{}],"registers per thread":{},"shared memory":{},)"
                R"("correlation":{},"graph id":{},"graph node id":{}}})",
                place(op.stream), s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
                s.registers, s.static_shared + s.dynamic_shared, op.correlation, op.graph, op.graph_node));
      return;
    }
    const bool is_graph = op.kind != GpuOpKind::copy && op.kind != GpuOpKind::memset;
    const char* category = is_graph ? "graph" : op.kind == GpuOpKind::copy ? "gpu_memcpy" : "gpu_memset";
    slice(gpu(op.stream), row(op.stream), category,
          is_graph ? fmt::format("graph {}", op.graph) : copy_name(op), op.begin_ns, op.end_ns,
          fmt::format(R"({{{},"bytes":{},"correlation":{},"graph id":{}}})", place(op.stream), op.bytes,
                      op.correlation, op.graph));
  }

  void add_calls() {
    std::unordered_map<std::uint64_t, bool> is_async;       // by what the call copied or set
    std::unordered_map<std::uint64_t, std::uint32_t> made;  // call by the record of an event that it made
    for (const GpuTrace::Op& op : trace_.ops) {
      if (op.stream < trace_.streams.size())
        is_async.try_emplace(key(trace_.streams[op.stream].process, op.correlation), op.async);
    }
    for (const GpuTrace::Call& call : trace_.calls) {
      if (call.kind == CallKind::event_record && call.event != 0)
        made.try_emplace(call.event, call.correlation);
    }
    for (const GpuTrace::Call& call : trace_.calls) {
      const auto process = call.thread < trace_.threads.size() ? trace_.threads[call.thread].process : 0;
      const auto async = is_async.find(key(process, call.correlation));
      std::string args = fmt::format(R"({{"correlation":{})", call.correlation);
      if (call.bytes > 0) args += fmt::format(R"(,"bytes":{})", call.bytes);
      if (call.stream >= 0) args += "," + place(static_cast<std::uint32_t>(call.stream));
      if (const auto record = made.find(call.event);
          record != made.end() && call.kind != CallKind::event_record)
        args += fmt::format(R"(,"wait_on_cuda_event_record_corr_id":{})", record->second);
      slice(pid(call.thread), tid(call.thread), "cuda_runtime",
            std::string(call_name(call.kind, async != is_async.end() && async->second)), call.begin_ns,
            call.end_ns, args + "}");
    }
  }

  static std::uint64_t key(std::uint32_t process, std::uint32_t correlation) {
    return std::uint64_t{process} << 32 | correlation;
  }

  /// One arrow a call: to the first op that it caused.
  void add_arrows() {
    std::unordered_map<std::uint64_t, const GpuTrace::Call*> calls;
    for (const GpuTrace::Call& call : trace_.calls) {
      if (call.correlation != 0 && call.thread < trace_.threads.size())
        calls.try_emplace(key(trace_.threads[call.thread].process, call.correlation), &call);
    }
    for (const GpuTrace::Op& op : trace_.ops) {
      if (op.correlation == 0 || op.stream >= trace_.streams.size()) continue;
      const std::uint64_t id = key(trace_.streams[op.stream].process, op.correlation);
      const auto call = calls.find(id);
      if (call == calls.end()) continue;
      put(R"({{"ph":"s","cat":"launch","name":"launch","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", id,
          pid(call->second->thread), tid(call->second->thread), microseconds(call->second->begin_ns));
      put(R"({{"ph":"f","bp":"e","cat":"launch","name":"launch","id":{},"pid":{},"tid":{},"ts":{:.3f}}})", id,
          gpu(op.stream), row(op.stream), microseconds(op.begin_ns));
      calls.erase(call);
    }
  }

  void add_faults() {
    for (const GpuTrace::Fault& fault : trace_.faults)
      slice(kGpuProcess + fault.device, kFaultRow, "managed", fault.stalled ? "page faults" : "pages moved",
            fault.begin_ns, fault.end_ns,
            fmt::format(R"({{"bytes":{},"count":{},"direction":"{}"}})", fault.bytes, fault.count,
                        to_string(fault.direction)));
    for (const GpuTrace::Device& device : trace_.devices) {
      if (!trace_.faults.empty()) name("thread_name", kGpuProcess + device.id, kFaultRow, "unified memory");
    }
  }

  void counter(int device, const char* what, std::int64_t at, double value) {
    put(R"({{"ph":"C","name":"{}","pid":{},"ts":{:.3f},"args":{{"value":{:.6g}}}}})", what,
        kGpuProcess + device, microseconds(at), value);
  }
  void add_counters() {
    for (const GpuTrace::Clock& clock : trace_.clocks) {
      counter(clock.device, "SM clock, MHz", clock.at_ns, clock.sm_mhz);
      counter(clock.device, "power, W", clock.at_ns, clock.watts);
      counter(clock.device, "temperature, C", clock.at_ns, clock.celsius);
    }
    using Sample = GpuTrace::CounterSample;
    constexpr std::pair<const char*, double Sample::*> kShares[] = {
        {"SM active, %", &Sample::sm_active},
        {"SM throughput, %", &Sample::sm_throughput},
        {"tensor active, %", &Sample::tensor_active},
        {"warps active, %", &Sample::warps_active},
        {"DRAM, %", &Sample::dram},
        {"L2 hits, %", &Sample::l2_hit}};
    for (const Sample& sample : trace_.counter_samples) {
      for (const auto& [what, member] : kShares) {
        if (sample.*member >= 0) counter(sample.device, what, sample.begin_ns, 100 * (sample.*member));
      }
    }
  }

  static std::int64_t sample_row(const CpuProfile::Thread& thread) {
    return kSampleRow + (thread.tid & 0xffffffff);
  }
  std::string stack_text(const CpuProfile& cpu, const CpuProfile::Stack& stack) const {
    std::string text;
    for (std::size_t i = 0; i < stack.frames.size() && i < kMostFrames; ++i) {
      if (stack.frames[i] >= cpu.frames.size()) continue;
      text += (text.empty() ? "" : "\n") + cpu.frames[stack.frames[i]].function;
    }
    return text;
  }
  /// A row a thread: each sample is a slice as long as the time it stands for, a blocked one from its begin on.
  void add_samples(const CpuProfile& cpu) {
    for (const CpuProfile::Thread& thread : cpu.threads)
      name("thread_name", thread.pid, sample_row(thread),
           fmt::format("samples of {} {}", thread.tid, thread.name));
    for (const CpuProfile::Sample& sample : cpu.samples) {
      if (sample.thread >= cpu.threads.size() || sample.stack >= cpu.stacks.size()) continue;
      const CpuProfile::Thread& thread = cpu.threads[sample.thread];
      const CpuProfile::Stack& stack = cpu.stacks[sample.stack];
      const bool known = !stack.frames.empty() && stack.frames[0] < cpu.frames.size();
      const auto at = nanoseconds(sample.seconds + trace_.cpu_offset_seconds);
      const auto length = nanoseconds(sample.weight_seconds);
      const std::int64_t begin = sample.blocked ? at : at - length;
      slice(thread.pid, sample_row(thread), sample.blocked ? "blocked" : "cpu",
            known ? cpu.frames[stack.frames[0]].function : "unknown", begin, begin + length,
            fmt::format("{{\"stack\":{}}}", quoted(stack_text(cpu, stack))));
    }
  }

  const GpuTrace& trace_;
  std::string out_;
};

}  // namespace

std::string chrome_trace(const GpuTrace& trace) { return ChromeWriter(trace).text(); }

}  // namespace fulcrum::trace
