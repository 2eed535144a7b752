// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// bench --regret: what the executor's choices cost against the best one, on calls it has not seen, beside the rules that
// others decide by.
#include <fmt/format.h>
#include <fulcrum/executor.h>
#include <fulcrum/executor/regret.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench/kernels.h"
#include "cli/calibration.h"

namespace fulcrum::cli {
namespace {

constexpr double kBudgetSeconds = 240;
constexpr std::size_t kWorst = 8;

std::string p95_of(const executor::RegretScore::InBand& band) {
  return band.points > 0 ? fmt::format("{:.3f}", band.p95) : "-";
}

std::vector<report::Cell> score_row(std::string name, const executor::RegretScore& score, report::Tone tone,
                                    bool device) {
  std::vector<report::Cell> row{{std::move(name), tone},
                                fmt::format("{:.3f}", score.mean),
                                fmt::format("[{:.3f}, {:.3f}]", score.low, score.high)};
  if (device) row.emplace_back(p95_of(score.device));
  row.emplace_back(p95_of(score.threads));
  row.emplace_back(fmt::format("{:.2f}", score.max));
  row.emplace_back(fmt::format("{}", score.points));
  return row;
}

void print(const executor::RegretReport& report, Context& context) {
  const bool device = report.executor.device.points > 0;
  std::vector<report::Table::Column> columns{
      {"rule", report::Align::left}, {"mean", report::Align::right}, {"95 %", report::Align::left}};
  if (device) columns.push_back({"p95 near GPU", report::Align::right});
  columns.push_back({"p95 near threads", report::Align::right});
  columns.push_back({"max", report::Align::right});
  columns.push_back({"calls", report::Align::right});
  report::Table scores(std::move(columns));
  const auto add = [&](std::string name, const executor::RegretScore& score, report::Tone tone) {
    scores.add(score_row(std::move(name), score, tone, device));
  };
  add("executor", report.executor, report::Tone::strong);
  add(fmt::format("after {} calls", report.after_calls), report.after, report::Tone::strong);
  add("timed before", report.timed_before, report::Tone::plain);
  add("with hindsight", report.hindsight, report::Tone::plain);
  for (const auto& baseline : report.baselines) add(baseline.name, baseline.score, report::Tone::plain);
  context.print(scores.text(context.colour()));
  std::string classes;
  for (const auto& [name, count] : report.classes)
    classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", name, count);
  const std::string near_device =
      device ? fmt::format("{} lie near the break-even of the GPU and ", report.executor.device.points) : "";
  const std::string bands = fmt::format(
      "Of {} calls {}{} lie near the break-even of several threads: the best of the other side is predicted "
      "within a factor of two.",
      report.executor.points, near_device, report.executor.threads.points);
  context.print(
      fmt::format("\nTimes over those of the best way; the executor's include the decision: at the first "
                  "call, by the table "
                  "alone, and after calls of each whose times it has learned from, trials included. Timed "
                  "before: the way that was fastest when these very calls were timed once before, so what is "
                  "above 1 there comes from the machine and not from a table. With "
                  "hindsight: the way "
                  "that was fastest in all visits together, which nobody knows before. {} Fastest: {}.\n{}\n",
                  bands, classes, report.table));
  auto worst = report.rows;
  std::sort(worst.begin(), worst.end(), [](const auto& a, const auto& b) { return a.regret > b.regret; });
  if (worst.size() > kWorst) worst.resize(kWorst);
  report::Table rows({{"worst calls", report::Align::left},
                      {"shape", report::Align::left},
                      {"data", report::Align::left, true},
                      {"regret", report::Align::right},
                      {"chosen", report::Align::left},
                      {"best", report::Align::left},
                      {"best time", report::Align::right}});
  for (const auto& row : worst)
    rows.add({row.op, row.shape, row.residency, fmt::format("{:.2f}", row.regret), row.chosen, row.oracle,
              human_seconds(row.oracle_seconds)});
  rows.fold();
  context.print("\n" + rows.text(context.colour()));
  if (!report.complete)
    context.print(fmt::format("\nOnly {} calls fit into the budget: raise --budget for more.\n",
                              report.executor.points));
}

}  // namespace

Result<Exit> bench_regret(const Options& options, Context& context) {
  FULCRUM_CHECK(backends::check_environment());
  const Result<Calibration> table = look_for_calibration();
  if (table.ok() && !table->advice.empty())
    context.note(fmt::format("warning: the table that is scored: {}; {} first", table->text, table->advice));
  executor::RegretConfig config;
  config.budget_seconds = options.has("budget") ? options.number("budget") : kBudgetSeconds;
  config.ops = options.positionals();
  config.seed = static_cast<std::uint64_t>(options.count("seed"));
  config.interrupted = interrupted;
  config.progress = [&context](int done, int total) {
    context.progress(fmt::format("[{}/{}] calls timed in every way", done, total));
  };
  FULCRUM_TRY(const executor::RegretReport report, executor::measure_regret({}, config));
  context.progress("");
  print(report, context);
  FULCRUM_CHECK(context.write_json(executor::to_json(report)));
  return report.complete ? Exit::ok : Exit::inconclusive;
}

}  // namespace fulcrum::cli
