// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A measured suite as tables, sentences and JSON.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/bench/suites.h"

namespace fulcrum::cli {
namespace {

using report::Align;
using report::Table;
using report::Tone;

constexpr std::size_t kSlowest = 5;
constexpr std::size_t kMostVaried = 3;

/// The best kernel of a row in one regime: what the tables of a suite with targets show.
struct Shown {
  const SuiteRow* row = nullptr;
  const Measurement* m = nullptr;
};

std::vector<Shown> shown(const std::vector<SuiteLine>& lines) {
  std::vector<Shown> list;
  for (const SuiteLine& line : lines) {
    for (std::size_t i = 0; i < names_of<Regime>().size(); ++i) {
      if (const Measurement* m = line.best(static_cast<Regime>(i))) list.push_back({line.row, m});
    }
  }
  return list;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return "-";
  return share > 0 && share < 0.0005 ? "<0.1 %" : fmt::format("{:.1f} %", 100 * share);
}

std::string significant(double value) {
  if (std::fabs(value) >= 1000 && std::fabs(value) < 1e7) return human_count(std::round(value));
  return fmt::format("{:.3g}", value);
}

std::string rate(double seconds) { return seconds > 0 ? significant(1 / seconds) : "-"; }

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
  for (const auto& [row, m] : rows) {
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

/// A target that the samples cannot tell is neither met nor missed.
std::optional<bool> below(double value, double limit) {
  return std::isfinite(value) ? std::optional(value < limit) : std::nullopt;
}

report::Cell met(std::optional<bool> yes) {
  if (!yes) return "-";
  return *yes ? report::Cell("yes", Tone::good) : report::Cell("NO", Tone::bad);
}

/// The figure, with its mark where that is more than a claim.
std::string claimed_text(const Claim& claim) {
  const std::string text = figure_text(claim.figure, claim.unit);
  return claim.mark == Mark::claimed ? text : fmt::format("{} ({})", text, fulcrum::to_string(claim.mark));
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
  for (const auto& [row, m] : rows) {
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

template <class Value>
std::string ranking(std::string_view title, std::vector<Shown> rows, std::size_t count, const Value& value,
                    std::string (*text)(double)) {
  std::erase_if(rows, [&](const Shown& row) { return !std::isfinite(value(row)); });
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Shown& a, const Shown& b) { return value(a) > value(b); });
  rows.resize(std::min(rows.size(), count));
  std::vector<std::string> parts;
  for (const Shown& row : rows) parts.push_back(fmt::format("{} {}", row.row->name, text(value(row))));
  return parts.empty() ? "" : fmt::format("{}: {}", title, fmt::join(parts, ", "));
}

std::string wrapped(const std::string& text, const Context& context) {
  return text.empty() ? "" : report::wrap(text, context.width(), 2) + "\n";
}

std::string table_text(Table table, const Context& context, bool captioned = true) {
  const std::string folded = table.fold();
  const std::string caption = captioned ? folded : "";
  std::string text = caption.empty() ? "" : wrapped(caption, context) + "\n";
  const auto left_out = context.on_terminal() ? table.narrow(context.width()) : std::vector<std::string>{};
  text += table.text(context.colour());
  if (!left_out.empty()) text += fmt::format("(no room for: {})\n", fmt::join(left_out, ", "));
  return text;
}

/// Rows whose samples are batches of calls: their spread is that of means.
std::string batch_note(const std::vector<Shown>& rows) {
  std::vector<std::string> parts;
  for (const auto& [row, m] : rows) {
    if (m->calls_per_sample > 1)
      parts.push_back(fmt::format("{} {}", row->name, human_count(double(m->calls_per_sample))));
  }
  if (parts.empty()) return "";
  return fmt::format(
      "Timed in batches, so that stddev, min, max and CV are of means over this many calls: {}.",
      fmt::join(parts, ", "));
}

std::string few_note(const Suite& suite, const std::vector<Shown>& rows) {
  std::vector<std::string> parts;
  for (const auto& [row, m] : rows) {
    if (m->samples < suite.least_samples) parts.push_back(fmt::format("{} {}", row->name, m->samples));
  }
  if (parts.empty()) return "";
  return fmt::format("Fewer than {} samples within the time given (raise --budget): {}.", suite.least_samples,
                     fmt::join(parts, ", "));
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

Json line_json(const Suite& suite, const SuiteLine& line, const std::vector<Measurement>& results) {
  const SuiteRow& row = *line.row;
  Json json{{"name", row.name}, {"op", row.op.empty() ? Json(nullptr) : Json(row.op)}, {"shape", row.shape}};
  if (!row.data.empty()) json["data"] = row.data;
  if (!row.inputs.empty()) json["inputs"] = row.inputs;
  const std::pair<const char*, const std::optional<double>*> numbers[] = {
      {"share", &row.share},
      {"frequency", &row.frequency},
      {"effort_days", &row.effort_days},
      {"budget_seconds", &row.budget_seconds}};
  for (const auto& [key, value] : numbers) {
    if (*value) json[key] = **value;
  }
  json["claims"] = to_json(row.claims);
  if (!row.note.empty()) json["note"] = row.note;
  json["results"] = Json::array();  // places in the document's results
  for (const Measurement* m : line.results) json["results"].push_back(m - results.data());
  json["best"] = Json::array();
  for (const auto& [shown_row, m] : shown({line})) {
    Json best{{"result", m - results.data()}, {"regime", fulcrum::to_string(m->regime)}};
    if (suite.targets) {
      const SuiteTargets& targets = *suite.targets;
      best["flags"] = Json::array();
      for (const Warning warning : warnings_of(targets, m->seconds))
        best["flags"].push_back(to_string(warning));
      best["real_time"] = m->seconds.mean < targets.real_time_seconds;
      if (const auto stable = below(m->seconds.cv, targets.stable_cv)) best["stable"] = *stable;
      best["production"] = 1 / m->seconds.mean > targets.calls_per_second;
    }
    if (row.budget_seconds) best["within_budget"] = m->seconds.mean <= *row.budget_seconds;
    json["best"].push_back(std::move(best));
  }
  return json;
}

}  // namespace

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

std::string target_tables(const Suite& suite, const std::vector<SuiteLine>& lines, const Context& context) {
  if (!suite.targets) return "";
  const std::vector<Shown> rows = shown(lines);
  std::string text = wrapped(fmt::format("Suite {} ({}): {}; the fastest kernel of each row.", suite.name,
                                         suite.system, suite.summary),
                             context) +
                     "\n";
  text += table_text(timing_table(*suite.targets, rows), context) + "\n";
  text += table_text(target_table(*suite.targets, rows), context, false) + "\n";
  text +=
      wrapped(ranking(
                  "Slowest", rows, kSlowest, [](const Shown& r) { return r.m->seconds.mean; }, human_seconds),
              context);
  text +=
      wrapped(ranking(
                  "Highest CV", rows, kMostVaried, [](const Shown& r) { return r.m->seconds.cv; }, percent),
              context);
  text += "\n";
  for (const std::string& note : {batch_note(rows), few_note(suite, rows)}) {
    if (!note.empty()) text += wrapped(note, context);
  }
  for (const std::string& line : advice(suite, lines)) text += wrapped(line, context);
  return text;
}

std::string claims_text(const Suite& suite, const std::vector<SuiteLine>& lines, const Context& context) {
  Table table({{"row", Align::left},
               {"kernel", Align::left},
               {"median", Align::right},
               {"claim", Align::left},
               {"says", Align::right},
               {"says/ours", Align::right},
               {"mark", Align::left}});
  for (const auto& [row, m] : shown(lines)) {
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
  if (table.empty()) return "";
  return wrapped(fmt::format("What {} said, beside the fastest kernel of each row:", suite.system), context) +
         "\n" + table_text(std::move(table), context);
}

Json suite_json(const Plan& plan, const std::vector<SuiteLine>& lines,
                const std::vector<Measurement>& results) {
  const Suite& suite = *plan.suite;
  Json json{{"name", suite.name}, {"system", suite.system}, {"summary", suite.summary}};
  json["claims"] = to_json(suite.claims);
  json["rows"] = Json::array();
  for (const SuiteLine& line : lines) json["rows"].push_back(line_json(suite, line, results));
  json["advice"] = advice(suite, lines);
  return json;
}

}  // namespace fulcrum::cli
