// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/suites.h"

#include <fmt/format.h>
#include <fulcrum/backends/load.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench/shapes.h"

namespace fulcrum::cli {
namespace {

/// The row's shape with the sweep's sizes in place of its own, as text.
Result<std::string> swept_shape(const std::string& row_shape, const std::string& sizes) {
  FULCRUM_TRY(Shape shape, parse_shape(row_shape));
  FULCRUM_TRY(const Shape changed, parse_shape(sizes));
  for (const auto& [name, value] : changed.fields) shape.set(name, value);
  return shape.text();
}

Error in_row(const Suite& suite, const SuiteRow& row, Error error) {
  error.message = fmt::format("suite {}, row {}: {}", suite.name, row.name, error.message);
  return error;
}

void skip(BenchPlan& plan, const SuiteRow& row, std::string reason) {
  plan.not_measured.push_back(
      {fmt::format("{}/{}", plan.suite->name, row.name), std::move(reason), "", Code::unsupported});
}

Status plan_shape(BenchPlan& plan, const Options& options, const ops::Op& op, const std::string& text,
                  Group like) {
  const Role role = like.roles.at(0);
  Result<Shape> shape = checked_shape(op, text);
  if (!shape.ok() && shape.error().code == Code::environment) {  // too large for this machine
    skip(plan, *role.row, shape.error().message);
    return {};
  }
  if (!shape.ok()) return in_row(*plan.suite, *role.row, shape.error());
  Status added = plan_shapes(plan, options, op, {*shape}, like);
  if (added.ok()) return {};
  if (added.error().code != Code::not_found) return in_row(*plan.suite, *role.row, added.error());
  skip(plan, *role.row, added.error().message);  // an op that the backend asked for does not have
  return {};
}

Status plan_row(BenchPlan& plan, const Options& options, const SuiteRow& row) {
  if (row.op.empty()) {
    skip(plan, row, "code of the host, no op");
    return {};
  }
  const auto op = ops::find(row.op);
  if (!op.ok()) {
    skip(plan, row, fmt::format("there is no op '{}'", row.op));
    return {};
  }
  if (Status checked = ops::check_inputs(**op, row.inputs); !checked.ok())
    return in_row(*plan.suite, row, checked.error());
  const std::string data = row.data.empty() ? "" : fmt::format(",data={}", row.data);
  Group like;
  like.inputs = row.inputs;
  like.roles = {Role{&row}};
  FULCRUM_CHECK(plan_shape(plan, options, **op, row.shape + data, like));
  if (!options.has("scaling")) return {};
  like.inputs.clear();  // described inputs fit one size
  for (const Sweep& sweep : row.sweeps) {
    like.roles = {Role{&row, &sweep}};
    for (const std::string& sizes : sweep.shapes) {
      FULCRUM_TRY(const std::string text, swept_shape(row.shape + data, sizes));
      FULCRUM_CHECK(plan_shape(plan, options, **op, text, like));
    }
  }
  return {};
}

Result<std::vector<const SuiteRow*>> chosen_rows(const Suite& suite, const Options& options) {
  std::vector<const SuiteRow*> rows;
  Names known;
  for (const SuiteRow& row : suite.rows) known.push_back(row.name);
  const std::vector<std::string> wanted = options.list("row");
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return Error{Code::usage, fmt::format("suite {} has no row '{}'", suite.name, name),
                   suggestion(name, known)};
  }
  for (const SuiteRow& row : suite.rows) {
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), row.name) != wanted.end())
      rows.push_back(&row);
  }
  return rows;
}

}  // namespace

bool asks_for_suite(const Options& options) {
  const std::string name = options.text("suite");
  const std::vector<std::string> shipped = shipped_suites();
  return is_suite_path(name) || std::find(shipped.begin(), shipped.end(), name) != shipped.end();
}

