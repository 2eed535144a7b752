// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a program with the injected library and reads the files that its processes leave.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fulcrum/trace.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>

#include "trace/file/read.h"
#include "trace/run/child.h"
#include "trace/run/locate.h"
#include "trace/run/stale.h"

namespace fulcrum::trace {
namespace {

namespace fs = std::filesystem;
using Variables = std::vector<std::pair<std::string, std::string>>;

std::int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The folder for the processes' files: the caller's, or one that goes with this object.
class Folder {
 public:
  static Result<Folder> open(const std::string& wanted) {
    Folder folder;
    std::error_code failed;
    if (!wanted.empty()) {
      fs::create_directories(wanted, failed);
      folder.path_ = fs::absolute(wanted, failed);
      if (failed || !fs::is_directory(folder.path_, failed))
        return Error{Code::environment, fmt::format("cannot make the folder {}", wanted),
                     "choose another one"};
      return folder;
    }
    std::string pattern = (fs::temp_directory_path(failed) / "fulcrum-trace-XXXXXX").string();
    if (failed || !::mkdtemp(pattern.data()))
      return Error{Code::environment, "cannot make a temporary folder",
                   "set TMPDIR to a folder that is writable"};
    folder.path_ = pattern;
    folder.temporary_ = true;
    return folder;
  }
  Folder(Folder&& other) noexcept
      : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, false)) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (temporary_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  Folder() = default;
  fs::path path_;
  bool temporary_ = false;
};

std::int64_t bytes_in(const fs::path& folder) {
  std::int64_t sum = 0;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const auto size = at->file_size(gone);
    if (!gone) sum += static_cast<std::int64_t>(size);
  }
  return sum;
}

Status check(const Options& options) {
  if (options.command.empty() || options.command[0].empty())
    return Error{Code::usage, "trace needs a command to run", "fulcrum trace -- PROGRAM ARGUMENTS"};
  if (!(options.budget_share > 0 && options.budget_share <= 10))
    return Error{Code::usage, fmt::format("a budget of {} is out of range", options.budget_share),
                 "choose a share of the program's time, such as 0.05"};
  if (options.size_limit_bytes < 1'000'000)
    return Error{Code::usage, "a size limit below 1 MB leaves no room for a trace", ""};
  return {};
}

/// What the injected library reads (src/trace/inject/config.h). The user's own variables come last and win.
Variables variables_for(const Options& options, const std::string& injector, const fs::path& folder,
                        std::vector<std::string>& notes) {
  const auto flag = [](bool on) { return std::string(on ? "1" : "0"); };
  Variables all{{"CUDA_INJECTION64_PATH", injector},
                {"FULCRUM_TRACE_FOLDER", folder.string()},
                {"FULCRUM_TRACE_FULL", flag(options.full)},
                {"FULCRUM_TRACE_BUDGET", fmt::format("{}", options.budget_share)},
                {"FULCRUM_TRACE_LIMIT", std::to_string(options.size_limit_bytes)},
                {"FULCRUM_TRACE_COUNTERS", flag(options.counters)},
                {"FULCRUM_TRACE_HASH", flag(options.hash_copies)},
                {"FULCRUM_TRACE_MANAGED", flag(options.managed)}};
  if (options.costs.record_seconds > 0)
    all.emplace_back("FULCRUM_TRACE_RECORD_NS", fmt::format("{}", options.costs.record_seconds * 1e9));
  if (options.costs.call_record_seconds > 0)
    all.emplace_back("FULCRUM_TRACE_CALL_NS", fmt::format("{}", options.costs.call_record_seconds * 1e9));
  // NVTX asks for a library of its own and calls it by this name.
  const auto code = read_file(injector);
  if (code.ok() && code->find("InitializeInjectionNvtx2") != std::string::npos)
    all.emplace_back("NVTX_INJECTION64_PATH", injector);
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"}) {
    if (const auto before = inherited(name); before && *before != injector)
      notes.push_back(fmt::format("{} was {}: another profiler's, replaced for this run", name, *before));
  }
  for (const auto& change : options.environment) {
    std::erase_if(all, [&](const auto& known) { return known.first == change.first; });
    if (change.first != "LD_PRELOAD") all.push_back(change);
  }
  const auto is_preload = [](const auto& change) { return change.first == "LD_PRELOAD"; };
  const auto asked = std::find_if(options.environment.begin(), options.environment.end(), is_preload);
  std::string before = asked != options.environment.end() ? asked->second : std::string();
  // Who runs the program in our stead adds what is preloaded already by itself.
  if (asked == options.environment.end() && !options.run_with) before = inherited("LD_PRELOAD").value_or("");
  // Behind what is there: a sanitizer's library insists on being first.
  all.emplace_back("LD_PRELOAD", before.empty() ? injector : before + ":" + injector);
  return all;
}

