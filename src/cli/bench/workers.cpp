// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/workers.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <nlohmann/json.hpp>

#include "cli/bench/journal.h"
#include "cli/bench/regimes.h"
#include "cli/bench/shapes.h"

namespace fulcrum::cli {
namespace {

constexpr std::string_view kErrorPrefix = "fulcrum: error: ";

/// What a failed worker said, without the prefix that we will print again.
std::string reason_of(const ProcessResult& result) {
  std::string text = result.standard_error.substr(0, result.standard_error.find('\n'));
  if (text.rfind(kErrorPrefix, 0) == 0) text.erase(0, kErrorPrefix.size());
  return text.empty() ? fmt::format("a worker process ended with code {}", result.exit_code) : text;
}

Code code_of(int exit) {
  if (exit == static_cast<int>(Exit::invalid)) return Code::wrong_result;
  if (exit == static_cast<int>(Exit::interrupted)) return Code::interrupted;
  return Code::environment;
}

Result<std::vector<Json>> parse_lines(const std::string& text) {
  std::vector<Json> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    FULCRUM_TRY(Json line,
                json_parse(std::string_view(text).substr(begin, end - begin), "output of a worker"));
    lines.push_back(std::move(line));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

Result<std::filesystem::path> own_program() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path;
  return Error{Code::environment, "cannot find this program's own file: " + error.message(),
               "is /proc mounted?"};
}

std::vector<std::string> worker_command(const std::string& program, const Group& group,
                                        const backends::Kernel& kernel, const measure::Config& config) {
  std::vector<std::string> words = {program,
                                    "bench",
                                    std::string(group.op->name),
                                    "--shape",
                                    group.shape.text(),
                                    "--backend",
                                    std::string(kernel.backend().name()),
                                    "--variant",
                                    std::string(kernel.variant()),
                                    "--regime",
                                    RegimeChoice{group.regime, group.reuse, ""}.text(),
                                    "--cache",
                                    std::string(to_string(group.cache)),
                                    "--budget",
                                    fmt::format("{}", config.budget_seconds),
                                    "--precision",
                                    fmt::format("{}", config.precision),
                                    "--worker"};
  if (!group.path.empty()) words.insert(words.end(), {"--path", group.path});
  if (config.instrumented) words.emplace_back("--instrumented");
  for (const auto& [name, text] : group.inputs) {
    words.emplace_back("--input");
    words.push_back(fmt::format("{}={}", name, text));
  }
  return words;
}

Result<Measurement> run_worker(const std::vector<std::string>& command, const ProcessOptions& process) {
  FULCRUM_TRY(const ProcessResult result, run_process(command, process));
  if (result.exit_code != 0) return Error{code_of(result.exit_code), reason_of(result), ""};
  FULCRUM_TRY(const std::vector<Json> lines, parse_lines(result.standard_output));
  try {
    return measurement_from_lines(lines, "output of a worker");
  } catch (const Json::exception& error) {
    return Error{Code::corrupt, fmt::format("output of a worker: {}", error.what()), ""};
  }
}

/// Nothing here asks the backend whether it is available before the clock runs.
static Result<Measurement> first_call(const Options& options) {
  FULCRUM_TRY(const ops::Op* op, ops::find(options.positionals().at(0)));
  FULCRUM_TRY(const std::vector<Shape> shapes, chosen_shapes(options, *op));
  Group group{.op = op, .shape = shapes.at(0)};
  FULCRUM_TRY(group.inputs, chosen_inputs(options, *op));
  FULCRUM_TRY(ops::Problem problem, problem_of(group));
  measure::Config config;
  if (options.has("path")) config.path = options.list("path").at(0);
  return measure::first_call(options.list("backend").at(0), options.list("variant").at(0), problem, config);
}

/// Before anything else touches the device: a tracer that comes later sees less. What goes wrong here is told by the
/// measurement, which asks again.
static void start_tracing(const Options& options) {
  const auto backend = backends::find(options.list("backend").at(0));
  if (backend.ok()) (void)backends::activity_start(**backend);
}

static Result<Measurement> one_case(const Options& options, Context& context) {
  if (options.has("instrumented")) start_tracing(options);
  FULCRUM_TRY(const BenchPlan plan, make_plan(options));
  const Group& group = plan.groups[0];
  FULCRUM_TRY(ops::Problem problem, problem_of(group));
  measure::Config config = config_of(options, context);
  config.regime = group.regime;
  config.path = group.path;
  config.reuse = group.reuse;
  config.cache = group.cache;
  config.instrumented = options.has("instrumented");
  return measure::run(group.kernels[0], problem, config);
}

Result<Exit> work(const Options& options, Context& context) {
  const bool first = options.has("regime") && options.list("regime").at(0) == to_string(Regime::first_call);
  FULCRUM_TRY(const Measurement row, first ? first_call(options) : one_case(options, context));
  for (const Json& line : case_lines(row, {})) context.write_output(json_text(line) + "\n");
  return Exit::ok;
}

}  // namespace fulcrum::cli
