// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The Chrome traces that torch.profiler exports. One process; its GPU work, its calls, what waited for what where the
// file says so, and the program's annotations. Operators of the framework are left out: they are not the GPU's.
#include <fmt/format.h>
#include <fulcrum/trace.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "trace/import/events.h"
#include "trace/import/names.h"

namespace fulcrum::trace {
namespace {

constexpr std::int64_t kDefaultStream = 7;  // CUPTI's number of the first context's default stream

constexpr std::uint32_t kSomeGraph = 1;

class KinetoReader {
 public:
  void device(const Event& e) {
    trace_.devices.push_back(
        {.id = static_cast<int>(e.whole("id") & 0xffff),
         .name = std::string(e.text("name")),
         .sms = small(e, "numSms"),
         .compute_major = small(e, "computeMajor"),
         .compute_minor = small(e, "computeMinor"),
         .max_threads_per_sm = small(e, "maxThreadsPerMultiprocessor"),
         .max_blocks_per_sm = most_blocks(small(e, "computeMajor"), small(e, "computeMinor")),
         .registers_per_sm = small(e, "regsPerMultiprocessor"),
         .shared_per_sm = e.whole("sharedMemPerMultiprocessor"),
         .memory_bytes = e.whole("totalGlobalMem")});
  }

  void event(const Event& e) {
    const std::string_view phase = e.text("ph");
    if (phase == "M" && e.text("name") == "thread_name") return name_thread(e);
    if (phase != "X") return;
    const std::string_view category = e.text("cat");
    const bool call = category == "cuda_runtime" || category == "cuda_driver";
    const bool op = category == "kernel" || category == "Kernel" || category == "gpu_memcpy" ||
                    category == "Memcpy" || category == "gpu_memset" || category == "Memset";
    const bool range = category == "user_annotation";
    const bool overhead = category == "overhead", window = category == "window";  // the latter in our own
    if (category == "cuda_sync") return void(waits_[number32(e, "correlation")] = wait_of(e));
    if (!call && !op && !range && !overhead && !window) return;
    const auto begin = e.nanoseconds("ts"), length = e.nanoseconds("dur");
    constexpr std::int64_t kLatest = std::int64_t{1}
                                     << 61;  // of either: their sum fits, and so do differences
    if (!begin || !length || *begin < 0 || *length < 0 || *begin >= kLatest || *length >= kLatest - *begin)
      return void(++without_time_);
    const std::int64_t end = *begin + *length;
    earliest_ = std::min(earliest_, *begin);
    if (window) return add_window(e, *begin, end);
    if (op) return add_op(e, *begin, end);
    if (call) return add_call(e, *begin, end);
    if (range) return add_range(e, *begin, end);
    trace_.overheads.push_back({overhead_name(e.text("name")), *begin, end, thread(e)});
  }

  GpuTrace finish(const Event& head);
  bool empty() const { return trace_.ops.empty() && trace_.calls.empty(); }

 private:
  static int small(const Event& e, std::string_view key) {
    return static_cast<int>(std::clamp<std::int64_t>(e.whole(key), 0, 1 << 30));
  }
  static std::uint32_t number32(const Event& e, std::string_view key) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(e.whole(key), 0, std::numeric_limits<std::uint32_t>::max()));
  }

  void name_thread(const Event& e) { names_[{e.whole("pid"), e.whole("tid")}] = e.text("args.name"); }

  std::uint32_t thread(const Event& e) {
    const std::pair key{e.whole("pid"), e.whole("tid")};
    const auto [at, added] = threads_.try_emplace(key, static_cast<std::uint32_t>(trace_.threads.size()));
    if (added) trace_.threads.push_back({.process = 0, .tid = key.second});
    return at->second;
  }

  std::uint32_t stream(int device, std::int64_t id) {
    const auto [at, added] =
        streams_.try_emplace({device, id}, static_cast<std::uint32_t>(trace_.streams.size()));
    if (added) {
      const bool is_default = id == kDefaultStream || id == 0;
      trace_.streams.push_back(
          {.device = device, .id = id, .legacy_default = is_default, .blocking = is_default});
    }
    return at->second;
  }

  std::uint32_t shape(const Event& e);
  void add_op(const Event& e, std::int64_t begin, std::int64_t end);
  void add_call(const Event& e, std::int64_t begin, std::int64_t end);
  void add_range(const Event& e, std::int64_t begin, std::int64_t end);
  void add_window(const Event& e, std::int64_t begin, std::int64_t end) {
    window_pids_.insert(e.whole("pid"));
    trace_.windows.push_back({.process = 0, .begin_ns = begin, .end_ns = end});
  }
  void join_calls();

  struct Wait {
    std::int64_t stream = -1;       // CUPTI's number
    std::uint32_t record_call = 0;  // correlation of the record that it waits for
    int device = 0;
  };
  static Wait wait_of(const Event& e);

