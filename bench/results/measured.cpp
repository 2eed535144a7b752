// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The times that are shipped with a device's profile (share/measured): the fastest variant of every op, shape, precision
// and regime in its result files, so that decisions for that device rest on measurements.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "page.h"

namespace fulcrum::results {
namespace {

std::string class_of(const Measurement& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", row.op, row.shape.text(), row.precision,
                     to_string(row.regime), row.path, row.reuse, to_string(row.cache), row.threads);
}

bool faster(const Measurement& a, const Measurement& b) {
  const auto seconds = [](const Measurement& row) {
    return row.device_seconds ? row.device_seconds->median : row.seconds.median;
  };
  return seconds(a) < seconds(b);
}

bool stale(const Measurement& row) {
  return !row.source_hash.empty() && row.source_hash != present_source_hash(row.backend, row.op);
}

}  // namespace

std::vector<Measurement> current(const Folder& folder) {
  std::vector<Measurement> rows = folder.rows;
  rows.insert(rows.end(), folder.calibrated.begin(), folder.calibrated.end());
  std::set<std::string> fresh;  // backend and op
  const auto kernel_of = [](const Measurement& row) { return row.backend + "/" + row.op; };
  for (const Measurement& row : rows) {
    if (!stale(row)) fresh.insert(kernel_of(row));
  }
  std::erase_if(rows, [&](const Measurement& row) { return stale(row) && fresh.count(kernel_of(row)) > 0; });
  return rows;
}

std::string measured(const Folder& folder) {
  std::map<std::string, const Measurement*> best;
  const std::vector<Measurement> rows = current(folder);
  for (const Measurement& row : rows) {
    const bool usable = row.quality != Quality::invalid && !with_bias(row) && row.op.rfind("probe_", 0) != 0;
    if (!usable) continue;
    const Measurement*& known = best[class_of(row)];
    if (known == nullptr || faster(row, *known)) known = &row;
  }
  report::BenchDocument document;
  for (const auto& [name, row] : best) {
    document.results.push_back(*row);
    document.results.back().ledger.reset();
  }
  Json json = report::bench_json(document);
  const Json lines = std::move(json["results"]);
  // One row a line: a new measurement is one changed line.
  std::string text =
      fmt::format("{{\n\"schema\": \"fulcrum.bench/1\",\n\"machine\": {},\n\"results\": [\n",
                  json_text(Json{{"id", folder.name}, {"gpu", folder.device}, {"driver", folder.driver}}));
  for (std::size_t i = 0; i < lines.size(); ++i)
    text += json_text(lines[i]) + (i + 1 < lines.size() ? ",\n" : "\n");
  return text + "]}\n";
}

}  // namespace fulcrum::results
