// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What happened when: the records of a process that carry stamps. A GPU op without both of its stamps is counted and
// left out, since CUPTI writes 0 for what it could not time; marks and windows that never ended end with the process.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace/file/names.h"
#include "trace/file/process_reader.h"

namespace fulcrum::trace::file {
namespace {

template <class E>
E word(std::uint32_t value) {
  const std::size_t known = names_of<E>().size();
  return value < known ? static_cast<E>(value) : E{};
}

double figure(float value, double otherwise) {
  return std::isfinite(value) ? static_cast<double>(value) : otherwise;
}

}  // namespace

bool ProcessReader::relative(std::int64_t stamp, std::int64_t& instant) const {
  if (stamp <= 0 || stamp >= kLatestStamp) return false;
  const std::int64_t since = stamp - base_ns_;
  if (since <= -kFarthest || since >= kFarthest) return false;
  instant = since;
  return true;
}

bool ProcessReader::span(std::int64_t begin, std::int64_t end, std::int64_t& begin_ns, std::int64_t& end_ns) {
  if (!relative(begin, begin_ns) || !relative(end, end_ns) || end_ns < begin_ns) return false;
  last_ns_ = std::max(last_ns_, end_ns);
  return true;
}

void ProcessReader::read_records(std::int64_t base_ns) {
  base_ns_ = base_ns;
  relative(section_.head.begin_ns, process().begin_ns);
  if (process().end_ns > 0) relative(process().end_ns, last_ns_);
  last_ns_ = std::max(last_ns_, process().begin_ns);
  first_op_ = trace_.ops.size();
  first_range_ = trace_.ranges.size();
  first_window_ = trace_.windows.size();
  for (const ChunkView& chunk : section_.chunks) read_chunk(chunk);
  close_open_ends();
  add_notes();
}

void ProcessReader::read_chunk(const ChunkView& chunk) {
  switch (chunk.kind) {
    case Kind::kernel:
      return each<Kernel>(chunk, [&](const Kernel& record) { read_kernel(record); });
    case Kind::copy:
      return each<Copy>(chunk, [&](const Copy& record) { read_copy(record); });
    case Kind::call:
      return each<Call>(chunk, [&](const Call& record) { read_call(record); });
    case Kind::range:
      return each<Range>(chunk, [&](const Range& r) {
        GpuTrace::Range range{.thread = number_of_thread(r.thread), .name = text(r.name)};
        // One that is still open has no end; it gets that of the process.
        const bool there = r.end_ns == 0 ? relative(r.begin_ns, range.begin_ns)
                                         : span(r.begin_ns, r.end_ns, range.begin_ns, range.end_ns);
        if (r.end_ns == 0) range.end_ns = -kLatestStamp;
        keep(there, trace_.ranges, std::move(range));
      });
    case Kind::overhead:
      return each<Overhead>(chunk, [&](const Overhead& o) {
        GpuTrace::Overhead overhead{.what = text(o.what), .thread = number_of_thread(o.thread)};
        const bool there = span(o.begin_ns, o.end_ns, overhead.begin_ns, overhead.end_ns);
        keep(there, trace_.overheads, std::move(overhead));
      });
    case Kind::window:
      return each<Window>(chunk, [&](const Window& record) { read_window(record); });
    case Kind::total:
      return each<Total>(chunk, [&](const Total& record) { read_total(record); });
    case Kind::footer:
      return each<Footer>(chunk, [&](const Footer& record) { read_footer(record); });
    default:
      return read_samples(chunk);
  }
}

void ProcessReader::read_samples(const ChunkView& chunk) {
  switch (chunk.kind) {
    case Kind::fault:
      return each<Fault>(chunk, [&](const Fault& f) {
        GpuTrace::Fault fault{.bytes = std::max<std::int64_t>(0, f.bytes),
                              .count = std::max<std::int64_t>(0, f.count),
                              .direction = word<CopyKind>(f.direction),
                              .stalled = f.stalled != 0,
                              .process = process_,
                              .device = f.device};
        const bool there = span(f.begin_ns, f.end_ns, fault.begin_ns, fault.end_ns);
        keep(there, trace_.faults, fault);
      });
    case Kind::clock:
      return each<Clock>(chunk, [&](const Clock& record) { add_clock(record); });
    case Kind::counter:
      return each<Counter>(chunk, [&](const Counter& record) { add_counter(record); });
    case Kind::binary:
      return each<Binary>(chunk, [&](const Binary& b) {
        GpuTrace::Binary binary{text(b.path), text(b.build_id), b.modified_ns, text(b.newer), b.newer_by_ns};
        const auto same = [&](const auto& known) {
          return known.path == binary.path && known.build_id == binary.build_id;
        };
        constexpr std::size_t kMostBinaries = 4096;
        if (trace_.binaries.size() < kMostBinaries &&
            std::none_of(trace_.binaries.begin(), trace_.binaries.end(), same))
          trace_.binaries.push_back(std::move(binary));
      });
    case Kind::drop:
      return each<Drop>(chunk, [&](const Drop& d) {
        const std::int64_t most = std::int64_t{1} << 40;
        process().dropped += std::clamp<std::int64_t>(d.records, 0, most);
        process().zero_stamps += std::clamp<std::int64_t>(d.zero_stamps, 0, most);
        if (d.records > 0 && d.why != 0)
          note(fmt::format("process {} lost {} records: {}", process().pid, d.records, text(d.why)));
      });
    case Kind::text:
    case Kind::property:
    case Kind::device:
    case Kind::shape:
    case Kind::stream:
    case Kind::thread:
      return;
    default:
      ++unread_chunks_;  // of a later version
  }
}

void ProcessReader::add_op(GpuTrace::Op& op, std::int64_t begin, std::int64_t end) {
  if (span(begin, end, op.begin_ns, op.end_ns)) {
    trace_.ops.push_back(op);
  } else {
    ++process().zero_stamps;
  }
}

void ProcessReader::read_kernel(const Kernel& k) {
  const bool whole_graph = k.shape == kWholeGraph;
  GpuTrace::Op op{.kind = whole_graph ? GpuOpKind::graph : GpuOpKind::kernel,
                  .stream = number_of_stream(k.stream),
                  .shape = whole_graph ? 0 : number_of_shape(k.shape),
                  .correlation = k.correlation,
                  .graph = k.graph,
                  .graph_node = k.graph_node};
  add_op(op, k.begin_ns, k.end_ns);
}

void ProcessReader::read_copy(const Copy& c) {
  const bool memset = c.kind == kMemset;
  GpuTrace::Op op{.kind = memset ? GpuOpKind::memset : GpuOpKind::copy,
                  .stream = number_of_stream(c.stream),
                  .correlation = c.correlation,
                  .graph = c.graph,
                  .graph_node = c.graph_node,
                  .bytes = std::max<std::int64_t>(0, c.bytes),
                  .copy = memset ? CopyKind::unknown : word<CopyKind>(c.kind),
                  .from = word<MemoryKind>(c.from),
                  .to = word<MemoryKind>(c.to),
                  .async = (c.flags & 1) != 0,
                  .from_address = c.from_address,
                  .to_address = c.to_address,
                  .content_hash = c.content_hash};
  add_op(op, c.begin_ns, c.end_ns);
}

void ProcessReader::read_call(const Call& c) {
  const bool is_long = c.duration_ns == kLongCall;
  GpuTrace::Call call{.kind = word<CallKind>(c.kind),
                      .thread = number_of_thread(c.thread),
                      .correlation = c.correlation,
                      .stream = c.stream == 0 ? -1 : std::int64_t{number_of_stream(c.stream - 1)},
                      .event = c.event,
                      .bytes = is_long ? 0 : c.bytes,
                      .address = c.address,
                      .per_thread_stream = (c.flags & 1) != 0};
  // Numbers of events are the process's own; those of others must not meet them.
  if (call.event != 0 && call.event >> kEventBits == 0) call.event |= std::uint64_t{process_} << kEventBits;
  const std::int64_t duration = is_long ? c.bytes : c.duration_ns;
  const bool fits = duration >= 0 && duration < kLatestStamp && c.begin_ns < kLatestStamp - duration;
  const bool there = fits && span(c.begin_ns, c.begin_ns + duration, call.begin_ns, call.end_ns);
  keep(there, trace_.calls, call);
}

void ProcessReader::read_total(const Total& t) {
  GpuTrace::Total total{.shape = number_of_shape(t.shape),
                        .stream = number_of_stream(t.stream),
                        .count = t.count,
                        .sum_ns = t.sum_ns,
                        .min_ns = t.min_ns,
                        .max_ns = t.max_ns};
  for (int i = 0; i < 40; ++i) {
    if (t.histogram[i] > 0) total.histogram[i] = t.histogram[i];
  }
  // Totals are written again and again as they grow; the last counts.
  const auto [at, added] =
      totals_.try_emplace(std::uint64_t{total.shape} << 32 | total.stream, trace_.totals.size());
  if (added) trace_.totals.emplace_back();
  trace_.totals[at->second] = std::move(total);
}

void ProcessReader::read_window(const Window& w) {
  GpuTrace::Window window{.process = process_};
  const bool there = w.end_ns == 0 ? relative(w.begin_ns, window.begin_ns)
                                   : span(w.begin_ns, w.end_ns, window.begin_ns, window.end_ns);
  if (!there) return void(++bad_spans_);
  if (w.end_ns == 0) window.end_ns = -kLatestStamp;
  // Announced when it opens and written again when it closes.
  if (trace_.windows.size() > first_window_ && trace_.windows.back().begin_ns == window.begin_ns)
    trace_.windows.pop_back();
  trace_.windows.push_back(window);
}

void ProcessReader::read_footer(const Footer& f) {
  GpuTrace::Process& us = process();
  us.complete = true;
  us.end = text(f.end);
  if (std::isfinite(f.overhead_seconds)) us.overhead_seconds = f.overhead_seconds;
  std::int64_t end = 0;
  if (relative(f.end_ns, end)) last_ns_ = std::max(last_ns_, end);
}

void ProcessReader::add_clock(const Clock& c) {
  constexpr std::uint32_t kMostOthers = 4096;
  GpuTrace::Clock clock{.device = static_cast<int>(c.device & 0xffff),
                        .sm_mhz = figure(c.sm_mhz, 0),
                        .memory_mhz = figure(c.memory_mhz, 0),
                        .watts = figure(c.watts, 0),
                        .celsius = figure(c.celsius, 0),
                        .reasons = c.reasons,
                        .utilisation = figure(c.utilisation, -1)};
  if (!relative(c.at_ns, clock.at_ns)) return void(++bad_spans_);
  // Only one of them is named.
  clock.others.resize(std::min(c.others, kMostOthers), 0);
  if (!clock.others.empty()) clock.others[0] = c.other_pid;
  trace_.clocks.push_back(std::move(clock));
}

void ProcessReader::add_counter(const Counter& c) {
  GpuTrace::CounterSample sample{.device = static_cast<int>(c.device & 0xffff),
                                 .sm_active = figure(c.sm_active, -1),
                                 .tensor_active = figure(c.tensor_active, -1),
                                 .warps_active = figure(c.warps_active, -1),
                                 .instructions = figure(c.instructions, -1),
                                 .dram_read = figure(c.dram_read, -1),
                                 .dram = figure(c.dram, -1),
                                 .l2_hit = figure(c.l2_hit, -1),
                                 .l1_hit = figure(c.l1_hit, -1),
                                 .pcie_read_bytes = figure(c.pcie_read, -1),
                                 .pcie_write_bytes = figure(c.pcie_write, -1),
                                 .sm_throughput = figure(c.sm_throughput, -1)};
  const bool there = span(c.begin_ns, c.end_ns, sample.begin_ns, sample.end_ns);
  keep(there, trace_.counter_samples, sample);
}

void ProcessReader::close_open_ends() {
  process().end_ns = last_ns_;
  for (std::size_t i = first_range_; i < trace_.ranges.size(); ++i) {
    GpuTrace::Range& range = trace_.ranges[i];
    if (range.end_ns == -kLatestStamp) range.end_ns = std::max(range.begin_ns, last_ns_);
  }
  for (std::size_t i = first_window_; i < trace_.windows.size(); ++i) {
    GpuTrace::Window& window = trace_.windows[i];
    if (window.end_ns == -kLatestStamp) window.end_ns = std::max(window.begin_ns, last_ns_);
  }
  if (!process().complete && trace_.windows.size() > first_window_) add_last_window();
}

/// A killed process could not write the window that was open.
void ProcessReader::add_last_window() {
  std::int64_t closed = trace_.windows[first_window_].end_ns;
  for (std::size_t i = first_window_; i < trace_.windows.size(); ++i)
    closed = std::max(closed, trace_.windows[i].end_ns);
  GpuTrace::Window window{.process = process_, .begin_ns = last_ns_, .end_ns = last_ns_};
  for (std::size_t i = first_op_; i < trace_.ops.size(); ++i) {
    if (trace_.ops[i].begin_ns > closed) window.begin_ns = std::min(window.begin_ns, trace_.ops[i].begin_ns);
  }
  if (window.begin_ns < window.end_ns) trace_.windows.push_back(window);
}

}  // namespace fulcrum::trace::file
