// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See ledger.h.
#include "cli/decide/ledger.h"

#include <fmt/format.h>
#include <fulcrum/report.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

Status append(const std::string& file, const std::vector<model::LedgerRow>& rows) {
  std::ofstream stream(file, std::ios::app);
  for (const model::LedgerRow& row : rows) stream << json_text(model::to_json(row)) << '\n';
  stream.flush();
  if (stream.good()) return {};
  return Error{Code::environment, fmt::format("cannot write {}", file),
               "check the folder and the space on its disk"};
}

report::Table distribution_table(std::string_view title, const std::vector<model::ErrorDistribution>& list) {
  using report::Align;
  report::Table table({{std::string(title)},
                       {"cells", Align::right},
                       {"median", Align::right},
                       {"95 %", Align::right},
                       {"worst", Align::right},
                       {"within 10 %", Align::right},
                       {"within 30 %", Align::right}});
  const auto percent = [](double share) { return fmt::format("{:.1f} %", 100 * share); };
  for (const model::ErrorDistribution& one : list) {
    table.add({one.name, std::to_string(one.count), percent(one.median), percent(one.p95), percent(one.worst),
               percent(one.within_10), percent(one.within_30)});
  }
  return table;
}

Json to_json(const std::vector<model::ErrorDistribution>& list) {
  Json json = Json::array();
  for (const model::ErrorDistribution& one : list) {
    json.push_back(Json{{"name", one.name},
                        {"cells", one.count},
                        {"median", one.median},
                        {"p95", one.p95},
                        {"worst", one.worst},
                        {"within_10", one.within_10},
                        {"within_30", one.within_30}});
  }
  return json;
}

}  // namespace

Status write_predictions(const Options& options, const Subject& subject, const Stock& stock,
                         const std::vector<Target>& targets, Context& context) {
  const std::string now = utc_now();
  std::vector<model::LedgerRow> rows;
  for (const Target& target : targets) {
    FULCRUM_TRY(const model::Model model, model_of(stock, &target));
    const model::Model blind = model.without_cells();
    const std::string hash = model::model_hash(model);
    for (const model::PlanItem& item : subject.input.items) {
      if (item.op.empty()) continue;
      FULCRUM_TRY(const model::Call call, model::call_of(item.op, item.shape, item.precision));
      for (const Regime regime : {Regime::roundtrip, Regime::resident}) {
        const model::GpuUse use{.regime = regime, .path = regime == Regime::roundtrip ? "auto" : ""};
        const Prediction prediction = blind.gpu(call, use);
        if (prediction.valid()) rows.push_back(model::ledger_row(call, &use, prediction, now, hash));
      }
    }
  }
  const std::string file = options.text("predictions");
  FULCRUM_CHECK(append(file, rows));
  context.print(fmt::format("appended {} predictions to {}\n", rows.size(), file));
  return {};
}

Result<Exit> verify_ledger(const Options& options, Context& context) {
  const std::string file = options.text("verify");
  FULCRUM_TRY(const std::string text, read_file(file));
  FULCRUM_TRY(std::vector<model::LedgerRow> ledger, model::ledger_from_lines(text, file));
  if (options.has("results")) {
    const std::string results = options.text("results");
    FULCRUM_TRY(const std::vector<Measurement> rows, read_measurements(results));
    const std::vector<model::LedgerRow> filled = model::fill_measured(ledger, rows, utc_now());
    FULCRUM_CHECK(append(file, filled));
    ledger.insert(ledger.end(), filled.begin(), filled.end());
    context.print(fmt::format("{} predictions got their measurement\n\n", filled.size()));
  }
  const auto by_op = model::summarise(ledger, "op"), by_grade = model::summarise(ledger, "grade");
  if (by_op.empty()) {
    return Error{Code::inconclusive, fmt::format("no prediction in {} has a measurement yet", file),
                 "measure the same calls on the device and give the document with --results FILE"};
  }
  context.print(distribution_table("op", by_op).text(context.colour()) + "\n");
  context.print(distribution_table("grade", by_grade).text(context.colour()));
  FULCRUM_CHECK(context.write_json(
      Json{{"schema", "fulcrum.errors/1"}, {"by_op", to_json(by_op)}, {"by_grade", to_json(by_grade)}}));
  return Exit::ok;
}

}  // namespace fulcrum::cli
