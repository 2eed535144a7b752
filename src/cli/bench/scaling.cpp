// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// --scaling: how time grows with size, beside how the op's own work grows.
#include <fmt/format.h>
#include <fulcrum/report.h>
#include <fulcrum/stats.h>

#include <algorithm>

#include "cli/bench/kernels.h"

namespace fulcrum::cli {
namespace {

/// The first size that differs between the rows of one kernel; empty: none does.
std::string varying_dim(const std::vector<const Measurement*>& rows) {
  for (const auto& [name, value] : rows[0]->shape.fields) {
    if (!std::holds_alternative<std::int64_t>(value)) continue;
    const std::string& dim = name;
    const bool varies = std::any_of(rows.begin(), rows.end(), [&](const Measurement* row) {
      const auto* other = row->shape.find(dim);
      return other && *other != *rows[0]->shape.find(dim);
    });
    if (varies) return dim;
  }
  return "";
}

std::string growth_sentence(const std::vector<const Measurement*>& rows) {
  const std::string name = fmt::format("{} ({})", rows[0]->name(), to_string(rows[0]->cache));
  const std::string dim = varying_dim(rows);
  if (dim.empty()) return fmt::format("{}: only one size was measured", name);
  std::vector<double> sizes, seconds, work;
  for (const Measurement* row : rows) {
    sizes.push_back(static_cast<double>(row->shape.dim(dim)));
    seconds.push_back(row->seconds.median);
    work.push_back(row->work.flops > 8 * row->work.bytes() ? row->work.flops : row->work.bytes());
  }
  const stats::Growth measured = stats::fit_growth(sizes, seconds);
  const stats::Growth expected = stats::fit_growth(sizes, work);
  std::string text = fmt::format("{}: time grows as {}^{:.2f}", name, dim, measured.exponent);
  if (measured.interval)
    text += fmt::format(" [{:.2f}, {:.2f}]", measured.interval->low, measured.interval->high);
  text += fmt::format(", its work as {}^{:.2f}", dim, expected.exponent);
  // A factor of two off the line somewhere: one exponent does not describe it.
  if (measured.max_log_residual > 0.69)
    text += "; not one power law: caches or overhead change within this range";
  return text;
}

}  // namespace

std::string scaling_text(const std::vector<Measurement>& rows, int width) {
  std::vector<std::pair<std::string, std::vector<const Measurement*>>> kernels;
  for (const Measurement& row : rows) {
    const std::string key = fmt::format("{} {} {}", row.name(), to_string(row.regime), to_string(row.cache));
    auto found =
        std::find_if(kernels.begin(), kernels.end(), [&](const auto& entry) { return entry.first == key; });
    if (found == kernels.end()) found = kernels.insert(kernels.end(), {key, {}});
    found->second.push_back(&row);
  }
  std::string text;
  for (const auto& [key, members] : kernels) text += report::wrap(growth_sentence(members), width, 2) + "\n";
  return text;
}

}  // namespace fulcrum::cli
