// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A process of a trace as records; the way back of process_reader.cpp and process_records.cpp.
#include "trace/file/process_writer.h"

#include <limits>

#include "trace/file/names.h"

namespace fulcrum::trace::file {
namespace {

template <class To, class From>
To clamped(From value) {
  constexpr auto kMost = std::int64_t{std::numeric_limits<To>::max()};
  return static_cast<To>(std::clamp<std::int64_t>(value, 0, kMost));
}

}  // namespace

void ProcessWriter::definitions() {
  std::vector<Device> devices;
  for (const GpuTrace::Device& d : trace_.devices) {
    devices.push_back({clamped<std::uint32_t>(d.id), out_.text(d.name), d.sms, d.compute_major,
                       d.compute_minor, d.max_threads_per_sm, d.max_blocks_per_sm, d.registers_per_sm,
                       d.shared_per_sm, d.memory_bytes, d.memory_bytes_per_second, d.max_sm_mhz});
  }
  out_.records(Kind::device, devices);
  std::vector<Stream> streams;
  for (std::uint32_t i = 0; i < trace_.streams.size(); ++i) {
    const GpuTrace::Stream& s = trace_.streams[i];
    if (s.process != process_) continue;
    const std::uint32_t flags =
        (s.legacy_default ? kLegacyDefault : 0u) | (s.blocking ? 0u : std::uint32_t{kNonBlocking});
    streams.push_back(
        {id_of(i), clamped<std::uint32_t>(s.device), 0, clamped<std::uint32_t>(s.id), flags, 0});
  }
  out_.records(Kind::stream, streams);
  std::vector<Thread> threads;
  for (std::uint32_t i = 0; i < trace_.threads.size(); ++i) {
    const GpuTrace::Thread& t = trace_.threads[i];
    if (t.process == process_) threads.push_back({id_of(i), out_.text(t.name), t.tid});
  }
  out_.records(Kind::thread, threads);
  write_shapes();
}

void ProcessWriter::work() {
  std::vector<Kernel> kernels;
  std::vector<Copy> copies;
  for (const GpuTrace::Op& op : trace_.ops) {
    if (!ours(op.stream)) continue;
    if (op.kind == GpuOpKind::kernel || op.kind == GpuOpKind::graph) {
      kernels.push_back({at(op.begin_ns), at(op.end_ns),
                         op.kind == GpuOpKind::graph ? kWholeGraph : id_of(op.shape), id_of(op.stream),
                         op.correlation, op.graph, op.graph_node});
      continue;
    }
    const std::uint8_t kind = op.kind == GpuOpKind::memset ? kMemset : static_cast<std::uint8_t>(op.copy);
    copies.push_back({at(op.begin_ns), at(op.end_ns), op.bytes, id_of(op.stream), op.correlation, op.graph,
                      kind, static_cast<std::uint8_t>(op.from), static_cast<std::uint8_t>(op.to),
                      static_cast<std::uint8_t>(op.async ? 1 : 0), op.graph_node, op.from_address,
                      op.to_address, op.content_hash});
  }
  out_.records(Kind::kernel, kernels);
  out_.records(Kind::copy, copies);
  write_calls();
  write_marks();
  write_totals();
}

void ProcessWriter::shared_samples() {
  std::vector<Clock> clocks;
  for (const GpuTrace::Clock& c : trace_.clocks) {
    clocks.push_back({at(c.at_ns), clamped<std::uint32_t>(c.device), static_cast<float>(c.sm_mhz),
                      static_cast<float>(c.memory_mhz), static_cast<float>(c.watts),
                      static_cast<float>(c.celsius), static_cast<float>(c.utilisation), c.reasons,
                      static_cast<std::uint32_t>(c.others.size()),
                      c.others.empty() ? 0 : clamped<std::uint32_t>(c.others[0])});
  }
  out_.records(Kind::clock, clocks);
  std::vector<Counter> counters;
  for (const GpuTrace::CounterSample& c : trace_.counter_samples) {
    const auto f = [](double value) { return static_cast<float>(value); };
    counters.push_back({at(c.begin_ns), at(c.end_ns), clamped<std::uint32_t>(c.device), f(c.sm_active),
                        f(c.tensor_active), f(c.warps_active), f(c.instructions), f(c.dram_read), f(c.dram),
                        f(c.l2_hit), f(c.l1_hit), f(c.pcie_read_bytes), f(c.pcie_write_bytes),
                        f(c.sm_throughput)});
  }
  out_.records(Kind::counter, counters);
  std::vector<Binary> binaries;
  for (const GpuTrace::Binary& b : trace_.binaries) {
    binaries.push_back(
        {out_.text(b.path), out_.text(b.build_id), b.modified_ns, out_.text(b.newer), 0, b.newer_by_ns});
  }
  out_.records(Kind::binary, binaries);
}

bool ProcessWriter::ours(std::uint32_t stream) const {
  return (stream < trace_.streams.size() ? trace_.streams[stream].process : 0) == process_;
}

bool ProcessWriter::our_thread(std::uint32_t thread) const {
  return (thread < trace_.threads.size() ? trace_.threads[thread].process : 0) == process_;
}

void ProcessWriter::write_shapes() {
  // All of them in the first section, so that their numbers stay; in the others what their ops name.
  std::vector<bool> used(trace_.shapes.size(), process_ == 0);
  const auto use = [&](std::uint32_t shape) {
    if (shape < used.size()) used[shape] = true;
  };
  for (const GpuTrace::Op& op : trace_.ops) {
    if (op.kind == GpuOpKind::kernel && ours(op.stream)) use(op.shape);
  }
  for (const GpuTrace::Total& total : trace_.totals) {
    if (ours(total.stream)) use(total.shape);
  }
  std::vector<Shape> shapes;
  for (std::uint32_t i = 0; i < trace_.shapes.size(); ++i) {
    if (!used[i]) continue;
    const LaunchShape& s = trace_.shapes[i];
    Shape& r = shapes.emplace_back();
    r.id = id_of(i);
    r.name = out_.text(s.name);
    for (int d = 0; d < 3; ++d) {
      r.grid[d] = clamped<std::uint32_t>(s.grid[d]);
      r.block[d] = clamped<std::uint32_t>(s.block[d]);
      r.cluster[d] = clamped<std::uint32_t>(s.cluster[d]);
    }
    r.registers = s.registers;
    r.static_shared = clamped<std::int32_t>(s.static_shared);
    r.dynamic_shared = clamped<std::int32_t>(s.dynamic_shared);
    r.local_bytes = clamped<std::int32_t>(s.local_bytes);
    r.blocks_per_sm = s.blocks_per_sm;
    r.occupancy = static_cast<float>(s.occupancy);
    r.limiter = out_.text(s.limiter);
  }
  out_.records(Kind::shape, shapes);
}

void ProcessWriter::write_calls() {
  std::vector<Call> calls;
  for (const GpuTrace::Call& c : trace_.calls) {
    if (!our_thread(c.thread)) continue;
    const std::int64_t duration = c.end_ns - c.begin_ns;
    const bool is_long = duration >= kLongCall;
    const std::uint64_t event =
        c.event >> kEventBits == process_ ? c.event & ((std::uint64_t{1} << kEventBits) - 1) : c.event;
    calls.push_back({at(c.begin_ns), is_long ? kLongCall : clamped<std::uint32_t>(duration), id_of(c.thread),
                     c.correlation, c.stream < 0 ? 0 : id_of(static_cast<std::uint32_t>(c.stream)) + 1, event,
                     is_long ? duration : c.bytes, c.address, static_cast<std::uint16_t>(c.kind),
                     static_cast<std::uint16_t>(c.per_thread_stream ? 1 : 0), 0});
  }
  out_.records(Kind::call, calls);
}

void ProcessWriter::write_marks() {
  std::vector<Range> ranges;
  for (const GpuTrace::Range& r : trace_.ranges) {
    if (our_thread(r.thread))
      ranges.push_back({at(r.begin_ns), at(r.end_ns), id_of(r.thread), out_.text(r.name)});
  }
  out_.records(Kind::range, ranges);
  std::vector<Overhead> overheads;
  for (const GpuTrace::Overhead& o : trace_.overheads) {
    if (our_thread(o.thread))
      overheads.push_back({at(o.begin_ns), at(o.end_ns), id_of(o.thread), out_.text(o.what)});
  }
  out_.records(Kind::overhead, overheads);
  std::vector<Fault> faults;
  for (const GpuTrace::Fault& f : trace_.faults) {
    if (f.process == process_)
      faults.push_back({at(f.begin_ns), at(f.end_ns), f.bytes, f.count,
                        static_cast<std::uint8_t>(f.direction), static_cast<std::uint8_t>(f.stalled),
                        clamped<std::uint16_t>(f.device), 0});
  }
  out_.records(Kind::fault, faults);
  std::vector<Window> windows;
  for (const GpuTrace::Window& w : trace_.windows) {
    if (w.process == process_) windows.push_back({at(w.begin_ns), at(w.end_ns)});
  }
  out_.records(Kind::window, windows);
}

void ProcessWriter::write_totals() {
  std::vector<Total> totals;
  for (const GpuTrace::Total& t : trace_.totals) {
    if (!ours(t.stream)) continue;
    Total& r = totals.emplace_back(
        Total{id_of(t.shape), id_of(t.stream), t.count, t.sum_ns, t.min_ns, t.max_ns, {}});
    for (const auto& [bucket, count] : t.histogram) {
      if (bucket >= 0 && bucket < 40) r.histogram[bucket] = clamped<std::uint32_t>(count);
    }
  }
  out_.records(Kind::total, totals);
}

}  // namespace fulcrum::trace::file
