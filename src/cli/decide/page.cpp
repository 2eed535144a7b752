// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See page.h.
#include "cli/decide/page.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/report.h>

#include <algorithm>

namespace fulcrum::cli {
namespace {

constexpr double kSmallest = 1, kLargestFactor = 16;

/// Both regimes of every op of the subject, along the dim it grows by.
void add_breakevens(const Subject& subject, const model::Model& model, Report& report) {
  for (const model::PlanItem& item : subject.input.items) {
    const auto op = ops::find(item.op);
    if (!op.ok()) continue;
    const std::string dim = item.dim.empty() ? growing_dim(**op, item.shape) : item.dim;
    if (dim.empty()) continue;
    const model::Sizes sizes{.op = item.op,
                             .dim = dim,
                             .shape = item.shape,
                             .dims = {},
                             .from = kSmallest,
                             .to = kLargestFactor * static_cast<double>(item.shape.dim(dim)),
                             .largest_seen = 0,
                             .precision = item.precision};
    for (const Regime regime : {Regime::roundtrip, Regime::resident}) {
      auto breakeven = model::breakeven(model, sizes, {.regime = regime, .path = {}});
      if (breakeven.ok()) report.breakevens.push_back(*std::move(breakeven));
    }
  }
}

void add_advice(Report& report) {
  for (const Measurement& row : report.measurements) {
    for (const std::string& flag : row.flags) {
      const std::string text = report::explain_flag(flag);
      if (!text.empty()) report.advice.push_back({row.row(), flag, text});
    }
  }
}

std::string quoted(const std::string& word) {
  const bool plain = word.find_first_of(" '\"$&;|<>()*?[]{}\\") == std::string::npos && !word.empty();
  return plain ? word : fmt::format("'{}'", word);
}

void add_commands(const Context& context, Report& report) {
  std::string line = context.program();
  for (std::size_t i = 1; i < context.arguments().size(); ++i) line += " " + quoted(context.arguments()[i]);
  report.commands.push_back({"this page", line});
  report.commands.push_back({"the ceilings of this machine", context.program() + " machine"});
  std::vector<std::string> seen;
  for (const Measurement& row : report.measurements) {
    const std::string one =
        fmt::format("{} bench {} --shape {} --backend {} --variant {}{}", context.program(), row.op,
                    row.shape.text(), row.backend, row.variant,
                    row.regime == Regime::host ? "" : fmt::format(" --regime {}", to_string(row.regime)));
    if (std::find(seen.begin(), seen.end(), one) != seen.end()) continue;
    seen.push_back(one);
    report.commands.push_back({row.row(), one});
  }
}

}  // namespace

Result<Report> report_of(const std::vector<Subject>& subjects, const Stock& stock,
                         const std::vector<Target>& targets, const Options& options, Context& context) {
  Report report;
  report.created_utc = utc_now();
  report.program = fmt::format("{} {} ({})", context.program(), build_info().version, build_info().commit);
  report.machine = stock.host();
  report.measurements = stock.rows();
  std::vector<std::string> names;
  for (const Subject& subject : subjects) {
    names.push_back(subject.name);
    if (subject.profile) report.profile = subject.profile;
    report.measurements.insert(report.measurements.end(), subject.results.begin(), subject.results.end());
    FULCRUM_TRY(const std::vector<Plan> plans, plans_of(subject, stock, targets, options));
    report.plans.insert(report.plans.end(), plans.begin(), plans.end());
    for (const Target& target : targets) {
      FULCRUM_TRY(const model::Model model, model_of(stock, &target));
      add_breakevens(subject, model, report);
    }
  }
  report.title = fmt::format("Fulcrum: {}", fmt::join(names, ", "));
  const Machine* gpu = targets.empty() ? nullptr : &targets.front().profile;
  std::vector<Measurement> under_roofs = report.measurements;
  for (const Target& target : targets) {
    if (target.here) continue;
    report.gpus.push_back(target.profile);
    // What was measured on that device stands under its roofs.
    auto rows = machine::measurements(target.name);
    if (!rows.ok()) continue;
    for (Measurement& row : *rows) {
      if (row.regime == Regime::resident) under_roofs.push_back(std::move(row));
    }
  }
  report.roofline = model::roofline(stock.host(), gpu, under_roofs);
  add_advice(report);
  add_commands(context, report);
  return report;
}

}  // namespace fulcrum::cli
