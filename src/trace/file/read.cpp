// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads trace files: one, a merged one, or a folder with one a process, on one clock.
#include "trace/file/read.h"

#include <fmt/format.h>
#include <fulcrum/trace.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "trace/file/names.h"
#include "trace/file/process_reader.h"

namespace fulcrum::trace {
namespace file {
namespace {

/// Of the head's clock; empty: it was not set.
std::string utc_of(std::int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm parts{};
  if (seconds <= 0 || seconds > 4'102'444'800 || !::gmtime_r(&seconds, &parts)) return "";
  char text[32];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

/// The one that no other process here started.
std::string root_command(const GpuTrace& trace) {
  for (const GpuTrace::Process& process : trace.processes) {
    const auto parent = [&](const auto& other) { return other.pid == process.parent; };
    if (std::none_of(trace.processes.begin(), trace.processes.end(), parent)) return process.command;
  }
  return trace.processes.empty() ? "" : trace.processes.front().command;
}

template <class T, class Key>
void sort_by(std::vector<T>& rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(), [key](const T& a, const T& b) { return a.*key < b.*key; });
}

void read_kernel_counters(const std::string& text, ProcessReader& reader, std::string_view origin,
                          GpuTrace& trace) {
  const Result<Json> list = text.empty() ? Json::array() : json_parse(text, origin);
  if (!list.ok() || !list->is_array())
    return void(trace.notes.emplace_back("the counters of kernels in the file are damaged and left out"));
  for (const Json& item : *list) {
    if (!item.is_object() || !item.contains("metrics") || !item["metrics"].is_object()) continue;
    GpuTrace::KernelCounters counters;
    if (const Json& shape = item.value("shape", Json()); shape.is_number_unsigned())
      counters.shape = reader.shape(static_cast<std::uint32_t>(shape.get<std::uint64_t>()));
    else
      continue;
    if (const Json& from = item.value("origin", Json()); from.is_string()) counters.origin = from;
    if (const Json& count = item.value("launches", Json()); count.is_number_unsigned())
      counters.launches = static_cast<int>(count.get<std::uint64_t>() & 0x7fffffff);
    for (const auto& [name, value] : item["metrics"].items()) {
      if (value.is_number()) counters.metrics[name] = value.get<double>();
    }
    trace.kernel_counters.push_back(std::move(counters));
  }
}

void read_cpu_profile(const std::string& text, std::string_view origin, GpuTrace& trace) {
  if (text.empty()) return;
  const Result<Json> json = json_parse(text, origin);
  if (json.ok()) {
    if (auto profile = profile_from_json(*json, origin); profile.ok()) {
      trace.cpu = std::move(*profile);
      return;
    }
  }
  trace.notes.emplace_back("the CPU profile in the file is damaged and left out");
}

}  // namespace

Result<GpuTrace> join(const std::vector<Section>& sections, std::string_view origin, std::int64_t begin_ns) {
  FULCRUM_ASSERT(!sections.empty());
  GpuTrace trace;
  trace.created_utc = utc_of(sections.front().head.realtime_ns);
  RunFacts run;
  ShapeNumbers shapes;
  std::vector<ProcessReader> readers;
  readers.reserve(sections.size());
  std::int64_t earliest = sections.front().head.begin_ns;
  for (const Section& section : sections) {
    readers.emplace_back(trace, shapes, section).read_definitions(run);
    earliest = std::min(earliest, section.head.begin_ns);
  }
  const std::int64_t base = run.base_ns.value_or(begin_ns > 0 ? std::min(begin_ns, earliest) : earliest);
  trace.begin_ns = run.begin_ns.value_or(base);
  for (ProcessReader& reader : readers) reader.read_records(base);
  read_kernel_counters(run.kernel_counters, readers.front(), origin, trace);
  read_cpu_profile(run.cpu_profile, origin, trace);
  sort_by(trace.ops, &GpuTrace::Op::begin_ns);
  sort_by(trace.calls, &GpuTrace::Call::begin_ns);
  sort_by(trace.ranges, &GpuTrace::Range::begin_ns);
  sort_by(trace.overheads, &GpuTrace::Overhead::begin_ns);
  sort_by(trace.faults, &GpuTrace::Fault::begin_ns);
  sort_by(trace.clocks, &GpuTrace::Clock::at_ns);
  sort_by(trace.counter_samples, &GpuTrace::CounterSample::begin_ns);
  sort_by(trace.windows, &GpuTrace::Window::begin_ns);
  if (trace.command.empty()) trace.command = root_command(trace);
  for (const GpuTrace::Process& process : trace.processes)
    trace.wall_ns = std::max(trace.wall_ns, process.end_ns);
  trace.wall_ns = std::min(run.wall_ns.value_or(trace.wall_ns), kFarthest);
  return trace;
}

Result<Folder> open_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<fs::path> files;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  if (failed)
    return Error{Code::not_found, fmt::format("cannot look into {}: {}", folder.string(), failed.message()),
                 ""};
  std::sort(files.begin(), files.end());
  Folder result;
  result.contents.reserve(files.size());  // sections point into it
  for (const fs::path& path : files) {
    auto content = read_file(path);
    if (!content.ok()) {
      result.notes.push_back(content.error().message);
      continue;
    }
    // Other files may lie beside them.
    if (!content->starts_with(std::string_view(kMagic, sizeof(kMagic)))) continue;
    result.contents.push_back(std::move(*content));
    auto sections = split(result.contents.back(), path.filename().string());
    if (!sections.ok()) {
      result.notes.push_back(fmt::format("{} ({})", sections.error().message, sections.error().hint));
      continue;
    }
    std::move(sections->begin(), sections->end(), std::back_inserter(result.sections));
  }
  std::stable_sort(result.sections.begin(), result.sections.end(),
                   [](const Section& a, const Section& b) { return a.head.begin_ns < b.head.begin_ns; });
  return result;
}

}  // namespace file

Result<GpuTrace> parse(std::string_view bytes, std::string_view origin) {
  FULCRUM_TRY(const std::vector<file::Section> sections, file::split(bytes, origin));
  return file::join(sections, origin, 0);
}

Result<GpuTrace> read(const std::filesystem::path& path) {
  FULCRUM_TRY(const std::string bytes, read_file(path));
  return parse(bytes, path.string());
}

Result<GpuTrace> read_folder(const std::filesystem::path& folder) {
  FULCRUM_TRY(const file::Folder found, file::open_folder(folder));
  if (found.sections.empty()) {
    return Error{Code::not_found, fmt::format("there is no trace in {}", folder.string()),
                 found.notes.empty() ? "the program there never used a GPU" : found.notes.front()};
  }
  FULCRUM_TRY(GpuTrace trace, file::join(found.sections, folder.string(), 0));
  trace.notes.insert(trace.notes.end(), found.notes.begin(), found.notes.end());
  return trace;
}

}  // namespace fulcrum::trace
