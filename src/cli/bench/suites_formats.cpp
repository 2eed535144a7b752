// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A measured suite as CSV (every result on a line, with what its row of the suite says) and as Markdown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/bench/suites.h"
#include "cli/bench/suites_tables.h"

namespace fulcrum::cli {
namespace {

constexpr std::string_view kColumns =
    "suite,suite_row,sweep,best,budget_seconds,budget_share,claim_low_seconds,claim_high_seconds,real_time,"
    "stable,"
    "production,suite_flags";

std::string in_quotes(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string(2, c) : std::string(1, c);
  return field + "\"";
}

std::string number(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

std::string_view yes_no(std::optional<bool> value) { return !value ? "" : *value ? "yes" : "no"; }

/// The range that a row's system gave for its time.
Figure claimed_range(const SuiteRow& row) {
  const auto claim = row.claims.find("seconds");
  return claim == row.claims.end() ? Figure{} : claim->second.figure;
}

std::string suite_fields(const Suite& suite, const Role& role, const Measurement& m, bool best) {
  const double mean = m.seconds.mean;
  const SuiteRow& row = *role.row;
  const Figure range = claimed_range(row);
  const bool judged = suite.targets && !role.sweep;
  const std::optional<double> budget = role.sweep ? std::nullopt : row.budget_seconds;
  std::optional<bool> real_time, stable, production;
  if (judged) {
    real_time = mean < suite.targets->real_time_seconds;
    stable = below(m.seconds.cv, suite.targets->stable_cv);
    production = 1 / mean > suite.targets->calls_per_second;
  }
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", in_quotes(suite.name), in_quotes(row.name),
                     role.sweep ? in_quotes(role.sweep->name) : "", yes_no(best), number(budget),
                     number(budget ? std::optional(mean / *budget) : std::nullopt),
                     number(role.sweep ? std::nullopt : range.low),
                     number(role.sweep ? std::nullopt : range.high), yes_no(real_time), yes_no(stable),
                     yes_no(production), judged ? in_quotes(flags_text(*suite.targets, m)) : "");
}

}  // namespace

std::string suite_csv(const Suite& suite, const report::BenchDocument& document,
                      const std::vector<SuiteResult>& results, const std::vector<SuiteLine>& lines) {
  report::BenchDocument one;
  one.comparisons = document.comparisons;
  const std::string ordinary = report::csv(one);
  std::string text = fmt::format("{},{}\n", ordinary.substr(0, ordinary.find('\n')), kColumns);
  for (const SuiteResult& result : results) {
    one.results = {*result.row};
    const std::string both = report::csv(one);
    const std::size_t begin = both.find('\n') + 1;
    const std::string line = both.substr(begin, both.size() - begin - 1);
    for (const Role& role : result.group->roles) {
      const bool best =
          !role.sweep && std::any_of(lines.begin(), lines.end(), [&](const SuiteLine& candidate) {
            return candidate.row == role.row && candidate.best(result.row->regime) == result.row;
          });
      text += fmt::format("{},{}\n", line, suite_fields(suite, role, *result.row, best));
    }
  }
  return text;
}

std::string suite_markdown(const Suite& suite, const std::vector<SuiteLine>& lines) {
  std::string text = fmt::format("## Suite {}\n\n{}{}{}\n\n", suite.name, suite.system,
                                 suite.system.empty() ? "" : ": ", suite.summary);
  const auto add = [&](std::string_view title, report::Table table) {
    if (table.empty()) return;
    const std::string caption = table.fold();
    text += fmt::format("### {}\n\n{}{}\n", title, caption.empty() ? "" : caption + "\n\n", table.markdown());
  };
  if (suite.targets) {
    const std::vector<Shown> rows = shown(lines);
    add("Fastest kernel of each row", timing_table(*suite.targets, rows));
    add("CPU and GPU beside the budget", beside_table(lines));
    add("Budgets, claims and targets", target_table(*suite.targets, rows));
  } else {
    add("CPU and GPU", beside_table(lines));
    add("Claims beside the fastest kernel", claims_table(suite, lines));
  }
  const std::vector<std::string> sentences =
      suite.targets ? advice(suite, lines) : std::vector<std::string>{};
  for (const std::string& sentence : sentences)
    text += sentence.starts_with("- ") ? sentence + "\n" : fmt::format("- {}\n", sentence);
  return text + (sentences.empty() ? "" : "\n") + "### Every measurement\n\n";
}

}  // namespace fulcrum::cli
