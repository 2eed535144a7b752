// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See subject.h.
#include "cli/decide/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace fulcrum::cli {
namespace {

constexpr std::string_view kDemo = "memory-recall";
/// Beside the size itself, for the CPU's curve, in less time.
constexpr double kSmaller[] = {1.0 / 64, 1.0 / 8};
constexpr double kCurveSeconds = 0.6;

Names shipped_names() {
  Names names;
  for (const std::string& name : shipped_suites()) names.push_back(name);
  return names;
}

Result<Subject> of_suite(const std::string& name) {
  FULCRUM_TRY(const Suite suite, load_suite(name));
  Subject subject;
  subject.name = suite.name;
  FULCRUM_TRY(subject.input, model::plan_input_of(suite));
  // A list of kernels and no program: every row counts once, by the time it takes.
  subject.equal_calls = std::none_of(suite.rows.begin(), suite.rows.end(),
                                     [](const SuiteRow& row) { return row.share.has_value(); });
  for (const model::PlanItem& item : subject.input.items) {
    const auto row = std::find_if(suite.rows.begin(), suite.rows.end(),
                                  [&item](const SuiteRow& one) { return one.name == item.name; });
    add_wants(subject, item, row == suite.rows.end() ? ops::InputTexts{} : row->inputs);
  }
  return subject;
}

Result<Subject> of_results(const std::string& file) {
  Subject subject;
  subject.name = std::filesystem::path(file).filename().string();
  FULCRUM_TRY(subject.results, read_measurements(file));
  subject.input = model::plan_input_of(subject.results);
  subject.equal_calls = true;
  if (subject.input.items.empty()) {
    return Error{Code::inconclusive, fmt::format("{} has no CPU row to decide about", file),
                 "measure some: fulcrum bench OP --json FILE"};
  }
  subject.input.subject = subject.name;
  return subject;
}

/// One call of each: the share of an item is its share of the sum of the best CPU times.
void share_by_time(const model::Model& model, model::PlanInput& input) {
  double sum = 0;
  std::vector<double> seconds(input.items.size(), 0);
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    const model::PlanItem& item = input.items[i];
    const auto call = model::call_of(item.op, item.shape, item.precision);
    if (!call.ok()) continue;
    const Prediction best = model.cpu(*call);
    if (best.valid()) sum += seconds[i] = best.seconds;
  }
  for (std::size_t i = 0; i < input.items.size() && sum > 0; ++i) {
    const double share = seconds[i] / sum;
    input.items[i].share = Doubtful{.value = share, .low = share, .high = share, .assumed = true};
  }
}

}  // namespace

std::vector<Option> subject_options() {
  return {
      {.name = "suite",
       .value = "NAME",
       .help =
           "decide about the rows of a suite, shipped or a file such as ./my.json (default: memory-recall)",
       .choices = shipped_names,
       .what = "suite",
       .open = true},
      {.name = "results",
       .value = "FILE",
       .help = "decide about the CPU rows of a document that `fulcrum bench --json FILE` wrote",
       .kind = Kind::file},
      {.name = "profile",
       .value = "FILE",
       .help = "decide about a program by its profile: of `fulcrum record`, pprof, the text of `perf script` "
               "or folded "
               "stacks (these never say more than `measure first`)",
       .kind = Kind::file}};
}

void add_wants(Subject& subject, const model::PlanItem& item, const ops::InputTexts& inputs) {
  const auto op = ops::find(item.op);
  if (!op.ok()) return;
  const auto shape = ops::complete(**op, item.shape);
  if (!shape.ok()) return;
  subject.wants.push_back({*op, *shape, inputs});
  const std::string dim = item.dim.empty() ? growing_dim(**op, item.shape) : item.dim;
  if (dim.empty()) return;
  const auto size = static_cast<double>(item.shape.dim(dim));
  for (const double part : kSmaller) {
    const double n = std::round(size * part);
    if (n < 1) continue;
    // Described inputs may depend on the size; smaller calls take drawn ones.
    if (const auto smaller = resized(**op, item.shape, dim, n))
      subject.wants.push_back({*op, *smaller, {}, kCurveSeconds});
  }
}

std::string growing_dim(const ops::Op& op, const Shape& shape) {
  if (!op.slice_dim.empty() && shape.find(op.slice_dim) != nullptr) return std::string(op.slice_dim);
  std::string best;
  std::int64_t most = 0;
  for (const ops::Slot& slot : op.slots) {
    if (slot.kind != ops::SlotKind::dim || shape.find(slot.name) == nullptr) continue;
    if (shape.dim(slot.name) > most) {
      most = shape.dim(slot.name);
      best = slot.name;
    }
  }
  return best;
}

std::optional<Shape> resized(const ops::Op& op, const Shape& shape, std::string_view dim, double n) {
  Shape other = shape;
  other.set(dim, static_cast<std::int64_t>(n));
  // A call on fewer rows than results wanted of it asks for all of them.
  const auto* k = other.find("k");
  if (k != nullptr && dim == "N") other.set("k", std::min(other.dim("k"), static_cast<std::int64_t>(n)));
  auto completed = ops::complete(op, other);
  if (!completed.ok() || !ops::resolve(op, *completed).ok()) return {};
  return *std::move(completed);
}

Result<Subject> subject_of(const Options& options) {
  Names given;
  for (const char* name : {"suite", "results", "profile"}) {
    if (options.has(name)) given.push_back(fmt::format("--{}", name));
  }
  if (!options.user_commands().empty()) given.emplace_back("a command");
  if (given.size() > 1) {
    return Error{Code::usage, fmt::format("{} and {} exclude each other", given[0], given[1]),
                 "give one of them"};
  }
  // Recorded or read later, when the machine is known (cli/profile/subject.h).
  if (options.has("profile") || !options.user_commands().empty()) return Subject{};
  if (options.has("results")) return of_results(options.text("results"));
  return of_suite(options.has("suite") ? options.text("suite") : std::string(kDemo));
}

Names row_names(const Subject& subject) {
  Names names;
  for (const model::PlanItem& item : subject.input.items) names.push_back(item.name);
  return names;
}

Status check_row(const Options& options, const Names& rows) {
  if (!options.has("explain")) return {};
  const std::string name = options.text("explain");
  if (std::find(rows.begin(), rows.end(), name) != rows.end()) return {};
  return Error{Code::not_found, fmt::format("the plan has no row '{}'", name), suggestion(name, rows)};
}

Result<std::vector<Plan>> plans_of(const Subject& subject, const Stock& stock,
                                   const std::vector<Target>& targets, const Options& options) {
  std::vector<Plan> plans;
  const auto decide = [&](const Target* target) -> Status {
    FULCRUM_TRY(const model::Model model, model_of(stock, target));
    model::PlanInput input = subject.input;
    if (subject.equal_calls) share_by_time(model, input);
    if (options.has("regime")) {
      FULCRUM_TRY(input.use.regime, regime_of_gpu(options.text("regime"), "a plan"));
    }
    if (target != nullptr) input.price_per_hour = target->price;
    plans.push_back(model::plan(model, input));
    plans.back().notes.insert(plans.back().notes.begin(), subject.notes.begin(), subject.notes.end());
    if (subject.equal_calls)
      plans.back().notes.emplace_back("Nobody said how often each runs: shares are of one call of each.");
    return {};
  };
  for (const Target& target : targets) FULCRUM_CHECK(decide(&target));
  if (targets.empty()) FULCRUM_CHECK(decide(nullptr));
  return plans;
}

}  // namespace fulcrum::cli
