// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The times that are shipped with a device's profile (share/measured): the fastest variant of every op, shape, precision
// and regime in its result files, so that decisions for that device rest on measurements.
#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

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

/// Of a kernel that has changed since. Where none of the present one was measured, the last that was is the measure.
bool stale(const Folder& folder, const Measurement& row) {
  if (row.source_hash.empty()) return false;
  const std::string present = present_source_hash(row.backend, row.op);
  const auto of_present = [&](const Measurement& other) {
    return other.source_hash == present && other.op == row.op && other.backend == row.backend;
  };
  const bool measured = std::any_of(folder.rows.begin(), folder.rows.end(), of_present) ||
                        std::any_of(folder.calibrated.begin(), folder.calibrated.end(), of_present);
  const auto newest = folder.newest_kernel.find(row.backend + "/" + row.op);
  if (measured || newest == folder.newest_kernel.end()) return row.source_hash != present;
  return row.source_hash != newest->second.second;
}

std::string kernel_of(const Measurement& row) {
  return fmt::format("{}/{}/{}/{}", row.backend, row.op, row.precision, to_string(row.regime));
}

struct Size {
  double flops, bytes;  // logarithms
};
Size size_of(const Measurement& row) {
  return {std::log(std::max(1.0, row.work.flops)), std::log(std::max(1.0, row.work.bytes()))};
}

/// An old time of a kernel that has changed since says less than a new one of a similar size, and more than nothing.
bool reached(const std::vector<Size>& fresh, const Size& size) {
  constexpr double kFactor = 16;
  return std::any_of(fresh.begin(), fresh.end(), [&size](const Size& one) {
    return std::abs(one.flops - size.flops) < std::log(kFactor) &&
           std::abs(one.bytes - size.bytes) < std::log(kFactor);
  });
}

}  // namespace

std::vector<Measurement> current(const Folder& folder) {
  std::vector<Measurement> rows = folder.rows;
  rows.insert(rows.end(), folder.calibrated.begin(), folder.calibrated.end());
  std::map<std::string, std::vector<Size>> fresh;
  for (const Measurement& row : rows) {
    if (!stale(folder, row)) fresh[kernel_of(row)].push_back(size_of(row));
  }
  std::erase_if(rows, [&](const Measurement& row) {
    const auto known = stale(folder, row) ? fresh.find(kernel_of(row)) : fresh.end();
    return known != fresh.end() && reached(known->second, size_of(row));
  });
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
