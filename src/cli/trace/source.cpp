// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See source.h.
#include "cli/trace/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/machine.h>
#include <fulcrum/record.h>
#include <fulcrum/report/formats.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr double kCpuRateHz = 99;  // off the beat of timers that tick 100 times a second
constexpr std::size_t kMostUnpacked = std::size_t{2} << 30;  // of a gzip'ed trace

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The CPU's side of a run, and when its instant 0 was.
struct CpuSide {
  std::optional<CpuProfile> profile;
  std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
  std::string missing;  // why there is none

  /// The recording says how old it is; the clock was read after that, so the earliest answer is the nearest.
  void seen(double seconds) {
    begin_ns = std::min(begin_ns, monotonic_ns() - static_cast<std::int64_t>(seconds * 1e9));
  }
};

/// Samples the program that trace::run would have started by itself, in its stead.
auto sampling(const trace::Options& around, CpuSide& side) {
  return [&around, &side](const std::vector<std::string>& command,
                          const std::vector<std::pair<std::string, std::string>>& environment,
                          int& exit_code) -> Status {
    record::Options options;
    options.command = command;
    options.environment = environment;
    options.mode = record::Mode::perf;  // timers would need a preloaded library of their own
    options.rate_hz = kCpuRateHz;
    options.adaptive = false;
    options.instruction_mix = options.preload = options.touched_bytes = false;
    options.standard_input = around.standard_input;
    options.standard_output = around.standard_output;
    options.standard_error = around.standard_error;
    options.stop = around.stop;
    options.progress = [&](const record::Progress& progress) {
      side.seen(progress.seconds);
      if (around.progress) around.progress({.seconds = progress.seconds, .activity = progress.activity});
    };
    const std::int64_t before_ns = monotonic_ns();
    FULCRUM_TRY(CpuProfile profile, record::record(options));
    if (side.begin_ns == std::numeric_limits<std::int64_t>::max()) side.begin_ns = before_ns;
    exit_code = profile.exit_code;
    side.profile = std::move(profile);
    return {};
  };
}

/// Why the CPU cannot be sampled here; empty: it can.
std::string why_no_samples() {
  for (const record::Capability& one : record::capabilities()) {
    if (one.name == "perf events" && !one.there) return fmt::format("{} ({})", one.detail, one.hint);
  }
  return "";
}

Error nothing_seen(const GpuTrace& trace) {
  const std::string ended =
      trace.exit_code == 0 ? "" : fmt::format(" (it ended with exit code {})", trace.exit_code);
  for (const GpuTrace::Process& process : trace.processes) {
    if (process.profiler.empty()) continue;
    return Error{
        Code::inconclusive,
        fmt::format("process {} was not traced: {} holds the profiling interface, and it serves one",
                    process.pid, process.profiler),
        "run without that profiler; a trace that torch.profiler exports can be read: fulcrum trace FILE"};
  }
  if (trace.processes.empty()) {
    const std::string why = trace.notes.empty() ? "no process of the program used a GPU" : trace.notes.back();
    return Error{
        Code::inconclusive, why + ended,
        "`fulcrum record -- CMD` profiles CPU programs; if it should have used a GPU, `fulcrum doctor` "
        "says what is missing, and docs/tracing.md what keeps the tracer out (sudo, containers, ssh)"};
  }
  return Error{Code::inconclusive,
               fmt::format("CUDA was started, but no kernel, copy or memset ran{}", ended),
               trace.notes.empty() ? "give the program more work, or `--full`"
                                   : fmt::format("the tracer says: {}", fmt::join(trace.notes, "; "))};
}

bool looks_like_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

Error not_a_trace(const std::string& file, std::string_view content) {
  std::string hint = "trace reads its own files, and what torch.profiler exports (JSON, also gzip'ed)";
  if (content.starts_with("SQLite format 3") || file.ends_with(".nsys-rep") || file.ends_with(".qdrep"))
    hint = "files of Nsight Systems are not read; run the program under `fulcrum trace -- CMD` instead";
  if (file.ends_with(".ncu-rep"))
    hint = "export it with `ncu --import FILE --csv --page raw`, and join it with --ncu";
  if (content.empty()) hint = "it is empty: was the program that wrote it killed?";
  return Error{Code::corrupt, fmt::format("{} is no trace", file), hint};
}

/// Where people are meant to recognise the run.
void name_run(GpuTrace& trace, const std::string& command) {
  if (trace.command.empty()) trace.command = command;
  if (trace.created_utc.empty()) trace.created_utc = utc_now();
  if (trace.program.empty())
    trace.program = fmt::format("fulcrum {} ({})", build_info().version, build_info().commit);
}

}  // namespace

Result<GpuTrace> trace_program(const Tracing& tracing, Context& context) {
  trace::Options options;
  options.command = tracing.command;
  options.full = tracing.full;
  options.counters = tracing.counters;
  options.hash_copies = tracing.hash_copies;
  options.budget_share = tracing.budget_share;
  options.costs = tracing.costs;
  // Our document has standard output for itself.
  if (tracing.output_is_ours || context.json_owns_output()) options.standard_output = STDERR_FILENO;
  std::atomic<bool> stop{false};
  options.stop = &stop;
  options.progress = [&](const trace::Progress& progress) {
    if (interrupted()) stop.store(true);
    context.progress(fmt::format(
        "{} {:.1f} s{}", progress.activity, progress.seconds,
        progress.file_bytes > 0 ? fmt::format(", {}", human_bytes(static_cast<double>(progress.file_bytes)))
                                : ""));
  };
  CpuSide side;
  if (tracing.with_cpu) {
    side.missing = why_no_samples();
    if (side.missing.empty()) options.run_with = sampling(options, side);
  }
  FULCRUM_TRY(GpuTrace trace, trace::run(options));
  context.progress("");
  name_run(trace, fmt::format("{}", fmt::join(tracing.command, " ")));
  if (trace.machine_id.empty()) {
    trace.machine_id = machine::fingerprint(machine::discover_cpu(), machine::discover_levels());
  }
  if (side.profile) {
    trace.cpu_offset_seconds = static_cast<double>(side.begin_ns - trace.begin_ns) * 1e-9;
    trace.cpu = std::move(side.profile);
  }
  if (!side.missing.empty())
    trace.notes.push_back(fmt::format("the host was not sampled (--with-cpu): {}", side.missing));
  if (trace.ops.empty() && trace.totals.empty()) return nothing_seen(trace);
  return trace;
}

Result<GpuTrace> load_trace(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return trace::read_folder(file);
  FULCRUM_TRY(std::string content, read_file(file));
  if (content.starts_with("FLCTRACE")) return trace::parse(content, file);
  if (content.starts_with("\x1f\x8b")) {
    FULCRUM_TRY(content, report::gunzip(content, file, kMostUnpacked));
  }
  if (!looks_like_json(content)) return not_a_trace(file, content);
  GpuTrace trace;
  if (std::string_view(content).substr(0, 200).find("\"fulcrum.") != std::string_view::npos) {
    FULCRUM_TRY(const Json document, json_parse(content, file));
    FULCRUM_TRY(trace, trace_from_json(document, file));
  } else {
    FULCRUM_TRY(trace, trace::from_kineto(content, file));
  }
  if (trace.command.empty()) trace.command = file;
  return trace;
}

}  // namespace fulcrum::cli
