// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See trace_view.h. Numbers go as differences and names as places in a table: a page holds thousands of events.
#include "report/trace_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace fulcrum::report {
namespace {

constexpr std::int64_t kLongStart = 3;  // a run so many times as long as its iterations

/// Texts by number, each once.
class Names {
 public:
  std::int64_t number(const std::string& text) {
    const auto [at, added] = numbers_.try_emplace(text, static_cast<std::int64_t>(list_.size()));
    if (added) list_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::int64_t> numbers_;
  std::vector<std::string> list_;
};

/// What an event is drawn as: places in kClasses.
constexpr const char* kClasses[] = {"kernel", "copy",  "memset", "graph", "launch",
                                    "sync",   "alloc", "call",   "mark"};
enum Class : int { kKernel, kCopy, kMemset, kGraph, kLaunch, kSync, kAlloc, kCall, kMark };

Class class_of(GpuOpKind kind) {
  switch (kind) {
    case GpuOpKind::kernel:
      return kKernel;
    case GpuOpKind::copy:
      return kCopy;
    case GpuOpKind::memset:
      return kMemset;
    case GpuOpKind::graph:
      return kGraph;
  }
  return kKernel;
}

Class class_of(CallKind kind) {
  switch (kind) {
    case CallKind::launch:
    case CallKind::graph_launch:
      return kLaunch;
    case CallKind::copy:
    case CallKind::memset:
      return kCopy;
    case CallKind::device_sync:
    case CallKind::stream_sync:
    case CallKind::event_sync:
    case CallKind::query:
      return kSync;
    case CallKind::alloc:
    case CallKind::free:
    case CallKind::pool_alloc:
    case CallKind::pool_free:
    case CallKind::host_alloc:
    case CallKind::host_free:
    case CallKind::host_register:
      return kAlloc;
    default:
      return kCall;
  }
}

std::string op_text(const GpuTrace& trace, const GpuTrace::Op& op) {
  switch (op.kind) {
    case GpuOpKind::kernel: {
      const LaunchShape& shape = trace.shapes[op.shape];
      return fmt::format("{}, {} CTAs of {} threads", shape.name, human_count(shape.blocks()),
                         human_count(shape.threads()));
    }
    case GpuOpKind::copy:
      return fmt::format("copy {}, {}, {} to {}", to_string(op.copy),
                         human_bytes(static_cast<double>(op.bytes)), to_string(op.from), to_string(op.to));
    case GpuOpKind::memset:
      return fmt::format("memset, {}", human_bytes(static_cast<double>(op.bytes)));
    case GpuOpKind::graph:
      return fmt::format("graph {}", op.graph);
  }
  return "";
}

struct Lane {
  std::string name;
  const char* kind = "";
  std::int64_t last_ns = 0;
  std::vector<std::int64_t> begin, length, names, classes;

