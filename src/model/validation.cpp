// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How far predictions are off on what they were not fitted to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

bool judged(const Cell& cell) {
  return cell.regime == Regime::host || cell.regime == Regime::roundtrip || cell.regime == Regime::resident;
}

// Cells that may speak when `asked` is held out.
std::vector<Cell> others(const std::vector<Cell>& cells, const Cell& asked, HeldOut held_out) {
  std::vector<Cell> kept;
  if (held_out == HeldOut::everything) return kept;
  for (const Cell& cell : cells) {
    const bool same_op = cell.call.op == asked.call.op;
    if (same_op && (held_out == HeldOut::op || cell.call.shape == asked.call.shape)) continue;
    kept.push_back(cell);
  }
  return kept;
}

std::string group_of(const Cell& cell, HeldOut held_out) {
  if (held_out == HeldOut::everything) return "";
  if (held_out == HeldOut::op) return cell.call.op;
  return fmt::format("{}|{}|{}", cell.call.op, cell.call.shape.text(), to_string(cell.call.shape.dtype));
}

// On the CPU the best configuration is what decides: of several thread counts the fastest cell stands for all.
bool beaten(const std::vector<Cell>& cells, const Cell& cell) {
  if (cell.where != "cpu" || cell.backend == "scalar") return cell.where == "cpu";
  return std::any_of(cells.begin(), cells.end(), [&](const Cell& other) {
    return other.where == "cpu" && other.backend != "scalar" && other.call.op == cell.call.op &&
           other.call.shape == cell.call.shape && other.call.precision == cell.call.precision &&
           other.call.cache == cell.call.cache && other.seconds < cell.seconds;
  });
}

std::string row_text(const Cell& cell) {
  std::string text = fmt::format("{} {} {} {}", cell.call.op, cell.call.shape.text(), cell.call.precision,
                                 to_string(cell.regime));
  if (!cell.path.empty()) text += " " + cell.path;
  if (cell.where == "cpu") text += fmt::format(" {} threads", cell.threads);
  return text;
}

std::string cause_of(const Prediction& p) {
  const Term* largest = nullptr;
  std::string factor = "no factor";
  for (const Term& term : p.terms) {
    if (term.name == "measured factor") factor = term.detail;
    if (term.counted && (!largest || std::abs(term.seconds) > std::abs(largest->seconds))) largest = &term;
  }
  if (!largest) return factor;
  return fmt::format("{} {} of {}; {}", largest->name, human_seconds(largest->seconds),
                     human_seconds(p.seconds), factor);
}

Prediction predict(const Model& model, const Cell& cell) {
  if (cell.where == "cpu") return model.cpu(cell.call);
  return model.gpu(
      cell.call, {.regime = cell.regime, .path = cell.path, .reuse = std::max<std::int64_t>(1, cell.reuse)});
}

std::vector<ErrorDistribution> grouped(const std::vector<CellError>& cells, std::string CellError::*field) {
  std::map<std::string, std::vector<CellError>> groups;
  for (const CellError& cell : cells) groups[cell.*field].push_back(cell);
  std::vector<ErrorDistribution> out;
  out.reserve(groups.size());
  for (const auto& [name, group] : groups) out.push_back(distribution_of(name, group));
  return out;
}

}  // namespace

ErrorDistribution distribution_of(std::string_view name, std::span<const CellError> errors) {
  ErrorDistribution out{.name = std::string(name), .count = static_cast<int>(errors.size())};
  if (errors.empty()) return out;
  std::vector<double> sizes;
  for (const CellError& e : errors) sizes.push_back(std::abs(e.error()));
  out.median = stats::median(sizes);
  out.p95 = stats::quantile(sizes, 0.95);
  out.worst = *std::max_element(sizes.begin(), sizes.end());
  const auto share = [&](double limit) {
    return static_cast<double>(
               std::count_if(sizes.begin(), sizes.end(), [&](double e) { return e <= limit; })) /
           static_cast<double>(sizes.size());
  };
  out.within_10 = share(0.1);
  out.within_30 = share(0.3);
  return out;
}

Validation cross_validate(std::span<const Measurement> measurements, const Machine& machine,
                          HeldOut held_out) {
  const std::vector<Cell> cells = cells_of(measurements);
  std::map<std::string, Model> models;
  Validation out;
  for (const Cell& cell : cells) {
    if (!judged(cell) || (cell.where == "gpu" && machine.gpus.empty()) || beaten(cells, cell)) continue;
    const std::string group = group_of(cell, held_out);
    auto found = models.find(group);
    if (found == models.end()) {
      const Calibration rest(machine, others(cells, cell, held_out));
      found = models.emplace(group, Model(machine, rest, machine, rest)).first;
    }
    const Prediction p = predict(found->second, cell);
    if (!p.valid()) continue;
    out.cells.push_back({.row = row_text(cell),
                         .op = cell.call.op,
                         .regime = std::string(to_string(cell.regime)),
                         .path = cell.path,
                         .grade = p.grade,
                         .predicted = p.seconds,
                         .measured = cell.seconds,
                         .cause = cause_of(p)});
  }
  out.all = distribution_of("all", out.cells);
  out.by_op = grouped(out.cells, &CellError::op);
  out.by_regime = grouped(out.cells, &CellError::regime);
  out.worst = out.cells;
  std::stable_sort(out.worst.begin(), out.worst.end(), [](const CellError& a, const CellError& b) {
    return std::abs(std::log(a.predicted / a.measured)) > std::abs(std::log(b.predicted / b.measured));
  });
  if (out.worst.size() > 10) out.worst.resize(10);
  return out;
}

}  // namespace fulcrum::model
