// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// docs/regret.md: every measured set of the executor's regret, beside what is asked of it. The figures are those that
// `fulcrum bench --regret` wrote; nothing is scored again here.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

using executor::RegretReport;
using executor::RegretScore;

// What docs/executing.md asks for.
constexpr double kMostMean = 1.03, kMostP95 = 1.10, kMostWorst = 1.5;

RegretScore score_from(const Json& json) {
  const auto band = [&json](const char* key) {
    const Json& own = json.at(key);
    const int points = own.at("points").get<int>();
    return RegretScore::InBand{points, points > 0 ? own.at("p95").get<double>() : 1};
  };
  return RegretScore{.points = json.at("points").get<int>(),
                     .mean = json.at("mean").get<double>(),
                     .low = json.at("ci_low").get<double>(),
                     .high = json.at("ci_high").get<double>(),
                     .p95 = json.at("p95").get<double>(),
                     .max = json.at("max").get<double>(),
                     .threads = band("threads_band"),
                     .device = band("device_band")};
}

/// The commit in "fulcrum 0.1.0 (d8fb065fe298)".
std::string commit_in(const std::string& written_by) {
  const std::size_t begin = written_by.find('('), end = written_by.rfind(')');
  return begin < end && end != std::string::npos ? written_by.substr(begin + 1, end - begin - 1) : written_by;
}

/// What the table's description says beyond when and where it was calibrated.
std::string calibration_note(const std::string& table) {
  const std::size_t end = table.find("; ");
  return end == std::string::npos ? "" : table.substr(end + 2);
}

/// Where the answer is about to change: near the break-even of the GPU where there is one, else near that of threads.
const RegretScore::InBand& judged_band(const RegretScore& score) {
  return score.device.points > 0 ? score.device : score.threads;
}

const RegretReport::Baseline& best_rule(const RegretReport& report) {
  return *std::min_element(report.baselines.begin(), report.baselines.end(),
                           [](const auto& a, const auto& b) { return a.score.mean < b.score.mean; });
}

struct Bar {
  std::string_view name;
  std::string title;
  bool (*holds)(const RegretReport&);
};

const std::vector<Bar>& bars() {
  static const std::vector<Bar> list = {
      {"mean", fmt::format("mean <= {:.2f}", kMostMean),
       [](const RegretReport& report) { return report.executor.mean <= kMostMean; }},
      {"p95", fmt::format("p95 <= {:.2f}", kMostP95),
       [](const RegretReport& report) { return judged_band(report.executor).p95 <= kMostP95; }},
      {"worst", fmt::format("worst <= {:.1f}", kMostWorst),
       [](const RegretReport& report) { return report.executor.max <= kMostWorst; }},
      {"rule", "below every rule",
       [](const RegretReport& report) { return report.executor.mean < best_rule(report).score.mean; }}};
  return list;
}

bool all_hold(const RegretSet& set) {
  return std::all_of(bars().begin(), bars().end(), [&set](const Bar& bar) { return bar.holds(set.report); });
}

std::string verdict(const RegretSet& set) {
  std::vector<std::string_view> missed;
  for (const Bar& bar : bars()) {
    if (!bar.holds(set.report)) missed.push_back(bar.name);
  }
  return missed.empty() ? "all hold" : fmt::format("missed: {}", fmt::join(missed, ", "));
}

std::vector<const RegretSet*> newest_first(const Folder& folder) {
  std::vector<const RegretSet*> sets;
  for (const RegretSet& set : folder.regrets) sets.push_back(&set);
  std::stable_sort(sets.begin(), sets.end(), [](const RegretSet* a, const RegretSet* b) {
    return a->report.measured_utc > b->report.measured_utc;
  });
  return sets;
}

/// How many sets of each machine meet what is asked for.
std::string summary_table(const std::vector<Folder>& folders) {
  using report::Align;
  std::vector<report::Table::Column> columns{{"machine"}, {"sets", Align::right}};
  for (const Bar& bar : bars()) columns.push_back({bar.title, Align::right});
  columns.push_back({"all four", Align::right});
  columns.push_back({"all four, build of the newest set"});
  report::Table table(std::move(columns));
  for (const Folder& folder : folders) {
    if (folder.regrets.empty()) continue;
    const auto count = [&folder](const auto& counts) {
      return std::to_string(std::count_if(folder.regrets.begin(), folder.regrets.end(), counts));
    };
    const std::string newest = newest_first(folder).front()->build;
    const auto is_newest = [&newest](const RegretSet& set) { return set.build == newest; };
    std::vector<report::Cell> row{folder.name, std::to_string(folder.regrets.size())};
    for (const Bar& bar : bars())
      row.emplace_back(count([&bar](const RegretSet& set) { return bar.holds(set.report); }));
    row.emplace_back(count(all_hold));
    row.emplace_back(fmt::format("{} of {} (`{}`)",
                                 count([&](const RegretSet& set) { return is_newest(set) && all_hold(set); }),
                                 count(is_newest), newest));
    table.add(std::move(row));
  }
  return table.markdown();
}

std::string p95_text(const RegretScore::InBand& band) {
  return band.points > 0 ? fmt::format("{:.3f}", band.p95) : "";
}

std::string short_score(const RegretScore& score) {
  return fmt::format("{:.3f} / {} / {:.2f}", score.mean, p95_text(judged_band(score)), score.max);
}

struct Column {
  report::Table::Column head;
  std::string (*text)(const RegretSet&);
};