Status plan_suite(BenchPlan& plan, const Options& options) {
  for (const char* other : {"shape", "input"}) {
    if (options.has(other))
      return Error{Code::usage, fmt::format("the rows of a suite bring their own --{}", other),
                   "leave it away, or name the op instead of the suite"};
  }
  if (!options.positionals().empty())
    return Error{Code::usage, "--suite and the names of ops exclude each other", "give one of them"};
  FULCRUM_TRY(Suite suite, load_suite(options.text("suite")));
  plan.suite = std::make_shared<const Suite>(std::move(suite));
  FULCRUM_TRY(const auto rows, chosen_rows(*plan.suite, options));
  for (const SuiteRow* row : rows) FULCRUM_CHECK(plan_row(plan, options, *row));
  if (!plan.groups.empty()) return {};
  return Error{Code::environment,
               fmt::format("no row of suite {} can be measured: {}: {}", plan.suite->name,
                           plan.not_measured.at(0).row, plan.not_measured.at(0).reason),
               "`fulcrum ops` lists the ops there are"};
}

// What peers run is for comparison: a row is shown on a kernel of ours.
const Measurement* SuiteLine::best(Regime regime) const {
  const Measurement* fastest = nullptr;
  for (const Measurement* result : results) {
    const bool usable =
        result->regime == regime && result->quality != Quality::invalid && result->seconds.median > 0;
    if (usable && result->backend != backends::kPeers &&
        (!fastest || result->seconds.median < fastest->seconds.median))
      fastest = result;
  }
  return fastest;
}

std::vector<SuiteLine> suite_lines(const BenchPlan& plan, const std::vector<SuiteResult>& results) {
  std::vector<SuiteLine> lines;
  for (const SuiteRow& row : plan.suite->rows) {
    SuiteLine line{&row, {}};
    for (const SuiteResult& result : results) {
      for (const Role& role : result.group->roles) {
        if (role.row == &row && !role.sweep) line.results.push_back(result.row);
      }
    }
    const std::string name = fmt::format("{}/{}", plan.suite->name, row.name);
    const bool mentioned = std::any_of(plan.not_measured.begin(), plan.not_measured.end(),
                                       [&](const auto& skipped) { return skipped.row == name; });
    if (!line.results.empty() || mentioned) lines.push_back(std::move(line));
  }
  return lines;
}

std::string_view to_string(Warning warning) {
  constexpr std::string_view kNames[] = {"SLOW", "HIGH VARIANCE", "OUTLIERS"};
  return kNames[static_cast<std::size_t>(warning)];
}

std::vector<Warning> warnings_of(const SuiteTargets& targets, const Estimate& seconds) {
  std::vector<Warning> list;
  if (targets.slow_seconds > 0 && seconds.mean > targets.slow_seconds) list.push_back(Warning::slow);
  if (targets.high_variance_cv > 0 && seconds.cv > targets.high_variance_cv)
    list.push_back(Warning::high_variance);
  if (targets.outlier_factor > 0 && seconds.max > targets.outlier_factor * seconds.mean)
    list.push_back(Warning::outliers);
  return list;
}

std::vector<Family> suite_families(const std::vector<SuiteResult>& results) {
  std::vector<std::pair<std::string, const Measurement*>> members;
  std::map<std::string, const Claim*> claimed;
  for (const SuiteResult& result : results) {
    for (const Role& role : result.group->roles) {
      // Rows without sweeps form families by op: the suite itself holds their sizes.
      if (!role.sweep && !role.row->sweeps.empty()) continue;
      const std::string name =
          role.sweep ? fmt::format("{}, {}", role.row->name, role.sweep->name) : role.row->op;
      members.emplace_back(name, result.row);
      if (!role.sweep) continue;
      const auto claim = role.sweep->claims.find("exponent");
      if (claim != role.sweep->claims.end()) claimed[name] = &claim->second;
    }
  }
  std::vector<Family> list = families(members);
  std::erase_if(list, [](const Family& family) { return !growth_of(family.rows); });
  for (Family& family : list) {
    const auto claim = claimed.find(family.name.substr(0, family.name.find(" (")));
    if (claim != claimed.end()) family.claimed = claim->second;
  }
  return list;
}

}  // namespace fulcrum::cli
