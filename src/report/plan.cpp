// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans as text: the answer, the matrix, and the reasons behind a row. The order is the plan's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/text.h"

namespace fulcrum::report {
namespace {

std::string times(double factor) { return three_digits(factor) + "x"; }

Tone tone_of(PlanVerdict verdict) {
  switch (verdict) {
    case PlanVerdict::offload_now:
    case PlanVerdict::offload_next:
      return Tone::good;
    case PlanVerdict::fix_on_cpu_first:
    case PlanVerdict::measure_first:
      return Tone::warn;
    default:
      return Tone::dim;
  }
}

std::string from_text(const BreakEven& breakeven) {
  switch (breakeven.kind) {
    case BreakEven::Kind::at:
      return fmt::format("{}={}", breakeven.dim, human_count(std::round(breakeven.n)));
    case BreakEven::Kind::unknown:
      return "-";
    default:
      return breakeven.reason.empty() ? std::string(to_string(breakeven.kind))
                                      : fmt::format("{} ({})", to_string(breakeven.kind), breakeven.reason);
  }
}

std::string heading_of(const Prediction& prediction) {
  std::string text(to_string(prediction.regime));
  if (!prediction.way.empty()) text += ", " + prediction.way;
  if (!prediction.bound.empty()) {
    text += fmt::format(", bound by {}", prediction.bound);
    if (!prediction.level.empty()) text += fmt::format(" ({})", prediction.level);
  }
  return text;
}

std::string parts_text(std::string_view title, const Prediction& prediction, bool colour, int width) {
  if (!prediction.valid())
    return wrap(fmt::format("{}: no number: {}", title, prediction.missing), width, 2) + "\n";
  std::string text = paint(fmt::format("{}: {} [{}, {}], grade {}", title, human_seconds(prediction.seconds),
                                       human_seconds(prediction.low), human_seconds(prediction.high),
                                       to_string(prediction.grade)),
                           Tone::strong, colour) +
                     "\n  " + heading_of(prediction) + "\n";
  if (!prediction.terms.empty()) text += terms_table(prediction).text(colour);
  if (!prediction.losers.empty()) {
    std::string slower = "  slower ways:";
    for (const Prediction::Loser& loser : prediction.losers)
      slower += fmt::format(" {} {},", loser.way, human_seconds(loser.seconds));
    slower.pop_back();
    text += wrap(slower, width, 4) + "\n";
  }
  return text;
}

}  // namespace

std::string doubtful_text(const Doubtful& value, std::string_view unit) {
  const auto show = [unit](double x) {
    return unit == "%" ? percent(x) : three_digits(x) + std::string(unit);
  };
  std::string text = show(value.value);
  const bool wide = value.high - value.low > 0.005 * std::abs(value.value);
  if (wide) text += fmt::format(" [{}, {}]", show(value.low), show(value.high));
  if (value.assumed) text += " (assumed)";
  return text;
}

std::string prediction_text(const Prediction& prediction) {
  if (!prediction.valid()) return "-";
  return fmt::format("{} {}", human_seconds(prediction.seconds), to_string(prediction.grade));
}

Table terms_table(const Prediction& prediction) {
  Table table({{"  part"}, {"us", Align::right}, {"what"}});
  for (const Term& term : prediction.terms) {
    const Tone tone = term.counted ? Tone::plain : Tone::dim;
    table.add({{"  " + term.name, tone},
               {fmt::format("{:.3f}", 1e6 * term.seconds), tone},
               {term.detail + (term.counted ? "" : " (hidden behind a longer part)"), tone}});
  }
  return table;
}

Table plan_table(const Plan& plan) {
  const bool priced = std::any_of(plan.rows.begin(), plan.rows.end(),
                                  [](const PlanRow& row) { return row.cost_per_million > 0; });
  std::vector<Table::Column> columns{{"what"},
                                     {"do"},
                                     {"verdict"},
                                     {"share", Align::right},
                                     {"best CPU", Align::right},
                                     {"best GPU", Align::right},
                                     {"regime", Align::left, true},
                                     {"speed-up", Align::right},
                                     {"end to end", Align::right},
                                     {"CPU instead", Align::right, false, 1},
                                     {"saved", Align::right},
                                     {"rank", Align::right},
                                     {"GPU from", Align::left, false, 2}};
  if (priced) columns.push_back({"1M calls cost", Align::right});
  Table table(std::move(columns));
  for (const PlanRow& row : plan.rows) {
    std::vector<Cell> cells{{row.tie ? row.name + " =" : row.name, Tone::strong},
                            row.action,
                            {std::string(to_string(row.verdict)), tone_of(row.verdict)},
                            percent(row.share.value),
                            prediction_text(row.best_cpu),
                            prediction_text(row.best_gpu),
                            row.best_gpu.valid() ? std::string(to_string(row.best_gpu.regime)) : "-",
                            times(row.speedup.value),
                            times(row.end_to_end.value),
                            times(row.end_to_end_cpu.value),
                            percent(row.saved.value),
                            fmt::format("{:.3f}", row.rank),
                            from_text(row.breakeven)};
    if (priced) cells.emplace_back(row.cost_per_million > 0 ? three_digits(row.cost_per_million) : "-");
    table.add(std::move(cells));
  }
  return table;
}

/// The rows that move together: first those that are offloaded now, which the answer names too, then the others by what they
/// would be alone.
std::string names_in_set(const Plan& plan) {
  std::map<PlanVerdict, std::vector<std::string>> others;
  std::vector<std::string> groups, now;
  for (const std::string& name : plan.best_set.rows) {
    const auto row =
        std::find_if(plan.rows.begin(), plan.rows.end(), [&](const PlanRow& r) { return r.name == name; });
    const bool is_now = row == plan.rows.end() || row->verdict == PlanVerdict::offload_now;
    (is_now ? now : others[row->verdict]).push_back(name);
  }
  if (!now.empty()) groups.push_back(fmt::format("{}", fmt::join(now, ", ")));
  for (const auto& [verdict, names] : others)
    groups.push_back(fmt::format("alone '{}': {}", to_string(verdict), fmt::join(names, ", ")));
  return fmt::format("{}", fmt::join(groups, "; "));
}

/// Rows may be priced with their data there; together they pay for what crosses the link.
std::string transfers_text(const PlanSet& set) {
  constexpr double kLeast = 0.001;
  if (set.transfers < kLeast) return {};
  return fmt::format(", of the time before {} for data over the link", percent(set.transfers));
}

std::string plan_text(const Plan& plan, bool colour, int width) {
  std::string text = paint(wrap(plan.verdict, width, 0), Tone::strong, colour) + "\n\n";
  Table table = plan_table(plan);
  const std::string folded = table.fold();
  table.narrow(width);
  text += table.text(colour);
  if (!folded.empty()) text += paint(folded, Tone::dim, colour) + "\n";
  if (!plan.best_set.rows.empty()) {
    text += "\n" +
            wrap(fmt::format(
                     "Moved together ({}): {} end to end{}; the same on the best CPU {}; the GPU adds {}.",
                     names_in_set(plan), doubtful_text(plan.best_set.end_to_end, "x"),
                     transfers_text(plan.best_set), doubtful_text(plan.best_set.end_to_end_cpu, "x"),
                     times(plan.best_set.gpu_adds)),
                 width, 2) +
            "\n";
  }
  for (const std::string& note : plan.notes) text += paint(wrap(note, width, 2), Tone::dim, colour) + "\n";
  return text;
}

std::string explain_text(const PlanRow& row, bool colour, int width) {
  std::string text =
      paint(fmt::format("{}: {}", row.name, to_string(row.verdict)), Tone::strong, colour) + "\n";
  text += wrap(row.why, width, 2) + "\n";
  text +=
      wrap(fmt::format(
               "{} {}; share {}, frequency {}, effort {} days; speed-up {}, end to end {}, on the best CPU "
               "{}; saved {}, rank {:.4f}; Engram's score {:.3g} (orders nothing)",
               row.op.empty() ? "code that is no op" : row.op, row.shape.text(),
               doubtful_text(row.share, "%"), doubtful_text(row.frequency, ""),
               doubtful_text(row.effort_days, ""), doubtful_text(row.speedup, "x"),
               doubtful_text(row.end_to_end, "x"), doubtful_text(row.end_to_end_cpu, "x"),
               doubtful_text(row.saved, "%"), row.rank, row.engram_score),
           width, 2) +
      "\n";
  if (!row.breakeven.text.empty()) text += wrap("GPU: " + row.breakeven.text, width, 2) + "\n";
  if (row.cost_per_million > 0)
    text += fmt::format("a million calls cost {} on the GPU, at its price per hour\n",
                        three_digits(row.cost_per_million));
  text += "\n" + parts_text("now", row.now, colour, width);
  text += "\n" + parts_text("best CPU", row.best_cpu, colour, width);
  text += "\n" + parts_text("best GPU", row.best_gpu, colour, width);
  if (!row.command.empty()) text += "\n" + row.command + "\n";
  return text;
}

}  // namespace fulcrum::report
