// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/scaling.h"

#include <fmt/format.h>
#include <fulcrum/report.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

using Rows = std::vector<const Measurement*>;

/// An exponent this near to the expected one is called the same: 2^0.1 is 7 % a doubling.
constexpr double kSameExponent = 0.1;
/// A factor of two off the line somewhere: one exponent does not describe the rows.
const double kOffTheLine = std::log(2.0);
/// Where an op issues more than this many operations a byte, arithmetic is what takes the time.
constexpr double kArithmeticSlotsPerByte = 4;

std::optional<double> size_in(const Measurement& row, const std::string& dim) {
  const Shape::Value* value = row.shape.find(dim);
  const auto* whole = value ? std::get_if<std::int64_t>(value) : nullptr;
  if (!whole || *whole <= 0) return std::nullopt;
  return static_cast<double>(*whole);
}

/// Sizes that are not the same in all rows.
std::vector<std::string> varying_dims(const Rows& rows) {
  std::vector<std::string> dims;
  for (const auto& [name, value] : rows[0]->shape.fields) {
    if (!std::holds_alternative<std::int64_t>(value)) continue;
    const std::string& dim = name;
    const bool varies = std::any_of(rows.begin(), rows.end(), [&](const Measurement* row) {
      return size_in(*row, dim) != size_in(*rows[0], dim);
    });
    if (varies) dims.push_back(dim);
  }
  return dims;
}

/// Both grow by the same factor from row to row.
bool proportional(const Rows& rows, const std::string& a, const std::string& b) {
  const auto ratio = [&](const Measurement* row) {
    return size_in(*row, a).value_or(0) / size_in(*row, b).value_or(-1);
  };
  return std::all_of(rows.begin(), rows.end(), [&](const Measurement* row) {
    return ratio(row) > 0 && std::fabs(ratio(row) / ratio(rows[0]) - 1) < 1e-9;
  });
}

double work_of(const Measurement& row, bool arithmetic) {
  if (!arithmetic) return row.work.bytes();
  return row.work.issue_slots > 0 ? row.work.issue_slots : row.work.flops;
}

/// Of the largest row: the same measure must serve all.
bool arithmetic_binds(const Rows& rows) {
  const auto bytes = [](const Measurement* a, const Measurement* b) {
    return a->work.bytes() < b->work.bytes();
  };
  const Measurement& largest = **std::max_element(rows.begin(), rows.end(), bytes);
  return work_of(largest, true) > kArithmeticSlotsPerByte * largest.work.bytes();
}

/// The size over which time is fitted, and its name.
std::pair<std::string, std::vector<double>> sizes_of(const Rows& rows, bool arithmetic) {
  const std::vector<std::string> dims = varying_dims(rows);
  std::vector<double> sizes;
  const bool one = !dims.empty() && std::all_of(dims.begin(), dims.end(), [&](const std::string& dim) {
    return proportional(rows, dim, dims[0]);
  });
  for (const Measurement* row : rows)
    sizes.push_back(one ? size_in(*row, dims[0]).value_or(0) : work_of(*row, arithmetic));
  if (!one) return {"work", sizes};
  const bool equal = std::all_of(dims.begin(), dims.end(), [&](const std::string& dim) {
    return size_in(*rows[0], dim) == size_in(*rows[0], dims[0]);
  });
  return {fmt::format("{}", fmt::join(dims, equal ? "=" : "~")), sizes};
}

/// What any two sizes say, each median anywhere in its own interval: too few sizes for more. NaN when a median has
/// no interval worth the name.
stats::Interval range_of_pairs(const Rows& rows, const std::vector<double>& sizes) {
  constexpr double kLeastLevel = 0.9;
  if (std::any_of(rows.begin(), rows.end(),
                  [](const Measurement* row) { return row->seconds.level < kLeastLevel; }))
    return {};
  stats::Interval range{INFINITY, -INFINITY};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      if (!(sizes[i] < sizes[j])) continue;
      const double width = std::log(sizes[j] / sizes[i]);
      const Estimate &small = rows[i]->seconds, &large = rows[j]->seconds;
      range.low = std::min(range.low, std::log(large.ci_low / small.ci_high) / width);
      range.high = std::max(range.high, std::log(large.ci_high / small.ci_low) / width);
    }
  }
  return range;
}

GrowthVerdict verdict_of(const GrowthFinding& finding) {
  if (std::isnan(finding.interval.low)) return GrowthVerdict::undecided;
  const bool inside = finding.interval.low <= finding.expected && finding.expected <= finding.interval.high;
  const bool wide = finding.interval.high - finding.interval.low > 1;
  if (std::fabs(finding.exponent - finding.expected) <= kSameExponent) return GrowthVerdict::as_expected;
  if (inside) return wide ? GrowthVerdict::undecided : GrowthVerdict::as_expected;
  return finding.exponent < finding.expected ? GrowthVerdict::flatter : GrowthVerdict::steeper;
}

