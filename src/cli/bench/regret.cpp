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

namespace fulcrum::cli {
namespace {

constexpr double kBudgetSeconds = 120;
constexpr std::size_t kWorst = 8;

std::vector<report::Cell> score_row(std::string name, const executor::RegretScore& score, report::Tone tone) {
  return {{std::move(name), tone},
          fmt::format("{:.3f}", score.mean),
          fmt::format("[{:.3f}, {:.3f}]", score.low, score.high),
          fmt::format("{:.3f}", score.p95_band),
          fmt::format("{:.2f}", score.max),
          fmt::format("{}", score.points)};
}

void print(const executor::RegretReport& report, Context& context) {
  report::Table scores({{"rule", report::Align::left},
                        {"mean", report::Align::right},
                        {"95 %", report::Align::left},
                        {"p95 in band", report::Align::right},
                        {"max", report::Align::right},
                        {"calls", report::Align::right}});
  scores.add(score_row("executor", report.executor, report::Tone::strong));
  scores.add(
      score_row(fmt::format("after {} calls", report.after_calls), report.after, report::Tone::strong));
  scores.add(score_row("timed before", report.timed_before, report::Tone::plain));
  scores.add(score_row("with hindsight", report.hindsight, report::Tone::plain));
  for (const auto& baseline : report.baselines)
    scores.add(score_row(baseline.name, baseline.score, report::Tone::plain));
  context.print(scores.text(context.colour()));
  std::string classes;
  for (const auto& [name, count] : report.classes)
    classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", name, count);
  context.print(
      fmt::format("\nTimes over those of the best way; the executor's include the decision: at the first "
                  "call, by the table "
                  "alone, and after calls of each whose times it has learned from, trials included. Timed "
                  "before: the way that was fastest when these very calls were timed once before, so what is "
                  "above 1 there comes from the machine and not from a table. With "
                  "hindsight: the way "
                  "that was fastest in both visits together, which nobody knows before. {} of {} calls "
                  "lie where another "
                  "class of kernels is predicted within a factor of two. Fastest: {}.\n{}\n",
                  report.executor.in_band, report.executor.points, classes, report.table));
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
  executor::RegretConfig config;
  config.budget_seconds = options.has("budget") ? options.number("budget") : kBudgetSeconds;
  config.ops = options.positionals();
  config.seed = static_cast<std::uint64_t>(options.count("seed"));
  config.interrupted = interrupted;
  config.progress = [&context](int done, int total, double mean) {
    context.progress(fmt::format("[{}/{}] mean regret {:.3f}", done, total, mean));
  };
  FULCRUM_TRY(const executor::RegretReport report, executor::measure_regret({}, config));
  context.progress("");
  print(report, context);
  FULCRUM_CHECK(context.write_json(executor::to_json(report)));
  return report.complete ? Exit::ok : Exit::inconclusive;
}

}  // namespace fulcrum::cli
