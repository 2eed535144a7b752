// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The prediction ledger: lines that are written before a run and never edited; what was measured is appended.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

constexpr std::string_view kFormulas = "3";  // counts up when a formula changes

// What was predicted: rows with the same key answer the same question.
std::string question(const LedgerRow& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{:.17g}", row.machine, row.model, row.op, row.precision,
                     row.shape, row.where, to_string(row.regime), row.path, row.reuse, row.predicted);
}

bool answers(const Cell& cell, const LedgerRow& row) {
  if (cell.call.op != row.op || cell.call.precision != row.precision || cell.where != row.where) return false;
  if (cell.call.shape.text() != row.shape || cell.regime != row.regime) return false;
  if (cell.backend == "scalar" && row.where == "cpu") return false;
  if (!row.path.empty() && cell.path != row.path) return false;
  return row.regime != Regime::reuse || cell.reuse == row.reuse;
}

Error corrupt(std::string_view origin, std::string_view field, std::string_view problem) {
  return {Code::corrupt, fmt::format("{}{}{} {}", origin, origin.empty() ? "" : ": ", field, problem),
          "the ledger is damaged, edited, or was not written by fulcrum"};
}

Status read(const Json& json, std::string_view origin, const char* key, std::string& value) {
  const auto found = json.find(key);
  if (found == json.end()) return corrupt(origin, key, "is missing");
  if (!found->is_string()) return corrupt(origin, key, "must be a text");
  value = found->get<std::string>();
  return {};
}

Status read(const Json& json, std::string_view origin, const char* key, double& value) {
  const auto found = json.find(key);
  if (found == json.end()) return corrupt(origin, key, "is missing");
  if (!found->is_number()) return corrupt(origin, key, "must be a number");
  value = found->get<double>();
  return {};
}

template <class E>
Status read_word(const Json& json, std::string_view origin, const char* key, E& value) {
  std::string text;
  FULCRUM_CHECK(read(json, origin, key, text));
  const auto parsed = parse_enum<E>(key, text);
  if (!parsed.ok()) return corrupt(origin, key, "is not known: " + parsed.error().message);
  value = *parsed;
  return {};
}