  void add(std::int64_t begin_ns, std::int64_t end_ns, std::int64_t name, Class what,
           const Stretch& stretch) {
    const std::int64_t at = begin_ns - stretch.begin_ns;
    begin.push_back(at - last_ns);
    last_ns = at;
    length.push_back(end_ns - begin_ns);
    names.push_back(name);
    classes.push_back(what);
  }
  Json json() const {
    return Json{{"name", name},     {"kind", kind},   {"begin", begin},
                {"length", length}, {"names", names}, {"classes", classes}};
  }
};

std::string stream_name(const GpuTrace& trace, std::uint32_t number) {
  const GpuTrace::Stream& stream = trace.streams[number];
  std::string name = trace.devices.size() > 1 ? fmt::format("GPU {} ", stream.device) : "GPU ";
  name += stream.legacy_default ? "default stream" : fmt::format("stream {}", stream.id);
  if (trace.processes.size() > 1) name += fmt::format(", process {}", trace.processes[stream.process].pid);
  return name;
}

std::string thread_name(const GpuTrace& trace, std::uint32_t number) {
  const GpuTrace::Thread& thread = trace.threads[number];
  return fmt::format("host {} {}", thread.name.empty() ? "thread" : thread.name, thread.tid);
}

}  // namespace

Json stretch_json(const GpuTrace& trace, const Timeline& timeline, const Stretch& stretch) {
  Names names;
  std::map<std::uint32_t, Lane> streams, marks, threads;
  for (const GpuTrace::Op& op : trace.ops) {
    if (!inside(op.begin_ns, op.end_ns, stretch)) continue;
    streams[op.stream].add(op.begin_ns, op.end_ns, names.number(op_text(trace, op)), class_of(op.kind),
                           stretch);
  }
  for (const GpuTrace::Range& range : trace.ranges) {
    if (inside(range.begin_ns, range.end_ns, stretch))
      marks[range.thread].add(range.begin_ns, range.end_ns, names.number(range.name), kMark, stretch);
  }
  for (const GpuTrace::Call& call : trace.calls) {
    if (!inside(call.begin_ns, call.end_ns, stretch)) continue;
    threads[call.thread].add(call.begin_ns, call.end_ns, names.number(std::string(to_string(call.kind))),
                             class_of(call.kind), stretch);
  }
  Json lanes = Json::array();
  const auto put = [&](auto& list, const char* kind, const auto& name) {
    for (auto& [number, lane] : list) {
      lane.name = name(number);
      lane.kind = kind;
      lanes.push_back(lane.json());
    }
  };
  put(streams, "stream", [&](std::uint32_t i) { return stream_name(trace, i); });
  put(marks, "mark", [&](std::uint32_t i) { return thread_name(trace, i) + ", marks"; });
  put(threads, "thread", [&](std::uint32_t i) { return thread_name(trace, i); });

  Json gaps = Json::array();
  for (const Timeline::Gap& gap : timeline.gaps) {
    if (inside(gap.begin_ns, gap.end_ns, stretch))
      gaps.push_back(Json{gap.begin_ns - stretch.begin_ns, gap.end_ns - gap.begin_ns, to_string(gap.cause),
                          gap.function});
  }
  Json iterations = Json::array();
  for (const std::int64_t begin_ns : timeline.iterations.begins_ns) {
    if (begin_ns >= stretch.begin_ns && begin_ns <= stretch.end_ns)
      iterations.push_back(begin_ns - stretch.begin_ns);
  }
  return Json{{"begin_ns", stretch.begin_ns},
              {"length_ns", stretch.end_ns - stretch.begin_ns},
              {"whole_iterations", stretch.iterations},
              {"items", stretch.items},
              {"names", names.list()},
              {"classes", kClasses},
              {"lanes", std::move(lanes)},
              {"gaps", std::move(gaps)},
              {"iterations", std::move(iterations)}};
}

Json density_json(const GpuTrace& trace, const Timeline& timeline, std::int64_t bins) {
  if (trace.ops.empty()) return nullptr;
  std::int64_t begin_ns = trace.ops.front().begin_ns, end_ns = begin_ns + 1;
  for (const GpuTrace::Op& op : trace.ops) {
    begin_ns = std::min(begin_ns, op.begin_ns);
    end_ns = std::max(end_ns, op.end_ns);
  }
  const std::int64_t whole_ns = end_ns - begin_ns;
  // A long start-up would squeeze everything else into a few pixels.
  if (timeline.end_ns > timeline.begin_ns && whole_ns > kLongStart * (timeline.end_ns - timeline.begin_ns)) {
    begin_ns = timeline.begin_ns;
    end_ns = timeline.end_ns;
  }
  const double bin_ns = static_cast<double>(end_ns - begin_ns) / static_cast<double>(bins);
  const auto spread = [&](std::vector<double>& into, std::int64_t from, std::int64_t to) {
    if (to <= begin_ns || from >= end_ns) return;
    const double first = static_cast<double>(std::max(from, begin_ns) - begin_ns) / bin_ns;
    const double last = static_cast<double>(std::min(to, end_ns) - begin_ns) / bin_ns;
    for (double at = first; at < last;) {
      const double next = std::min(std::floor(at) + 1, last);
      into[std::min(static_cast<std::size_t>(at), into.size() - 1)] += next - at;
      at = next;
    }
  };
  const auto percents = [](const std::vector<double>& shares) {
    std::vector<int> list;
    list.reserve(shares.size());
    for (const double share : shares)
      list.push_back(static_cast<int>(std::lround(100 * std::min(share, 1.0))));
    return list;
  };
  struct Busy {
    std::vector<double> share;
    std::int64_t until_ns = 0;
  };
  std::map<int, Busy> devices;
  for (const GpuTrace::Op& op :
       trace.ops) {  // in order of their begin: what another op covers is counted already
    Busy& busy = devices[trace.streams[op.stream].device];
    if (busy.share.empty()) busy = {std::vector<double>(static_cast<std::size_t>(bins)), begin_ns};
    if (op.end_ns <= busy.until_ns || op.begin_ns >= end_ns) continue;
    spread(busy.share, std::max(op.begin_ns, busy.until_ns), op.end_ns);
    busy.until_ns = op.end_ns;
  }
  Json list = Json::array();
  for (const auto& [device, busy] : devices)
    list.push_back(Json{{"device", device}, {"busy", percents(busy.share)}});
  Json traced = nullptr;
  if (!trace.windows.empty()) {
    std::vector<double> share(static_cast<std::size_t>(bins));
    for (const GpuTrace::Window& window : trace.windows) spread(share, window.begin_ns, window.end_ns);
    traced = percents(share);
  }
  return Json{{"begin_ns", begin_ns},
              {"length_ns", end_ns - begin_ns},
              {"whole_ns", whole_ns},
              {"devices", std::move(list)},
              {"traced", std::move(traced)}};
}

Json marks_json(const GpuTrace& trace, const Finding& finding, const Stretch& stretch) {
  constexpr std::size_t kMost = 40;
  Json marks = Json::array();
  const auto add = [&](const auto& list, const std::vector<std::uint32_t>& numbers) {
    for (const std::uint32_t number : numbers) {
      if (number >= list.size() || marks.size() >= kMost) continue;
      const auto& one = list[number];
      if (inside(one.begin_ns, one.end_ns, stretch))
        marks.push_back(Json{one.begin_ns - stretch.begin_ns, one.end_ns - one.begin_ns});
    }
  };
  add(trace.ops, finding.ops);
  add(trace.calls, finding.calls);
  if (!marks.empty()) return marks;
  // None of its examples is here, but their like are.
  constexpr std::size_t kMostAlike = 8;
  std::set<std::pair<GpuOpKind, std::uint32_t>> kinds;
  for (const std::uint32_t number : finding.ops) {
    if (number < trace.ops.size()) kinds.emplace(trace.ops[number].kind, trace.ops[number].shape);
  }
  for (const GpuTrace::Op& op : trace.ops) {
    if (marks.size() >= kMostAlike) break;
    if (inside(op.begin_ns, op.end_ns, stretch) && kinds.contains({op.kind, op.shape}))
      marks.push_back(Json{op.begin_ns - stretch.begin_ns, op.end_ns - op.begin_ns});
  }
  return marks;
}

}  // namespace fulcrum::report
