// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What records of a process refer to: texts, properties, devices, shapes, streams, threads. Something that is referred
// to and not there gets a place of its own, and a note says how often that happened.
#include "trace/file/process_reader.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "trace/file/names.h"

namespace fulcrum::trace::file {
namespace {

/// Longer ones exist only in damaged files.
constexpr std::size_t kLongestName = 1 << 16;

std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z") || name.size() > kLongestName) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::int64_t whole(double number) {
  return std::isfinite(number) && std::abs(number) < 9e15 ? std::llround(number) : 0;
}

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value >= kLatestStamp) return std::nullopt;
  return value;
}

double figure(double value, double otherwise = 0) { return std::isfinite(value) ? value : otherwise; }

}  // namespace

ProcessReader::ProcessReader(GpuTrace& trace, ShapeNumbers& shapes, const Section& section)
    : trace_(trace),
      shape_numbers_(shapes),
      section_(section),
      process_(static_cast<std::uint32_t>(trace.processes.size())) {
  trace_.processes.push_back({.pid = section.head.pid,
                              .parent = section.head.parent,
                              .end = "cut off",
                              .file_bytes = section.bytes});
}

void ProcessReader::read_definitions(RunFacts& run) {
  for (const ChunkView& chunk : section_.chunks) {
    if (chunk.kind != Kind::text) continue;
    std::uint32_t id = 0;
    if (chunk.payload.size() < sizeof(id)) continue;
    std::memcpy(&id, chunk.payload.data(), sizeof(id));
    texts_.try_emplace(id, chunk.payload.substr(sizeof(id)));
  }
  texts_[0].clear();
  for (const ChunkView& chunk : section_.chunks) {
    switch (chunk.kind) {
      case Kind::property:
        each<Property>(chunk, [&](const Property& record) { read_property(record, run); });
        break;
      case Kind::device:
        each<Device>(chunk, [&](const Device& record) { read_device(record); });
        break;
      case Kind::shape:
        each<Shape>(chunk, [&](const Shape& record) { read_shape(record); });
        break;
      case Kind::stream:
        each<Stream>(chunk, [&](const Stream& record) {
          const auto [at, added] =
              streams_.try_emplace(record.id, static_cast<std::uint32_t>(trace_.streams.size()));
          if (added) trace_.streams.emplace_back();
          trace_.streams[at->second] = {.process = process_,
                                        .device = static_cast<int>(record.device & 0xffff),
                                        .id = record.cupti_id,
                                        .legacy_default = (record.flags & kLegacyDefault) != 0,
                                        .blocking = (record.flags & kNonBlocking) == 0};
        });
        break;
      case Kind::thread:
        each<Thread>(chunk, [&](const Thread& record) {
          const auto [at, added] =
              threads_.try_emplace(record.id, static_cast<std::uint32_t>(trace_.threads.size()));
          if (added) trace_.threads.emplace_back();
          trace_.threads[at->second] = {process_, record.tid, text(record.name)};
        });
        break;
      default:
        break;
    }
  }
}

void ProcessReader::read_property(const Property& record, RunFacts& run) {
  namespace p = property;
  const std::string& name = text(record.name);
  const std::string& value = text(record.value);
  GpuTrace::Process& us = process();
  if (name == p::kCommand) us.command = value;
  if (name == p::kProfiler) us.profiler = value;
  if (name == p::kCuptiVersion) us.cupti_version = whole(record.number);
  if (name == p::kDriverVersion) us.driver_version = whole(record.number);
  if (name == p::kKind) us.kinds.push_back(value);
  if (name == p::kRefused) us.refused.push_back(value);
  if (name == p::kFullOverheadShare) us.full_overhead_share = figure(record.number, -1);
  if (name == p::kOverheadSeconds) us.overhead_seconds = figure(record.number, -1);
  if (name == p::kEnd && !value.empty()) us.end = value;
  if (name == p::kEndNs) us.end_ns = whole(value).value_or(0);  // made relative with the records
  if (name == p::kCountersRefused && trace_.counters_refused.empty()) trace_.counters_refused = value;
  if (name == p::kNote && !value.empty()) note(value);
  for (const auto& [key, what] : {std::pair{p::kClocksRefused, "clocks and throttling were not seen"},
                                  std::pair{p::kClocksMissing, "of the clocks some are missing"},
                                  std::pair{p::kCountersEnded, "counters ended early"}}) {
    if (name == key && !value.empty()) note(fmt::format("process {}: {}: {}", us.pid, what, value));
  }
  if (!name.starts_with("run.")) return;
  if (name == p::kRunCommand) trace_.command = value;
  if (name == p::kCreated) trace_.created_utc = value;
  if (name == p::kMachine) trace_.machine_id = value;
  if (name == p::kProgram) trace_.program = value;
  if (name == p::kOrigin) trace_.origin = value;
  if (name == p::kBaseNs) run.base_ns = whole(value);
  if (name == p::kBeginNs) run.begin_ns = whole(value);
  if (name == p::kWallNs) run.wall_ns = whole(value);
  if (name == p::kExitCode) trace_.exit_code = static_cast<int>(whole(record.number) & 0xffff);
  if (name == p::kCpuProfile) run.cpu_profile = value;
  if (name == p::kCpuOffset) trace_.cpu_offset_seconds = figure(record.number);
  if (name == p::kKernelCounters) run.kernel_counters = value;
}

