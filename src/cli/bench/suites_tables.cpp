// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/suites_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::cli {

using report::Align;
using report::Table;
using report::Tone;

namespace {

std::string significant(double value) {
  if (std::fabs(value) >= 1000 && std::fabs(value) < 1e7) return human_count(std::round(value));
  return fmt::format("{:.3g}", value);
}

std::string rate(double seconds) { return seconds > 0 ? significant(1 / seconds) : "-"; }

report::Cell met(std::optional<bool> yes) {
  if (!yes) return "-";
  return *yes ? report::Cell("yes", Tone::good) : report::Cell("NO", Tone::bad);
}

/// The figure, with its mark where that is more than a claim.
std::string claimed_text(const Claim& claim) {
  const std::string text = figure_text(claim.figure, claim.unit);
  return claim.mark == Mark::claimed ? text : fmt::format("{} ({})", text, fulcrum::to_string(claim.mark));
}

std::string mark_text(const Suite& suite, const Claim& claim) {
  if (claim.mark == Mark::measured)
    return fmt::format("measured by {}", suite.system.empty() ? "them" : suite.system);
  if (claim.mark == Mark::wrong) {
    const std::string right = figure_text(*claim.right, claim.unit);
    return claim.right->text.empty() ? fmt::format("wrong, right is {}", right)
                                     : fmt::format("wrong: {}", right);
  }
  return "claimed";
}

}  // namespace

std::vector<Shown> shown(const std::vector<SuiteLine>& lines) {
  std::vector<Shown> list;
  for (const SuiteLine& line : lines) {
    const std::size_t first = list.size();
    for (std::size_t i = 0; i < names_of<Regime>().size(); ++i) {
      if (const Measurement* m = line.best(static_cast<Regime>(i)))
        list.push_back({line.row, m, line.row->name});
    }
    for (std::size_t i = first; i < list.size() && list.size() > first + 1; ++i)
      list[i].label += fmt::format(" ({})", to_string(list[i].m->regime));
  }
  return list;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "-";
  return share > 0 && share < 0.0005 ? "<0.1 %" : fmt::format("{:.1f} %", 100 * share);
}

std::string flags_text(const SuiteTargets& targets, const Measurement& m) {
  std::string text;
  for (const Warning warning : warnings_of(targets, m.seconds))
    text += fmt::format("{}{}", text.empty() ? "" : ", ", to_string(warning));
  return text;
}

Table timing_table(const SuiteTargets& targets, const std::vector<Shown>& rows) {
  Table table({{"row", Align::left},
               {"kernel", Align::left},
               {"regime", Align::left, true},
               {"mean", Align::right},
               {"stddev", Align::right},
               {"min", Align::right},
               {"max", Align::right},
               {"calls/s", Align::right},
               {"CV", Align::right},
               {"samples", Align::right, true, 1},
               {"flags", Align::left, true}});
  for (const auto& [row, m, label] : rows) {
    const Estimate& s = m->seconds;
    table.add({row->name,
               {m->backend + "/" + m->variant, Tone::strong},
               std::string(fulcrum::to_string(m->regime)),
               {human_seconds(s.mean), Tone::strong},
               std::isfinite(s.stddev) ? human_seconds(s.stddev) : "-",
               human_seconds(s.min),
               human_seconds(s.max),
               rate(s.mean),
               percent(s.cv),
               fmt::format("{}", m->samples),
               {flags_text(targets, *m), Tone::warn}});
  }
  return table;
}

std::optional<bool> below(double value, double limit) {
  return std::isfinite(value) ? std::optional(value < limit) : std::nullopt;
}

Table target_table(const SuiteTargets& targets, const std::vector<Shown>& rows) {
  Table table({{"row", Align::left},
               {"regime", Align::left, true},
               {"budget", Align::right},
               {"used", Align::right},
               {"claimed", Align::right},
               {"claimed/ours", Align::right},
               {fmt::format("real time (<{})", human_seconds(targets.real_time_seconds)), Align::left},
               {fmt::format("stable (CV <{:.0f} %)", 100 * targets.stable_cv), Align::left},
               {fmt::format("production (>{:g}/s)", targets.calls_per_second), Align::left}});
  for (const auto& [row, m, label] : rows) {
    const double mean = m->seconds.mean;
    const auto claim = row->claims.find("seconds");
    const bool ranged = claim != row->claims.end() && claim->second.figure.low && claim->second.figure.high;
    const Figure* figure = ranged ? &claim->second.figure : nullptr;
    table.add({row->name, std::string(fulcrum::to_string(m->regime)),
               row->budget_seconds ? human_seconds(*row->budget_seconds) : "-",
               row->budget_seconds ? percent(mean / *row->budget_seconds) : "-",
               figure ? claimed_text(claim->second) : "-",
               figure ? fmt::format("{}x to {}x", significant(*figure->low / mean),
                                    significant(*figure->high / mean))
                      : "-",
               met(mean < targets.real_time_seconds), met(below(m->seconds.cv, targets.stable_cv)),
               met(1 / mean > targets.calls_per_second)});
  }
  return table;
}

