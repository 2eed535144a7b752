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
#include "cli/bench/suites_tables.h"

namespace fulcrum::cli {
namespace {

using report::Table;

constexpr std::size_t kSlowest = 5;
constexpr std::size_t kMostVaried = 3;

template <class Value>
std::string ranking(std::string_view title, std::vector<Shown> rows, std::size_t count, const Value& value,
                    std::string (*text)(double)) {
  std::erase_if(rows, [&](const Shown& row) { return !std::isfinite(value(row)); });
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Shown& a, const Shown& b) { return value(a) > value(b); });
  rows.resize(std::min(rows.size(), count));
  std::vector<std::string> parts;
  parts.reserve(rows.size());
  for (const Shown& row : rows) parts.push_back(fmt::format("{} {}", row.label, text(value(row))));
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
  for (const auto& [row, m, label] : rows) {
    if (m->calls_per_sample > 1)
      parts.push_back(fmt::format("{} {}", label, human_count(double(m->calls_per_sample))));
  }
  if (parts.empty()) return "";
  return fmt::format(
      "Timed in batches, so that stddev, min, max and CV are of means over this many calls: {}.",
      fmt::join(parts, ", "));
}

std::string few_note(const Suite& suite, const std::vector<Shown>& rows) {
  std::vector<std::string> parts;
  for (const auto& [row, m, label] : rows) {
    if (m->samples < suite.least_samples) parts.push_back(fmt::format("{} {}", label, m->samples));
  }
  if (parts.empty()) return "";
  return fmt::format("Fewer than {} samples within the time given (raise --budget): {}.", suite.least_samples,
                     fmt::join(parts, ", "));
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
  for (const auto& [shown_row, m, label] : shown({line})) {
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
    if (row.budget_seconds) {
      best["within_budget"] = m->seconds.mean <= *row.budget_seconds;
      best["budget_share"] = m->seconds.mean / *row.budget_seconds;
    }
    json["best"].push_back(std::move(best));
  }
  return json;
}

}  // namespace

std::string target_tables(const Suite& suite, const std::vector<SuiteLine>& lines, const Context& context) {
  if (!suite.targets) return "";
  const std::vector<Shown> rows = shown(lines);
  std::string text = wrapped(fmt::format("Suite {} ({}): {}; the fastest kernel of each row.", suite.name,
                                         suite.system, suite.summary),
                             context) +
                     "\n";
  text += table_text(timing_table(*suite.targets, rows), context) + "\n";
  if (const Table table = beside_table(lines); !table.empty())
    text += table_text(table, context, false) + "\n";
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
  Table table = claims_table(suite, lines);
  if (table.empty()) return "";
  return wrapped(fmt::format("What {} said, beside the fastest kernel of each row:", suite.system), context) +
         "\n" + table_text(std::move(table), context);
}

Json suite_json(const BenchPlan& plan, const std::vector<SuiteLine>& lines,
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
