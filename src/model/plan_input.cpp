// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a plan starts from: a suite's rows, or results.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <map>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

// A number that a suite gives is that system's word: not measured here.
Doubtful said(double value) { return {value, value, value, true}; }

// The precision that the op's own operands have: halves are computed in halves.
std::string precision_of(std::string_view op, const Shape& shape) {
  const auto known = ops::find(op);
  const auto completed = known.ok() ? ops::complete(**known, shape) : Result<Shape>(shape);
  const DType dtype = completed.ok() ? completed->dtype : shape.dtype;
  return dtype == DType::f16 ? "fp16" : dtype == DType::bf16 ? "bf16" : "fp32";
}

}  // namespace

Result<PlanInput> plan_input_of(const Suite& suite) {
  PlanInput input;
  input.title = suite.name;
  input.subject = fmt::format("suite {} ({})", suite.name, suite.system);
  std::size_t with_share = 0, ops = 0;
  for (const SuiteRow& row : suite.rows) {
    with_share += row.share.has_value();
    ops += !row.op.empty();
  }
  if (ops == 0) {
    return Error{Code::invalid_argument, fmt::format("suite '{}' has no row with an op", suite.name),
                 "a plan needs rows that name an op and a shape"};
  }
  for (const SuiteRow& row : suite.rows) {
    // Rows without a share beside rows with one are further sizes, not further work.
    if (row.op.empty() || (with_share > 0 && !row.share)) continue;
    PlanItem item;
    item.name = row.name;
    item.op = row.op;
    FULCRUM_TRY(item.shape, parse_shape(row.shape));
    item.precision = precision_of(row.op, item.shape);
    // Without shares every row counts alike, and the plan says that this is assumed.
    item.share = said(with_share > 0 ? row.share.value_or(0) : 1.0 / static_cast<double>(ops));
    item.frequency = said(row.frequency.value_or(1));
    if (row.effort_days) item.effort_days = said(*row.effort_days);
    input.items.push_back(std::move(item));
  }
  for (const Regime regime : {Regime::roundtrip, Regime::resident}) {
    if (std::find(suite.regimes.begin(), suite.regimes.end(), regime) == suite.regimes.end()) continue;
    input.use.regime = regime;
    break;
  }
  return input;
}

PlanInput plan_input_of(std::span<const Measurement> results, const std::map<std::string, double>& shares) {
  PlanInput input;
  input.subject = "results";
  const std::vector<Cell> cells = cells_of(results);
  std::map<std::string, const Cell*> best;
  for (const Cell& cell : cells) {
    if (cell.where != "cpu") continue;
    const std::string name = fmt::format("{} {}", cell.call.op, cell.call.shape.text());
    auto& place = best[name];
    if (!place || cell.seconds < place->seconds) place = &cell;
  }
  for (const auto& [name, cell] : best) {
    PlanItem item;
    item.name = name;
    item.op = cell->call.op;
    item.shape = cell->call.shape;
    item.precision = cell->call.precision;
    const auto given = shares.find(name);
    const double share = given != shares.end() ? given->second
                         : shares.empty()      ? 1.0 / static_cast<double>(best.size())
                                               : 0;
    item.share = {share, share, share, given == shares.end()};
    input.items.push_back(std::move(item));
  }
  return input;
}

}  // namespace fulcrum::model
