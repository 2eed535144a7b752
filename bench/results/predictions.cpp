// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// docs/predictions.md: how far the model was off on a measured device. Sizes it had not seen, whole ops it had not seen,
// and the ledger of predictions that were written before the run that checked them.
#include <fmt/format.h>
#include <fulcrum/model.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "page.h"

namespace fulcrum::results {
namespace {

using model::CellError;
using model::ErrorDistribution;

constexpr std::string_view kPredictionsHead =
    "# How good the predictions are\n\n"
    "Made by `cmake --build build/release --target results` from the files in results/. The error of a "
    "prediction is "
    "|predicted / measured - 1|, over every op, size and regime (`roundtrip`: host to host; `resident`: data "
    "on the "
    "device) that was measured. [deciding.md](deciding.md) has the formulas.\n";

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

report::Table distributions(std::string_view title, const std::vector<ErrorDistribution>& list) {
  using report::Align;
  report::Table table({{std::string(title)},
                       {"cells", Align::right},
                       {"median", Align::right},
                       {"95 % are below", Align::right},
                       {"worst", Align::right},
                       {"within 10 %", Align::right},
                       {"within 30 %", Align::right}});
  for (const ErrorDistribution& one : list) {
    table.add({one.name, std::to_string(one.count), percent(one.median), percent(one.p95), percent(one.worst),
               percent(one.within_10), percent(one.within_30)});
  }
  return table;
}

report::Table worst_table(const std::vector<CellError>& worst) {
  using report::Align;
  report::Table table({{"call"},
                       {"predicted", Align::right},
                       {"measured", Align::right},
                       {"error", Align::right},
                       {"grade"},
                       {"what the prediction rested on"}});
  for (const CellError& one : worst) {
    table.add({one.row, human_seconds(one.predicted), human_seconds(one.measured),
               fmt::format("{:+.0f} %", 100 * one.error()), std::string(to_string(one.grade)), one.cause});
  }
  return table;
}

std::string validation_text(const Folder& folder, const Machine& machine) {
  std::vector<ErrorDistribution> whole;
  std::vector<Measurement> rows = current(folder);
  std::erase_if(rows, [](const Measurement& row) { return row.regime == Regime::host; });
  const auto validate = [&](std::string_view name, model::HeldOut held_out) {
    model::Validation result = model::cross_validate(rows, machine, held_out);
    result.all.name = name;
    whole.push_back(result.all);
    return result;
  };
  const model::Validation sizes = validate("a size left out", model::HeldOut::size);
  validate("an op left out (zero-shot, with its class)", model::HeldOut::op);
  validate("closed form alone (zero-shot)", model::HeldOut::everything);
  std::string text = fmt::format("\n## {}, cell by cell\n\n", folder.name);
  text +=
      "Each cell is predicted without what the row names.\n\n" + distributions("left out", whole).markdown();
  text += "\nA size left out, by op:\n\n" + distributions("op", sizes.by_op).markdown();
  text += "\nand by regime:\n\n" + distributions("regime", sizes.by_regime).markdown();
  text += "\nThe ten worst:\n\n" + worst_table(sizes.worst).markdown();
  return text;
}

/// Predictions that missed by more than 30 %, run by run, with what can be said against them beforehand.
std::string missed(const std::vector<model::LedgerRow>& ledger) {
  using report::Align;
  constexpr double kBar = 0.3;
  constexpr std::int64_t kFewSamples = 5;
  std::vector<const model::LedgerRow*> rows;
  for (const model::LedgerRow& row : ledger) {
    if (row.measured && std::abs(row.predicted / *row.measured - 1) > kBar) rows.push_back(&row);
  }
  if (rows.empty()) return "No prediction missed by more than 30 %.\n";
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->time_utc > b->time_utc; });
  report::Table table({{"run"},
                       {"call"},
                       {"predicted", Align::right},
                       {"measured", Align::right},
                       {"error", Align::right},
                       {"known beforehand, or of the measurement"}});
  for (const model::LedgerRow* row : rows) {
    std::vector<std::string> notes;
    if (row->grade == Grade::c) notes.emplace_back("grade C: outside of the sizes it rests on");
    const bool inside = *row->measured >= row->low && *row->measured <= row->high;
    notes.emplace_back(inside ? "inside its interval" : "outside of its interval");
    if (row->samples < kFewSamples)
      notes.push_back(row->samples == 1 ? "one sample" : fmt::format("{} samples", row->samples));
    table.add({row->time_utc.substr(0, 16),
               fmt::format("{} {} {} {}", row->op, row->shape, row->precision, to_string(row->regime)),
               human_seconds(row->predicted), human_seconds(*row->measured),
               fmt::format("{:+.0f} %", 100 * (row->predicted / *row->measured - 1)),
               fmt::format("{}", fmt::join(notes, "; "))});
  }
  return fmt::format("{} predictions missed by more than 30 %, the latest run first:\n\n", rows.size()) +
         table.markdown();
}

Result<std::string> ledger_text(const Folder& folder, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::string();
  FULCRUM_TRY(const std::string content, read_file(file));
  FULCRUM_TRY(const std::vector<model::LedgerRow> ledger, model::ledger_from_lines(content, file.string()));
  std::string text = fmt::format("\n## {}, predicted first and measured later\n\n", folder.name);
  text += "These predictions were committed before the run that checked them (results/" + folder.name +
          "/predictions.jsonl, a line each; measurements are appended). A row that was measured beside other "
          "programs on the device (flag `shared_device`) is no measurement: it is measured again in the same "
          "run, and the first one without the flag counts. Every run was predicted by the model of its time; "
          "sizes that were checked once serve the model from then on, so that the latest run judges the "
          "model as it is.\n\n";
  text += distributions("", model::summarise(ledger, "all")).markdown();
  text += "\n" + distributions("by the run that measured them", model::summarise(ledger, "run")).markdown();
  text += "\n" + missed(ledger);
  text += "\n" + distributions("op", model::summarise(ledger, "op")).markdown();
  text += "\n" + distributions("regime", model::summarise(ledger, "regime")).markdown();
  text += "\n" + distributions("grade", model::summarise(ledger, "grade")).markdown();
  return text;
}

}  // namespace

Result<std::string> predictions(const std::vector<Folder>& folders, const std::filesystem::path& root) {
  std::string text(kPredictionsHead);
  for (const Folder& folder : folders) {
    const std::filesystem::path profile = root / "share" / "machines" / (folder.name + ".json");
    if (!std::filesystem::exists(profile)) continue;
    FULCRUM_TRY(const std::string content, read_file(profile));
    FULCRUM_TRY(const Json json, json_parse(content, profile.string()));
    FULCRUM_TRY(const Machine machine, machine_from_json(json, profile.string()));
    text += validation_text(folder, machine);
    FULCRUM_TRY(const std::string ledger,
                ledger_text(folder, root / "results" / folder.name / "predictions.jsonl"));
    text += ledger;
    text += breakeven_table(folder);
  }
  return text;
}

}  // namespace fulcrum::results
