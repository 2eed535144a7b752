// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The report as Markdown, for a pull request: the answer, the matrix, the sizes, the doubts, the commands.
#include <fmt/format.h>
#include <fulcrum/report.h>

namespace fulcrum::report {
namespace {

std::string plan_section(const Plan& plan) {
  std::string text = fmt::format("## {}\n\n**{}**\n\n", plan.title, plan.verdict);
  if (!plan.gpu_measured)
    text += fmt::format("Times on {} are predictions; letters are their grades.\n\n", plan.gpu);
  text += plan_table(plan).markdown() + "\n";
  for (const PlanRow& row : plan.rows) text += fmt::format("- **{}**: {}\n", row.name, row.why);
  for (const std::string& note : plan.notes) text += fmt::format("- {}\n", note);
  return text + "\n";
}

}  // namespace

std::string markdown(const Report& report) {
  std::string text = fmt::format("# {}\n\n{}, {}; {}.\n\n", report.title, report.created_utc, report.program,
                                 report.machine.topology.model);
  for (const Plan& plan : report.plans) text += plan_section(plan);
  if (!report.breakevens.empty()) {
    text += "## From which size\n\n";
    Table table({{"op"}, {"regime"}, {"GPU"}, {"answer"}, {"grade"}});
    for (const BreakEven& b : report.breakevens)
      table.add({b.op, std::string(to_string(b.regime)), b.machine, b.text, std::string(to_string(b.grade))});
    text += table.markdown() + "\n";
  }
  if (!report.roofline.points.empty())
    text += "## How near to the limit\n\n" + roofline_table(report.roofline).markdown() + "\n";
  if (!report.measurements.empty())
    text += "## Every measurement\n\n" + measurement_table(report.measurements).markdown() + "\n";
  if (!report.advice.empty()) {
    text += "## Look at these before you trust them\n\n";
    for (const Report::Advice& one : report.advice)
      text += fmt::format("- **{}** `{}`: {}\n", one.row, one.flag, one.text);
    text += "\n";
  }
  if (!report.commands.empty()) {
    text += "## Commands\n\n```\n";
    for (const Report::Command& one : report.commands)
      text += fmt::format("{}  # {}\n", one.command, one.what);
    text += "```\n";
  }
  return text;
}

}  // namespace fulcrum::report
