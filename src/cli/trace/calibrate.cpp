// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See calibrate.h. The call is a launch and a wait: one record of a kernel and two of calls. A kernel's record costs
// about twice a call's, so the difference of one call is that of four halves.
#include "cli/trace/calibrate.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr int kRounds = 3;
constexpr const char* kSeconds = "0.4";  // a row: some ten thousand calls

/// Median seconds of a call on the GPU; CPU rows may stand beside it.
Result<double> row_seconds(const std::filesystem::path& file) {
  FULCRUM_TRY(const std::string content, read_file(file));
  FULCRUM_TRY(const Json document, json_parse(content, file.string()));
  FULCRUM_TRY(const std::vector<Measurement> rows, measurements_from_json(document, file.string()));
  const auto row = std::find_if(rows.begin(), rows.end(), [](const auto& r) { return r.backend == "cuda"; });
  if (row == rows.end() || !(row->seconds.median > 0)) {
    return Error{Code::inconclusive, "the GPU took no time that could be compared",
                 "look at `fulcrum doctor`"};
  }
  return row->seconds.median;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A folder that goes away by itself.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "fulcrum-calibrate-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

Result<trace::Costs> costs_of(const CallTimes& times) {
  const double added = median(times.traced) - median(times.bare);
  // Rounds that overlap say that the machine moves more than tracing costs.
  const double lowest = *std::min_element(times.traced.begin(), times.traced.end());
  const double highest = *std::max_element(times.bare.begin(), times.bare.end());
  if (!(added > 0) || lowest <= highest) {
    return Error{Code::inconclusive,
                 fmt::format("calls took {} without and {} with the tracer: not told apart",
                             human_seconds(median(times.bare)), human_seconds(median(times.traced))),
                 "try again on a quieter machine; usual costs are assumed until then"};
  }
  trace::Costs costs;
  costs.from = "this calibration";
  costs.record_seconds = added / 2;
  costs.call_record_seconds = added / 4;
  return costs;
}

Result<CallTimes> measure_tracing(Context& context) {
  if (machine::discover_gpus().empty()) {
    return Error{Code::environment, "this machine has no GPU that the program can use",
                 "`fulcrum doctor` says why"};
  }
  const Scratch scratch;
  std::error_code failed;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  const std::filesystem::path file = scratch.path / "row.json";
  const std::vector<std::string> command = {self,        "bench",  "vec_add",    "--shape",  "n=32",
                                            "--backend", "cuda",   "--regime",   "resident", "--budget",
                                            kSeconds,    "--json", file.string()};
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  CallTimes times;
  for (int round = 0; round < kRounds; ++round) {
    context.progress(fmt::format("round {} of {}", round + 1, kRounds));
    FULCRUM_TRY(const ProcessResult bare, run_process(command));
    if (bare.exit_code != 0)
      return Error{Code::environment, "the GPU could not be timed", bare.standard_error};
    FULCRUM_TRY(times.bare.emplace_back(), row_seconds(file));
    trace::Options options;
    options.command = command;
    options.full = true;
    options.standard_output = options.standard_error = nowhere;
    FULCRUM_TRY(const GpuTrace trace, trace::run(options));
    if (trace.ops.empty() && trace.totals.empty())
      return Error{Code::environment, "the tracer saw nothing of its own program",
                   "`fulcrum doctor` says why"};
    FULCRUM_TRY(times.traced.emplace_back(), row_seconds(file));
  }
  ::close(nowhere);
  context.progress("");
  return times;
}

}  // namespace fulcrum::cli
