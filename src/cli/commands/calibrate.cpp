// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures few shapes of every op in every way this machine has, and keeps them as the executor's table.
#include <fmt/format.h>
#include <fulcrum/backends.h>
#include <fulcrum/executor.h>
#include <fulcrum/report.h>

#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {
namespace {

constexpr double kCpuSeconds = 9.2, kDeviceSeconds = 27;
constexpr std::size_t kSizes = 4;  // of an op that the table shows

/// "simd/default" of "gelu/simd/default".
std::string way_of(const std::string& name) {
  const auto slash = name.find('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

/// Standard sizes of an op, at most kSizes, smallest and largest among them.
std::vector<std::string_view> sizes_of(const ops::Op& op) {
  std::vector<std::string_view> sizes;
  const std::size_t count = op.default_sizes.size();
  for (std::size_t i = 0; i < std::min(kSizes, count); ++i)
    sizes.push_back(op.default_sizes[count <= kSizes ? i : i * (count - 1) / (kSizes - 1)]);
  return sizes;
}

Json add_row(const ops::Op& op, std::string_view text, const executor::Executor& executor,
             executor::Place place, report::Table& table) {
  const auto shape = parse_shape(text);
  if (!shape.ok()) return nullptr;
  const auto explained = executor.explain(op.name, *shape, place);
  if (!explained.ok() || explained->ways.empty()) return nullptr;
  const executor::Way& best = explained->ways.front();
  table.add({{std::string(op.name), report::Tone::strong},
             std::string(text),
             std::string(executor::to_string(place)),
             way_of(best.name),
             human_seconds(best.seconds),
             explained->ways.size() > 1 && explained->ways[1].why_not.empty()
                 ? fmt::format("{:.2f}x {}", explained->margin, way_of(explained->ways[1].name))
                 : std::string("-"),
             std::string(fulcrum::to_string(best.grade))});
  return Json{{"op", op.name},
              {"shape", text},
              {"data", executor::to_string(place)},
              {"way", best.name},
              {"seconds", best.seconds},
              {"sigma", best.sigma},
              {"grade", fulcrum::to_string(best.grade)},
              {"margin", explained->margin}};
}

Result<Exit> show(const executor::Executor& executor, const std::vector<std::string>& names, double seconds,
                  Context& context) {
  report::Table table({{"op", report::Align::left},
                       {"shape", report::Align::left},
                       {"data", report::Align::left, true},
                       {"runs on", report::Align::left},
                       {"predicted", report::Align::right},
                       {"next best", report::Align::left, false, 1},
                       {"grade", report::Align::left, true}});
  Json rows = Json::array();
  for (const ops::Op* op : ops::all()) {
    const bool asked = std::find(names.begin(), names.end(), op->name) != names.end();
    if (op->is_probe() || (names.empty() ? op->needs_prepared : !asked)) continue;
    for (const std::string_view text : sizes_of(*op)) {
      for (const executor::Place place : {executor::Place::host, executor::Place::device}) {
        if (place == executor::Place::device && !executor.has_device()) continue;
        if (Json row = add_row(*op, text, executor, place, table); !row.is_null())
          rows.push_back(std::move(row));
      }
    }
  }
  const std::string folded = table.fold();
  if (context.on_terminal()) table.narrow(context.width());
  context.print(table.text(context.colour()));
  if (!folded.empty()) context.print(fmt::format("everywhere: {}\n", folded));
  context.print(
      fmt::format("\ncalibrated in {:.1f} s. Calls of this machine's programs now go by it; "
                  "`fulcrum bench --regret` measures how well.\n",
                  seconds));
  FULCRUM_CHECK(
      context.write_json(Json{{"schema", "fulcrum.calibrated/1"}, {"seconds", seconds}, {"rows", rows}}));
  return Exit::ok;
}

Result<Exit> nothing_stale(Context& context) {
  context.print("nothing is stale or missing; ops that need a graph or an index are measured when named\n");
  FULCRUM_CHECK(context.write_json(
      Json{{"schema", "fulcrum.calibrated/1"}, {"seconds", 0.0}, {"rows", Json::array()}}));
  return Exit::ok;
}

Result<Exit> run_calibrate(const Options& options, Context& context) {
  FULCRUM_CHECK(backends::check_environment());
  FULCRUM_CHECK(data_folder());  // before the seconds of measuring, not after them
  FULCRUM_TRY(const executor::Executor executor, executor::Executor::make());
  executor::CalibrateConfig config;
  config.budget_seconds = options.has("budget")   ? options.number("budget")
                          : executor.has_device() ? kDeviceSeconds
                                                  : kCpuSeconds;
  config.ops = options.positionals();
  if (options.has("stale")) {
    if (!config.ops.empty())
      return Error{Code::usage, "--stale finds the ops itself", "leave out either it or the names"};
    config.ops = executor.ops_to_renew();
    if (config.ops.empty()) return nothing_stale(context);
  }
  config.interrupted = interrupted;
  config.progress = [&context](std::string_view op, int done, int total) {
    context.progress(fmt::format("[{}/{}] {}", done, total, op));
  };
  const double begin = measure::steady_clock().now();
  FULCRUM_CHECK(executor.calibrate(config));
  context.progress("");
  return show(executor, config.ops, measure::steady_clock().now() - begin, context);
}

}  // namespace

Command calibrate() {
  return Command{
      .name = "calibrate",
      .summary = "Measure where each op is fastest on this machine, for programs that use the executor",
      .details =
          "Times every kernel that may run an op at few shapes, on the CPU and on a GPU if there is one, "
          "more of them where the answer changes, and keeps the times in the data folder under the name "
          "of this hardware and driver. Executors load them when they are made; without them they start "
          "from what the program ships and learn. The times of an op whose kernels have changed since are "
          "stale: taken for a guess, until the op is measured again. The table shows what would run each "
          "op's standard sizes.",
      .positionals = {{.name = "OP",
                       .help =
                           "only these ops; the others keep what they have, stale or not. Ops that need a "
                           "graph or an index are measured only when named",
                       .repeat = true,
                       .choices = op_names,
                       .what = "op"}},
      .options = {{.name = "stale",
                   .help = "only the ops that are stale or were never measured",
                   .kind = Kind::flag},
                  {.name = "budget",
                   .value = "SECONDS",
                   .help = "seconds for all ops together (default: 9.2, with a GPU 27)",
                   .kind = Kind::number,
                   .above = true}},
      .examples = {{"fulcrum calibrate", "all ops"},
                   {"fulcrum calibrate --stale", "after an update: what has changed"},
                   {"fulcrum calibrate matmul --budget 5", "one op, more thoroughly"}},
      .run = run_calibrate,
  };
}

}  // namespace fulcrum::cli