class Hash {
 public:
  void add(std::string_view text) {
    for (const char c : text) value_ = (value_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 14695981039346656037ULL;
};

void add_cells(Hash& hash, const Calibration& calibration) {
  for (const Cell& cell : calibration.cells()) {
    hash.add(fmt::format("{} {} {} {} {} {} {} {:.17g};", cell.where, cell.call.op, cell.call.shape.text(),
                         cell.call.precision, to_string(cell.regime), cell.path, cell.threads, cell.seconds));
  }
}

}  // namespace

LedgerRow ledger_row(const Call& call, const GpuUse* use, const Prediction& prediction,
                     std::string_view time_utc, std::string_view model) {
  LedgerRow row;
  row.time_utc = time_utc;
  row.machine = prediction.machine;
  row.model = model;
  row.grade = prediction.grade;
  row.op = call.op;
  row.precision = call.precision;
  row.shape = call.shape.text();
  row.where = prediction.where;
  row.regime = use ? use->regime : Regime::host;
  row.path = use ? use->path : "";
  row.reuse = use && use->regime == Regime::reuse ? use->reuse : 0;
  row.predicted = prediction.seconds;
  row.low = prediction.low;
  row.high = prediction.high;
  return row;
}

Json to_json(const LedgerRow& row) {
  return Json::object({{"schema", "fulcrum.prediction/1"},
                       {"time", row.time_utc},
                       {"machine", row.machine},
                       {"model", row.model},
                       {"grade", std::string(to_string(row.grade))},
                       {"op", row.op},
                       {"precision", row.precision},
                       {"shape", row.shape},
                       {"where", row.where},
                       {"regime", std::string(to_string(row.regime))},
                       {"path", row.path},
                       {"reuse", row.reuse},
                       {"predicted", row.predicted},
                       {"low", row.low},
                       {"high", row.high},
                       {"measured", row.measured ? Json(*row.measured) : Json(nullptr)},
                       {"samples", row.samples},
                       {"noise", row.noise}});
}

Result<LedgerRow> ledger_row_from_json(const Json& json, std::string_view origin) {
  FULCRUM_CHECK(json_expect_schema(json, "prediction", origin));
  LedgerRow row;
  for (auto [key, field] : {std::pair{"time", &LedgerRow::time_utc},
                            {"machine", &LedgerRow::machine},
                            {"model", &LedgerRow::model},
                            {"op", &LedgerRow::op},
                            {"precision", &LedgerRow::precision},
                            {"shape", &LedgerRow::shape},
                            {"where", &LedgerRow::where},
                            {"path", &LedgerRow::path}}) {
    FULCRUM_CHECK(read(json, origin, key, row.*field));
  }
  for (auto [key, field] : {std::pair{"predicted", &LedgerRow::predicted},
                            {"low", &LedgerRow::low},
                            {"high", &LedgerRow::high},
                            {"noise", &LedgerRow::noise}}) {
    FULCRUM_CHECK(read(json, origin, key, row.*field));
  }
  FULCRUM_CHECK(read_word(json, origin, "grade", row.grade));
  FULCRUM_CHECK(read_word(json, origin, "regime", row.regime));
  double count = 0;
  FULCRUM_CHECK(read(json, origin, "reuse", count));
  row.reuse = static_cast<std::int64_t>(count);
  FULCRUM_CHECK(read(json, origin, "samples", count));
  row.samples = static_cast<std::int64_t>(count);
  if (const auto found = json.find("measured"); found != json.end() && !found->is_null()) {
    row.measured.emplace();
    FULCRUM_CHECK(read(json, origin, "measured", *row.measured));
    if (!(*row.measured > 0)) return corrupt(origin, "measured", "must be above 0");
  }
  if (!(row.predicted > 0)) return corrupt(origin, "predicted", "must be above 0");
  return row;
}

Result<std::vector<LedgerRow>> ledger_from_lines(std::string_view text, std::string_view origin) {
  std::vector<LedgerRow> rows;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view words = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const std::string where = fmt::format("{}:{}", origin, line);
    FULCRUM_TRY(const Json json, json_parse(words, where));
    FULCRUM_TRY(LedgerRow row, ledger_row_from_json(json, where));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LedgerRow> fill_measured(std::span<const LedgerRow> ledger,
                                     std::span<const Measurement> measurements, std::string_view time_utc) {
  std::map<std::string, bool> filled;
  for (const LedgerRow& row : ledger) filled[question(row)] |= row.measured.has_value();
  const std::vector<Cell> cells = cells_of(measurements);
  std::vector<LedgerRow> out;
  for (const LedgerRow& row : ledger) {
    bool& done = filled[question(row)];
    if (done) continue;
    const Cell* best = nullptr;
    for (const Cell& cell : cells) {
      if (answers(cell, row) && (!best || cell.seconds < best->seconds)) best = &cell;
    }
    if (!best) continue;
    LedgerRow& answer = out.emplace_back(row);
    answer.time_utc = time_utc;
    answer.measured = best->seconds;
    answer.samples = best->samples;
    answer.noise = best->noise;
    done = true;
  }
  return out;
}

std::vector<ErrorDistribution> summarise(std::span<const LedgerRow> ledger, std::string_view by) {
  std::map<std::string, LedgerRow> last;
  for (const LedgerRow& row : ledger) {
    if (row.measured) last[question(row)] = row;
  }
  std::map<std::string, std::vector<CellError>> groups;
  for (const auto& [key, row] : last) {
    CellError error;
    error.predicted = row.predicted;
    error.measured = *row.measured;
    const std::string name = by == "grade"    ? std::string(to_string(row.grade))
                             : by == "regime" ? std::string(to_string(row.regime))
                             : by == "op"     ? row.op
                             : by == "run"    ? row.time_utc.substr(0, 16)
                                              : "all";
    groups[name].push_back(std::move(error));
  }
  std::vector<ErrorDistribution> out;
  out.reserve(groups.size());
  for (const auto& [name, errors] : groups) out.push_back(distribution_of(name, errors));
  return out;
}

std::string model_hash(const Model& model) {
  Hash hash;
  hash.add(kFormulas);
  hash.add(json_text(to_json(model.host())));
  if (model.gpu_machine()) hash.add(json_text(to_json(*model.gpu_machine())));
  add_cells(hash, model.host_calibration());
  add_cells(hash, model.gpu_calibration());
  return hash.text();
}

}  // namespace fulcrum::model