/// Without text, or with one text in every row, those that can be folded leave the table.
const std::vector<Column>& columns() {
  using report::Align;
  static const std::vector<Column> list = {
      {{"machine", Align::left, true}, [](const RegretSet& set) { return set.report.machine; }},
      {{"calls", Align::right, true},
       [](const RegretSet& set) {
         return fmt::format("{}{}", set.report.executor.points, set.report.complete ? "" : ", stopped early");
       }},
      {{"calls learned from", Align::right, true},
       [](const RegretSet& set) { return std::to_string(set.report.after_calls); }},
      {{"seed"},
       [](const RegretSet& set) { return fmt::format("[{}](../results/{})", set.report.seed, set.file); }},
      {{"build"}, [](const RegretSet& set) { return fmt::format("`{}`", set.build); }},
      {{"measured (UTC)"}, [](const RegretSet& set) { return set.report.measured_utc.substr(0, 16); }},
      {{"mean"},
       [](const RegretSet& set) {
         const RegretScore& score = set.report.executor;
         return fmt::format("{:.3f} [{:.3f}, {:.3f}]", score.mean, score.low, score.high);
       }},
      {{"p95 near GPU", Align::right, true},
       [](const RegretSet& set) { return p95_text(set.report.executor.device); }},
      {{"p95 near threads", Align::right},
       [](const RegretSet& set) { return p95_text(set.report.executor.threads); }},
      {{"worst", Align::right},
       [](const RegretSet& set) { return fmt::format("{:.2f}", set.report.executor.max); }},
      {{"after learning"}, [](const RegretSet& set) { return short_score(set.report.after); }},
      {{"timed before"}, [](const RegretSet& set) { return short_score(set.report.timed_before); }},
      {{"best rule"},
       [](const RegretSet& set) {
         const RegretReport::Baseline& rule = best_rule(set.report);
         return fmt::format("{} {:.3f}", rule.name, rule.score.mean);
       }},
      {{"asked for"}, verdict},
      {{"calibration", Align::left, true},
       [](const RegretSet& set) { return calibration_note(set.report.table); }}};
  return list;
}

std::string sets_of(const Folder& folder) {
  std::vector<report::Table::Column> heads;
  for (const Column& column : columns()) heads.push_back(column.head);
  report::Table table(std::move(heads));
  for (const RegretSet* set : newest_first(folder)) {
    std::vector<report::Cell> row;
    for (const Column& column : columns()) row.emplace_back(column.text(*set));
    table.add(std::move(row));
  }
  const std::string common = table.fold();
  return fmt::format("\n## {}\n\nIn all sets: {}.\n\n{}", folder.name, common, table.markdown());
}

RegretReport report_from(const Json& json) {
  RegretReport report{.machine = json.at("machine").get<std::string>(),
                      .table = json.at("table").get<std::string>(),
                      .measured_utc = json.at("measured_utc").get<std::string>(),
                      .seed = json.at("seed").get<std::uint64_t>(),
                      .executor = score_from(json.at("executor")),
                      .after = score_from(json.at("after")),
                      .after_calls = json.at("after_calls").get<int>(),
                      .timed_before = score_from(json.at("timed_before")),
                      .complete = json.at("complete").get<bool>()};
  for (const Json& rule : json.at("baselines"))
    report.baselines.push_back({.name = rule.at("name").get<std::string>(), .score = score_from(rule)});
  return report;
}

}  // namespace

Result<RegretSet> regret_set(const Json& json, const std::string& file) {
  const Error corrupt{Code::corrupt, file + " is no document fulcrum.regret/3 with rules beside the executor",
                      "measure it again with `fulcrum bench --regret`"};
  if (json.value("schema", "") != "fulcrum.regret/3") return corrupt;
  try {
    RegretSet set{file, commit_in(json.at("written_by").get<std::string>()), report_from(json)};
    if (set.report.baselines.empty()) return corrupt;
    return set;
  } catch (const Json::exception&) {  // a field that is not there, or of another type than we write
    return corrupt;
  }
}

std::string regrets(const std::vector<Folder>& folders) {
  std::string text = fmt::format(
      R"(<!-- Made by `cmake --build build --target results` from the files in results/. Do not edit. -->
# What the executor's choices cost

Each set draws calls that the executor has not seen, times every way of each, and divides the time of the way that was
chosen, the decision included, by that of the best way: 1 is perfect. [deciding-well.md](deciding-well.md) has the
method and what was learnt; `fulcrum bench --regret` measures a set and writes its file.

Asked for are a mean of at most {:.2f}, a 95th percentile of at most {:.2f} where the answer is about to change (near the
break-even of the GPU; of several threads where there is no GPU), no call above {:.1f}, and a mean below that of every
rule beside it. Sets that meet it:

{}
The sets of each machine, newest first:

- *seed* leads to the file. One seed draws the same calls as far as the tables agree on where the answer is about to
  change. *build* is the commit that the program was built from, whether or not it had changes on top.
- *mean* with its interval at 95 %, *p95* of the calls near a break-even, and *worst* are of the first call, by the table
  alone.
- *after learning* is what is chosen when the executor has learned from as many calls as stand above the table, trials
  included; *timed before* is a control, the way that was fastest when the very calls were timed once before. Both are mean
  / p95 as it is judged / worst.
- *best rule* is the one with the least mean among one thread, all threads, always the GPU, thresholds and a power law.
- *calibration* says what was noted when the executor's table was measured.
)",
      kMostMean, kMostP95, kMostWorst, summary_table(folders));
  for (const Folder& folder : folders) {
    if (!folder.regrets.empty()) text += sets_of(folder);
  }
  return text;
}

}  // namespace fulcrum::results