std::string_view to_string(GrowthVerdict verdict) {
  constexpr std::string_view kNames[] = {"as_expected", "flatter", "steeper", "undecided"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string meaning(const GrowthFinding& f) {
  std::string fact = fmt::format("doubling {} takes {:.2g}x the time, by its {} {:.2g}x", f.size,
                                 std::exp2(f.exponent), f.expected_from, std::exp2(f.expected));
  switch (f.verdict) {
    case GrowthVerdict::as_expected:
      return "as expected: " + fact;
    case GrowthVerdict::flatter:
      return "flatter than expected: " + fact + ", so fixed costs still weigh at the small sizes";
    case GrowthVerdict::steeper:
      return "steeper than expected: " + fact + ", so a cache or a faster path is lost on the way";
    case GrowthVerdict::undecided:
      return "undecided: " + fact + ", but in doubt; measure more sizes, or longer";
  }
  return fact;
}

}  // namespace

std::vector<Family> families(const std::vector<std::pair<std::string, const Measurement*>>& rows) {
  std::vector<Family> list;
  std::vector<std::string> keys;
  for (const auto& [name, row] : rows) {
    const std::string key =
        fmt::format("{} {} {} {} {} {}", name, row->name(), fulcrum::to_string(row->regime), row->path,
                    row->reuse, fulcrum::to_string(row->cache));
    auto found = std::find(keys.begin(), keys.end(), key) - keys.begin();
    if (found == static_cast<std::ptrdiff_t>(keys.size())) {
      keys.push_back(key);
      std::string state = row->cache == Cache::warm ? "" : ", " + std::string(fulcrum::to_string(row->cache));
      std::string regime;  // said where it is not the only one a kernel can have
      if (row->regime != Regime::host) regime = std::string(fulcrum::to_string(row->regime));
      if (row->regime == Regime::reuse) regime += fmt::format("={}", row->reuse);
      if (!row->path.empty()) regime += " " + row->path;
      if (!regime.empty()) state += ", " + regime;
      const std::string cache =
          fmt::format("{}{}{}", fulcrum::to_string(row->cache), regime.empty() ? "" : ", ", regime);
      list.push_back({name.empty() ? fmt::format("{} ({})", row->name(), cache)
                                   : fmt::format("{} ({}/{}{})", name, row->backend, row->variant, state),
                      {}});
    }
    list[static_cast<std::size_t>(found)].rows.push_back(row);
  }
  return list;
}

std::optional<GrowthFinding> growth_of(const std::vector<const Measurement*>& all) {
  Rows rows = all;
  std::erase_if(rows, [](const Measurement* row) {
    return row->quality == Quality::invalid || !(row->seconds.median > 0);
  });
  if (rows.size() < 2) return std::nullopt;
  const bool arithmetic = arithmetic_binds(rows);
  GrowthFinding finding;
  finding.expected_from = arithmetic ? "arithmetic" : "bytes";
  const auto [size, sizes] = sizes_of(rows, arithmetic);
  finding.size = size;
  std::vector<double> distinct = sizes;
  std::sort(distinct.begin(), distinct.end());
  finding.sizes = static_cast<std::size_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin());
  if (finding.sizes < 2) return std::nullopt;
  std::vector<double> seconds, work;
  for (const Measurement* row : rows) {
    seconds.push_back(row->seconds.median);
    work.push_back(work_of(*row, arithmetic));
  }
  const stats::Growth measured = stats::fit_growth(sizes, seconds);
  finding.exponent = measured.exponent;
  finding.expected = stats::fit_growth(sizes, work).exponent;
  finding.from_pairs = !measured.interval;
  finding.interval = measured.interval ? *measured.interval : range_of_pairs(rows, sizes);
  finding.one_power = measured.max_log_residual <= kOffTheLine;
  finding.verdict = verdict_of(finding);
  return finding;
}

std::string growth_sentence(const Family& family) {
  const auto found = growth_of(family.rows);
  if (!found) return fmt::format("{}: only one size was measured", family.name);
  const GrowthFinding& f = *found;
  const bool one_word = f.size.find_first_of("=~") == std::string::npos;
  const std::string base = one_word ? f.size : fmt::format("({})", f.size);
  const std::string interval =
      std::isnan(f.interval.low)
          ? "(too few samples for an interval)"
          : fmt::format("[{:.2f}, {:.2f}]{}", f.interval.low, f.interval.high,
                        f.from_pairs ? fmt::format(" (range over {} sizes)", f.sizes) : "");
  std::string text = fmt::format("{}: time grows as {}^{:.2f} {}, its work as {}^{:.2f}", family.name, base,
                                 f.exponent, interval, base, f.expected);
  if (family.claimed && family.claimed->figure.value)
    text +=
        fmt::format(" ({} ^{:.3g})", fulcrum::to_string(family.claimed->mark), *family.claimed->figure.value);
  text += "; " + meaning(f);
  if (!f.one_power) text += "; not one power law: caches or overhead change within this range";
  return text;
}

std::string scaling_text(const std::vector<Family>& list, int width) {
  std::string text;
  for (const Family& family : list) text += report::wrap(growth_sentence(family), width, 2) + "\n";
  return text;
}

Json scaling_json(const std::vector<Family>& list) {
  Json array = Json::array();
  for (const Family& family : list) {
    const auto f = growth_of(family.rows);
    if (!f) continue;
    Json entry{{"family", family.name},
               {"size", f->size},
               {"sizes", f->sizes},
               {"exponent", f->exponent},
               {"low", f->interval.low},
               {"high", f->interval.high},
               {"interval_from", f->from_pairs ? "pairs" : "kendall"},
               {"expected_exponent", f->expected},
               {"expected_from", f->expected_from},
               {"one_power_law", f->one_power},
               {"verdict", to_string(f->verdict)}};
    if (family.claimed && family.claimed->figure.value) {
      entry["claimed_exponent"] = *family.claimed->figure.value;
      entry["claimed_mark"] = fulcrum::to_string(family.claimed->mark);
    }
    array.push_back(std::move(entry));
  }
  return array;
}

}  // namespace fulcrum::cli