void ProcessReader::read_device(const Device& d) {
  GpuTrace::Device device{.id = static_cast<int>(d.id & 0x3ff),
                          .name = text(d.name),
                          .sms = d.sms,
                          .compute_major = d.compute_major,
                          .compute_minor = d.compute_minor,
                          .max_threads_per_sm = d.max_threads_per_sm,
                          .max_blocks_per_sm = d.max_blocks_per_sm,
                          .registers_per_sm = d.registers_per_sm,
                          .shared_per_sm = d.shared_per_sm,
                          .memory_bytes = d.memory_bytes,
                          .memory_bytes_per_second = figure(d.memory_bytes_per_second),
                          .max_sm_mhz = figure(d.max_sm_mhz)};
  for (const GpuTrace::Device& known : trace_.devices) {  // never many: their numbers have 10 bits
    if (known.id != device.id) continue;
    if (known.name != device.name || known.sms != device.sms)
      note(fmt::format("process {} calls {} device {}, which is {} for another: they are one here",
                       process().pid, device.name, device.id, known.name));
    return;
  }
  trace_.devices.push_back(std::move(device));
}

void ProcessReader::read_shape(const Shape& s) {
  LaunchShape shape{.name = demangled(text(s.name)),
                    .grid = {s.grid[0], s.grid[1], s.grid[2]},
                    .block = {s.block[0], s.block[1], s.block[2]},
                    .cluster = {s.cluster[0], s.cluster[1], s.cluster[2]},
                    .registers = std::max(0, s.registers),
                    .static_shared = std::max(0, s.static_shared),
                    .dynamic_shared = std::max(0, s.dynamic_shared),
                    .local_bytes = std::max(0, s.local_bytes),
                    .blocks_per_sm = std::max(0, s.blocks_per_sm),
                    .occupancy = figure(s.occupancy),
                    .limiter = text(s.limiter)};
  const std::string key = fmt::format(
      "{}|{}|{} {} {}|{} {} {}|{} {} {}|{} {} {} {}|{} {}", shape.name, shape.limiter, s.grid[0], s.grid[1],
      s.grid[2], s.block[0], s.block[1], s.block[2], s.cluster[0], s.cluster[1], s.cluster[2], s.registers,
      s.static_shared, s.dynamic_shared, s.local_bytes, s.blocks_per_sm, s.occupancy);
  const auto [at, added] = shape_numbers_.try_emplace(key, static_cast<std::uint32_t>(trace_.shapes.size()));
  if (added) trace_.shapes.push_back(std::move(shape));
  shapes_[s.id] = at->second;
}

const std::string& ProcessReader::text(std::uint32_t id) {
  const auto [at, added] = texts_.try_emplace(id);
  if (added) ++missing_texts_;
  return at->second;
}

std::uint32_t ProcessReader::number_of_stream(std::uint32_t id) {
  const auto [at, added] = streams_.try_emplace(id, static_cast<std::uint32_t>(trace_.streams.size()));
  if (added) {
    trace_.streams.push_back({.process = process_, .id = id});
    ++missing_streams_;
  }
  return at->second;
}

std::uint32_t ProcessReader::number_of_thread(std::uint32_t id) {
  const auto [at, added] = threads_.try_emplace(id, static_cast<std::uint32_t>(trace_.threads.size()));
  if (added) {
    trace_.threads.push_back({.process = process_});
    ++missing_threads_;
  }
  return at->second;
}

std::uint32_t ProcessReader::number_of_shape(std::uint32_t id) {
  const auto [at, added] = shapes_.try_emplace(id, 0);
  if (added) {
    // One for all: what is not known cannot be told apart.
    const auto [place, is_new] =
        shape_numbers_.try_emplace("", static_cast<std::uint32_t>(trace_.shapes.size()));
    if (is_new) trace_.shapes.push_back({.name = "unknown kernel"});
    at->second = place->second;
    ++missing_shapes_;
  }
  return at->second;
}

void ProcessReader::note(std::string text) {
  constexpr std::size_t kMostNotes = 1000;
  if (trace_.notes.size() >= kMostNotes) return;
  if (std::find(trace_.notes.begin(), trace_.notes.end(), text) == trace_.notes.end())
    trace_.notes.push_back(std::move(text));
}

void ProcessReader::add_notes() {
  const GpuTrace::Process& us = process();
  if (!us.profiler.empty())
    note(fmt::format("{} holds CUPTI: process {} ran unprofiled", us.profiler, us.pid));
  if (!section_.problem.empty())
    note(fmt::format("the trace of process {} ends early: {}", us.pid, section_.problem));
  if (!us.complete && section_.problem.empty() && us.profiler.empty())
    note(fmt::format(
        "process {} did not end its trace: it was killed or still runs, and up to a second is missing",
        us.pid));
  const auto missing = [&](std::int64_t count, const char* what) {
    if (count > 0)
      note(fmt::format("process {}: {} {} that its records name are not in its file", us.pid, count, what));
  };
  missing(missing_streams_, "streams");
  missing(missing_threads_, "threads");
  missing(missing_shapes_, "kernels");
  missing(missing_texts_, "texts");
  if (bad_spans_ > 0)
    note(fmt::format("process {}: {} marks without a usable time were left out", us.pid, bad_spans_));
  if (unread_chunks_ > 0)
    note(fmt::format("process {}: {} parts of its file are of a kind that this program does not know", us.pid,
                     unread_chunks_));
}

}  // namespace fulcrum::trace::file