  GpuTrace trace_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> threads_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;
  std::map<std::pair<int, std::int64_t>, std::uint32_t> streams_;
  std::unordered_map<std::string, std::uint32_t> shapes_;
  std::unordered_map<std::uint32_t, Wait> waits_;              // by the call's correlation
  std::unordered_map<std::uint32_t, std::string> call_names_;  // of copies
  std::set<std::int64_t> window_pids_;
  std::int64_t earliest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t without_time_ = 0, pid_ = 0;
};

std::uint32_t KinetoReader::shape(const Event& e) {
  LaunchShape shape;
  shape.name = e.text("name");
  const auto three = [&](std::string_view key, std::int64_t(&to)[3]) {
    const Event::Value* value = e.find(key);
    for (std::size_t i = 0; value && i < 3 && i < value->numbers.size(); ++i)
      to[i] = static_cast<std::int64_t>(std::clamp(value->numbers[i], 0.0, 4294967295.0));
  };
  three("grid", shape.grid);
  three("block", shape.block);
  three("cluster", shape.cluster);
  shape.registers = small(e, "registers per thread");
  shape.static_shared = small(e, "shared memory");
  const int device = small(e, "device");
  const auto is_it = [&](const auto& known) { return known.id == device; };
  const auto found = std::find_if(trace_.devices.begin(), trace_.devices.end(), is_it);
  if (found != trace_.devices.end()) estimate_occupancy(*found, shape);
  const std::string key =
      fmt::format("{}|{} {} {}|{} {} {}|{} {} {}", shape.name, shape.grid[0], shape.grid[1], shape.grid[2],
                  shape.block[0], shape.block[1], shape.block[2], shape.registers, shape.static_shared,
                  shape.blocks_per_sm);
  const auto [at, added] = shapes_.try_emplace(key, static_cast<std::uint32_t>(trace_.shapes.size()));
  if (added) trace_.shapes.push_back(std::move(shape));
  return at->second;
}

void KinetoReader::add_op(const Event& e, std::int64_t begin, std::int64_t end) {
  const std::string_view category = e.text("cat");
  GpuTrace::Op op{.begin_ns = begin, .end_ns = end};
  op.stream = stream(small(e, "device"), e.whole("stream"));
  op.correlation = number32(e, "correlation");
  op.graph = number32(e, "graph id");
  op.graph_node = static_cast<std::uint64_t>(std::max<std::int64_t>(0, e.whole("graph node id")));
  op.bytes = std::max<std::int64_t>(0, e.whole("bytes"));
  if (category == "kernel" || category == "Kernel") {
    op.shape = shape(e);
  } else if (category == "gpu_memcpy" || category == "Memcpy") {
    op.kind = GpuOpKind::copy;
    read_copy_name(e.text("name"), op);
  } else {
    op.kind = GpuOpKind::memset;
    read_copy_name(e.text("name"), op);
  }
  trace_.ops.push_back(op);
}

void KinetoReader::add_call(const Event& e, std::int64_t begin, std::int64_t end) {
  const std::string_view name = e.text("name");
  GpuTrace::Call call{.kind = call_kind(name), .begin_ns = begin, .end_ns = end, .thread = thread(e)};
  call.correlation = number32(e, "correlation");
  call.bytes = std::max<std::int64_t>(0, e.whole("bytes"));
  call.per_thread_stream = name.find("_ptsz") != name.npos;
  if (pid_ == 0) pid_ = e.whole("pid");
  if (call.kind == CallKind::copy || call.kind == CallKind::memset) call_names_[call.correlation] = name;
  // A record is named by its call; waits name that (below). Our own files say so with the call itself.
  if (call.kind == CallKind::event_record) call.event = call.correlation;
  if (e.find("stream") != nullptr || e.find("wait_on_cuda_event_record_corr_id") != nullptr)
    waits_.try_emplace(call.correlation, wait_of(e));
  trace_.calls.push_back(call);
}

void KinetoReader::add_range(const Event& e, std::int64_t begin, std::int64_t end) {
  // The profiler numbers its steps; they are all one range that repeats.
  std::string_view name = e.text("name");
  if (name.starts_with("ProfilerStep#")) name = name.substr(0, name.find('#'));
  trace_.ranges.push_back({begin, end, thread(e), std::string(name)});
}

KinetoReader::Wait KinetoReader::wait_of(const Event& e) {
  return {.stream = e.whole("stream", -1),
          .record_call = number32(e, "wait_on_cuda_event_record_corr_id"),
          .device = small(e, "device")};
}