namespace {

/// Every regime of a device that has a result, in the order of the enumeration.
std::vector<Regime> device_regimes(const std::vector<SuiteLine>& lines) {
  std::vector<Regime> list;
  for (std::size_t i = 0; i < names_of<Regime>().size(); ++i) {
    const auto regime = static_cast<Regime>(i);
    const bool there = std::any_of(lines.begin(), lines.end(),
                                   [&](const SuiteLine& line) { return line.best(regime) != nullptr; });
    if (regime != Regime::host && there) list.push_back(regime);
  }
  return list;
}

std::string mean_of(const Measurement* m) { return m ? human_seconds(m->seconds.mean) : "-"; }

}  // namespace

Table beside_table(const std::vector<SuiteLine>& lines) {
  std::vector<Table::Column> columns = {{"row", Align::left},
                                        {"budget", Align::right},
                                        {"best CPU", Align::right},
                                        {"kernel", Align::left, false, 1}};
  const std::vector<Regime> regimes = device_regimes(lines);
  for (const Regime regime : regimes)
    columns.push_back({fmt::format("GPU {}", to_string(regime)), Align::right});
  columns.insert(
      columns.end(),
      {{"on the device", Align::right}, {"resident/budget", Align::right}, {"CPU/resident", Align::right}});
  Table table(std::move(columns));
  for (const SuiteLine& line : lines) {
    if (line.results.empty() || regimes.empty()) continue;
    const Measurement *cpu = line.best(Regime::host), *resident = line.best(Regime::resident);
    const auto& budget = line.row->budget_seconds;
    std::vector<report::Cell> cells = {line.row->name, budget ? human_seconds(*budget) : "-", mean_of(cpu),
                                       cpu ? cpu->backend + "/" + cpu->variant : "-"};
    for (const Regime regime : regimes) cells.emplace_back(mean_of(line.best(regime)));
    const bool timed = resident && resident->device_seconds;
    cells.emplace_back(timed ? human_seconds(resident->device_seconds->median) : "-");
    cells.emplace_back(resident && budget ? percent(resident->seconds.mean / *budget) : "-", Tone::strong);
    cells.emplace_back(cpu && resident ? significant(cpu->seconds.mean / resident->seconds.mean) + "x" : "-");
    table.add(std::move(cells));
  }
  return table;
}

std::string figure_text(const Figure& figure, std::string_view unit) {
  const auto number = [&](double value) -> std::string {
    if (!std::isfinite(value)) return "-";
    if (unit == "s") return human_seconds(value);
    if (unit == "share") return percent(value);
    return significant(value) + (unit == "x" ? "x" : "");
  };
  const bool own_unit = unit == "s" || unit == "share" || unit == "x" || unit.empty();
  const std::string after = own_unit ? "" : fmt::format(" {}", unit);
  if (figure.value) return number(*figure.value) + after;
  if (figure.low && figure.high)
    return fmt::format("{} to {}{}", number(*figure.low), number(*figure.high), after);
  std::vector<std::string> parts;
  for (const double value : figure.values) parts.push_back(number(value));
  return parts.empty() ? figure.text : fmt::format("{}{}", fmt::join(parts, ", "), after);
}

Table claims_table(const Suite& suite, const std::vector<SuiteLine>& lines) {
  Table table({{"row", Align::left},
               {"kernel", Align::left},
               {"median", Align::right},
               {"claim", Align::left},
               {"says", Align::right},
               {"says/ours", Align::right},
               {"mark", Align::left}});
  for (const auto& [row, m, label] : shown(lines)) {
    bool first = true;
    for (const auto& [name, claim] : row->claims) {
      const double ours = m->seconds.median / claim.per;
      const bool time = claim.unit == "s" && claim.figure.value;
      table.add({first ? row->name : "",
                 first ? m->backend + "/" + m->variant : "",
                 first || claim.per != 1 ? human_seconds(claim.per != 1 ? ours : m->seconds.median) : "",
                 claim.per != 1 ? name + " (a part)" : name,
                 figure_text(claim.figure, claim.unit),
                 time ? significant(*claim.figure.value / ours) + "x" : "",
                 {mark_text(suite, claim), claim.mark == Mark::measured ? Tone::plain : Tone::dim}});
      first = false;
    }
  }
  return table;
}

}  // namespace fulcrum::cli
