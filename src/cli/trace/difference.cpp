// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See difference.h.
#include "cli/trace/difference.h"

#include <fmt/format.h>
#include <fulcrum/report/trace.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

using Row = trace::Difference::Row;

/// "2.10 ms [2.04, 2.31]"; rows without an interval have none.
std::string interval_text(double value, double low, double high) {
  if (!(value > 0)) return "-";
  if (!(high > low)) return human_seconds(value);
  return fmt::format("{} [{}, {}]", human_seconds(value), human_seconds(low), human_seconds(high));
}

std::string change_text(const Row& row) {
  if (!(row.before > 0)) return row.after > 0 ? "new" : "-";
  if (!(row.after > 0)) return "gone";
  return fmt::format("{:+.1f} %", 100 * (row.after / row.before - 1));
}

/// Faster, slower, or nothing that the intervals tell apart.
std::string verdict_of(const trace::Difference& difference) {
  if (difference.rows.empty()) return "Neither trace holds anything that could be compared.";
  const Row& whole = difference.rows.front();
  const std::string both =
      fmt::format("{} before, {} after", interval_text(whole.before, whole.before_low, whole.before_high),
                  interval_text(whole.after, whole.after_low, whole.after_high));
  const std::string what = difference.basis == "iteration" ? "An iteration" : "The whole run";
  if (!whole.beyond_doubt || !(whole.before > 0) || !(whole.after > 0))
    return fmt::format("{} takes the same within doubt: {}.", what, both);
  const bool faster = whole.after < whole.before;
  return fmt::format("{} became {:.2f}x {}: {}.", what,
                     faster ? whole.before / whole.after : whole.after / whole.before,
                     faster ? "faster" : "slower", both);
}

}  // namespace

std::string difference_text(const trace::Difference& difference, const GpuTrace& before,
                            const GpuTrace& after, int top, bool colour, int width) {
  using report::Align;
  using report::Tone;
  std::string text =
      report::paint(report::wrap(verdict_of(difference), width, 0), Tone::strong, colour) + "\n\n";
  text += report::wrap(fmt::format("before: {} ({}); after: {} ({})", before.command, before.created_utc,
                                   after.command, after.created_utc),
                       width, 2) +
          "\n\n";
  report::Table table({{difference.basis == "iteration" ? "time an iteration" : "time of the run"},
                       {"before", Align::right},
                       {"after", Align::right},
                       {"change", Align::right},
                       {"count before", Align::right, false, 2},
                       {"after", Align::right, false, 2},
                       {"beyond doubt", Align::left, false, 1}});
  const auto room = static_cast<std::size_t>(std::clamp(width - 70, 24, 60));
  int shown = 0;
  for (const Row& row : difference.rows) {
    if (shown++ > top) break;  // the first is the whole
    const Tone tone = !row.beyond_doubt ? Tone::dim : row.after > row.before ? Tone::bad : Tone::good;
    table.add({report::kernel_name(row.what, room),
               interval_text(row.before, row.before_low, row.before_high),
               interval_text(row.after, row.after_low, row.after_high),
               {change_text(row), tone},
               row.before_count > 0 ? human_count(row.before_count) : "-",
               row.after_count > 0 ? human_count(row.after_count) : "-",
               {row.beyond_doubt ? "yes" : "no", tone}});
  }
  table.narrow(width);
  text += table.text(colour);
  if (static_cast<int>(difference.rows.size()) > top + 1)
    text +=
        fmt::format("and {} more in --json\n", difference.rows.size() - static_cast<std::size_t>(top) - 1);
  return text;
}

Json difference_json(const trace::Difference& difference, const GpuTrace& before, const GpuTrace& after) {
  Json rows = Json::array();
  for (const Row& row : difference.rows) {
    rows.push_back(Json{{"what", row.what},
                        {"before", row.before},
                        {"before_low", row.before_low},
                        {"before_high", row.before_high},
                        {"after", row.after},
                        {"after_low", row.after_low},
                        {"after_high", row.after_high},
                        {"before_count", row.before_count},
                        {"after_count", row.after_count},
                        {"beyond_doubt", row.beyond_doubt}});
  }
  return Json{{"schema", "fulcrum.trace_diff/1"},
              {"basis", difference.basis},
              {"verdict", verdict_of(difference)},
              {"before", Json{{"command", before.command}, {"created_utc", before.created_utc}}},
              {"after", Json{{"command", after.command}, {"created_utc", after.created_utc}}},
              {"rows", std::move(rows)}};
}

}  // namespace fulcrum::cli