/// What a call works on or waits for, from the ops and waits that carry its number.
void KinetoReader::join_calls() {
  std::unordered_map<std::uint32_t, std::uint32_t> streams;
  std::unordered_set<std::uint32_t> graph_launches;
  for (const GpuTrace::Call& call : trace_.calls) {
    if (call.kind == CallKind::graph_launch) graph_launches.insert(call.correlation);
  }
  for (GpuTrace::Op& op : trace_.ops) {
    // Older files do not say which graph it was.
    if (op.graph == 0 && graph_launches.count(op.correlation) != 0) op.graph = kSomeGraph;
    streams[op.correlation] = op.stream;
    if (const auto name = call_names_.find(op.correlation); name != call_names_.end())
      op.async = name->second.find("Async") != std::string::npos;
  }
  for (GpuTrace::Call& call : trace_.calls) {
    if (const auto found = streams.find(call.correlation); found != streams.end() && call.correlation != 0)
      call.stream = found->second;
    const auto wait = waits_.find(call.correlation);
    if (wait == waits_.end() || call.correlation == 0) continue;
    // 2^32 - 1 stands for all streams.
    if (wait->second.stream >= 0 && wait->second.stream < std::numeric_limits<std::uint32_t>::max())
      call.stream = stream(wait->second.device, wait->second.stream);
    if (wait->second.record_call != 0) call.event = wait->second.record_call;
  }
}

std::string utc_of(std::int64_t ns) {
  const std::time_t seconds = ns / 1'000'000'000;
  std::tm parts{};
  if (seconds < 1'000'000'000 || seconds > 4'102'444'800 || !::gmtime_r(&seconds, &parts)) return "";
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

GpuTrace KinetoReader::finish(const Event& head) {
  join_calls();
  trace_.origin = "kineto";
  if (const std::int64_t base = head.whole("baseTimeNanoseconds"); base >= 0 && base < std::int64_t{1} << 61)
    trace_.created_utc = utc_of(base + earliest_);
  const auto shift = [&](auto& rows) {
    constexpr std::int64_t kFarthest = std::int64_t{1} << 59;  // 18 years
    const auto wrong =
        std::erase_if(rows, [&](const auto& row) { return row.end_ns - earliest_ >= kFarthest; });
    without_time_ += static_cast<std::int64_t>(wrong);
    for (auto& row : rows) {
      row.begin_ns -= earliest_;
      row.end_ns -= earliest_;
      trace_.wall_ns = std::max(trace_.wall_ns, row.end_ns);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  };
  shift(trace_.ops);
  shift(trace_.calls);
  shift(trace_.ranges);
  shift(trace_.overheads);
  shift(trace_.windows);
  // All work is one process here, and windows of several are none of one.
  if (window_pids_.size() > 1) trace_.windows.clear();
  for (const auto& [key, number] : threads_) {
    if (const auto name = names_.find(key); name != names_.end()) trace_.threads[number].name = name->second;
  }
  for (const GpuTrace::Stream& stream : trace_.streams) {
    const auto is_it = [&](const auto& known) { return known.id == stream.device; };
    if (std::none_of(trace_.devices.begin(), trace_.devices.end(), is_it))
      trace_.devices.push_back({.id = stream.device, .name = "unknown GPU"});
  }
  trace_.processes.push_back({.pid = pid_,
                              .command = std::string(head.text("traceName")),
                              .cupti_version = head.whole("cupti_version"),
                              .driver_version = head.whole("cuda_driver_version"),
                              .end_ns = trace_.wall_ns,
                              .complete = true,
                              .end = "exit"});
  if (without_time_ > 0)
    trace_.notes.push_back(fmt::format("{} events without a usable time were left out", without_time_));
  return std::move(trace_);
}

}  // namespace

Result<GpuTrace> from_kineto(std::string_view text, std::string_view origin) {
  if (text.starts_with("\x1f\x8b"))
    return Error{Code::unsupported, fmt::format("{} is compressed", origin), "unpack it first: gunzip"};
  KinetoReader reader;
  EventSink sink;
  // Occupancy needs the devices, which stand at the head of the file.
  sink.device = [&](const Event& event) { reader.device(event); };
  sink.event = [&](const Event& event) { reader.event(event); };
  const std::string problem = read_events(text, sink);
  if (reader.empty()) {
    if (!problem.empty())
      return Error{Code::corrupt, fmt::format("{} has {}", origin, problem),
                   "the file is damaged, or no trace of torch.profiler"};
    return Error{
        Code::not_found, fmt::format("{} has no GPU work in it", origin),
        "profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and export_chrome_trace"};
  }
  GpuTrace trace = reader.finish(sink.head);
  if (!problem.empty())
    trace.notes.push_back(fmt::format("the file has {}: what came behind that is missing", problem));
  const std::string_view by = sink.head.text("exportedBy");  // ours
  trace.notes.push_back(
      fmt::format("from {}: clocks, dropped records and its own overhead are not in the file",
                  by.empty() ? "torch.profiler" : "a Chrome trace"));
  return trace;
}

}  // namespace fulcrum::trace