Result<std::string> injector_for(const Options& options) {
  std::string path = options.injector.empty() ? find_injector() : options.injector;
  std::error_code failed;
  if (path.empty())
    return Error{Code::environment, "libfulcrum_inject.so is not beside the program",
                 "build or install fulcrum where a CUDA toolkit is; `fulcrum doctor` says what is missing"};
  if (!fs::exists(path, failed))
    return Error{Code::not_found, fmt::format("there is no {}", path),
                 "name the injection library by its path"};
  return fs::absolute(path, failed).string();
}

std::string why_nothing() {
  if (driver_version().empty()) return "no NVIDIA driver is loaded here, so the program ran without a GPU";
  return "the program never started CUDA: no process of it used a GPU";
}

GpuTrace empty_trace(std::int64_t begin_ns) {
  GpuTrace trace;
  trace.begin_ns = begin_ns;
  trace.notes.push_back(why_nothing());
  return trace;
}

Result<GpuTrace> collect(const fs::path& folder, std::int64_t begin_ns) {
  FULCRUM_TRY(file::Folder found, file::open_folder(folder));
  // What an earlier run left in the same folder is not of this one.
  std::erase_if(found.sections, [&](const auto& section) { return section.head.begin_ns < begin_ns; });
  GpuTrace trace;
  if (found.sections.empty()) {
    trace = empty_trace(begin_ns);
  } else {
    FULCRUM_TRY(trace, file::join(found.sections, folder.string(), begin_ns));
  }
  trace.notes.insert(trace.notes.end(), found.notes.begin(), found.notes.end());
  return trace;
}

}  // namespace

Result<GpuTrace> run(const Options& options) {
  FULCRUM_CHECK(check(options));
  FULCRUM_TRY(const std::string injector, injector_for(options));
  FULCRUM_TRY(const Folder folder, Folder::open(options.folder));
  std::vector<std::string> notes;
  const Variables variables = variables_for(options, injector, folder.path(), notes);
  const std::string created = utc_now();
  const std::int64_t begin_ns = monotonic_ns();
  const auto report = [&](std::string_view activity) {
    if (!options.progress) return;
    options.progress({.seconds = static_cast<double>(monotonic_ns() - begin_ns) * 1e-9,
                      .file_bytes = bytes_in(folder.path()),
                      .activity = activity});
  };
  int exit_code = 0;
  if (options.run_with) {
    FULCRUM_CHECK(options.run_with(options.command, variables, exit_code));
  } else {
    FULCRUM_TRY(exit_code, run_child(options, variables, [&] { report("tracing"); }));
  }
  const std::int64_t end_ns = monotonic_ns();
  report("reading the trace");
  FULCRUM_TRY(GpuTrace trace, collect(folder.path(), begin_ns));
  trace.command = fmt::format("{}", fmt::join(options.command, " "));
  trace.created_utc = created;
  trace.program = fmt::format("fulcrum {} ({})", build_info().version, build_info().commit);
  trace.exit_code = exit_code;
  trace.wall_ns = end_ns - begin_ns;
  trace.notes.insert(trace.notes.begin(), notes.begin(), notes.end());
  look_for_newer(trace.binaries);
  return trace;
}

}  // namespace fulcrum::trace
