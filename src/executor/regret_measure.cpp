// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Held-out calls for bench --regret: drawn from the sizes of every calibrated op, half of them where the answer is about
// to change, each timed in every way in interleaved rounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/candidates.h"
#include "executor/engine.h"
#include "executor/op_table.h"
#include "executor/regret.h"
#include "executor/regret_rules.h"
#include "executor/rounds.h"
#include "executor/shapes.h"
#include "executor/store.h"
#include "executor/workbench.h"

namespace fulcrum::executor {
namespace {

constexpr double kShortestScored = 5e-7, kLongestScored = 5e-3;  // nominal seconds
constexpr std::int64_t kScoreBytes = std::int64_t{128} << 20;
constexpr int kDrawsForBand = 24;
constexpr double kNotWorthScoring = 8;
constexpr double kScoreGuardSeconds = 3e-9;  // a compare, predicted: see bench/dispatch_cost

std::string_view class_of(const Candidate& candidate) {
  if (candidate.place == Place::device) return "device";
  return candidate.threads > 1 ? "threads" : "one thread";
}

/// Whether the best of another class is predicted within a factor of two.
bool in_band(const OpTable& table, const std::vector<Price>& prices, Mask possible) {
  int best = -1;
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if (!(possible >> c & 1)) continue;
    if (best < 0 || prices[c].seconds < prices[static_cast<std::size_t>(best)].seconds)
      best = static_cast<int>(c);
  }
  if (best < 0) return false;
  const auto candidates = table.candidates();
  for (std::size_t c = 0; c < prices.size(); ++c) {
    if ((possible >> c & 1) &&
        class_of(candidates[c]) != class_of(candidates[static_cast<std::size_t>(best)]) &&
        prices[c].seconds <= 2 * prices[static_cast<std::size_t>(best)].seconds)
      return true;
  }
  return false;
}

Mask possible_of(const OpTable& table, const Args& args) {
  Mask possible = 0;
  const auto candidates = table.candidates();
  const Mask allowed = default_mask(table.op(), candidates);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if ((allowed >> c & 1) && candidates[c].kernel.supports(args)) possible |= Mask{1} << c;
  }
  return possible;
}

/// Inputs that live on the device come home before a CPU kernel reads them.
class HomeSubject final : public Subject {
 public:
  HomeSubject(std::unique_ptr<Subject> inner, std::shared_ptr<DeviceOperands> operands)
      : inner_(std::move(inner)), operands_(std::move(operands)) {
    plan_seconds = inner_->plan_seconds;
  }
  Status run(std::int64_t count) override {
    for (std::int64_t i = 0; i < count; ++i) {
      FULCRUM_CHECK(operands_->copy_home());
      FULCRUM_CHECK(inner_->run(1));
    }
    return {};
  }

 private:
  std::unique_ptr<Subject> inner_;
  std::shared_ptr<DeviceOperands> operands_;
};

class Meter {
 public:
  Meter(const Executor& executor, const RegretConfig& config)
      : engine_(executor.engine()),
        config_(config),
        clock_(engine_.options().clock ? *engine_.options().clock : measure::steady_clock()),
        device_(engine_.device() ? &engine_.device()->backend() : nullptr),
        bench_(kScoreBytes),
        pinned_(device_ ? kScoreBytes : 1, device_ ? &device_->table() : nullptr),
        rules_(device_, engine_.options()) {}

  Result<RegretReport> run();

 private:
  struct Draw {
    Args args{};
    bool in_band = false;
  };
  std::optional<Draw> draw(const OpTable& table, ShapeSource& source, Case which, bool wants_band) const;
  std::optional<RegretTrial> measure(const OpTable& table, const Draw& draw, Case which, RegretRow& row);
  Result<std::unique_ptr<Subject>> subject(const Candidate& candidate, const Args& args, Case which,
                                           const std::shared_ptr<DeviceOperands>& operands) const;
  int choose(const OpTable& table, const Args& args, const Traffic& traffic, Mask allowed, RegretRow& row,
             double& overhead) const;

  Engine& engine_;
  const RegretConfig& config_;
  const measure::Clock& clock_;
  const backends::Backend* device_;
  Workbench bench_, pinned_;  // where host data lies, and where that of buffers does
  RegretRules rules_;
  Tracker blank_;
};

std::optional<Meter::Draw> Meter::draw(const OpTable& table, ShapeSource& source, Case which,
                                       bool wants_band) const {
  std::optional<Draw> found;
  const DType dtype = table.op().dtypes.empty() ? DType::f32 : table.op().dtypes.front();
  for (int i = 0; i < kDrawsForBand; ++i) {
    const auto args = source.draw(kShortestScored, kLongestScored);
    if (!args || Workbench::bytes_of_call(table.op(), *args, dtype) > bench_.bytes()) continue;
    if (table.op().list_lengths && table.op().list_lengths(*args) >= 0) continue;
    const Mask possible = possible_of(table, *args);
    if (!possible) continue;
    const auto prices = table.prices(*args, traffic_of(table.op(), table.op().work(*args), which));
    found = Draw{*args, in_band(table, prices, possible)};
    if (found->in_band == wants_band) break;
  }
  return found;
}

Result<std::unique_ptr<Subject>> Meter::subject(const Candidate& candidate, const Args& args, Case which,
                                                const std::shared_ptr<DeviceOperands>& operands) const {
  const bool resident = which == Case::resident;
  if (candidate.place == Place::device && !resident) return make_trip_subject(candidate, operands);
  FULCRUM_TRY(auto plain, make_subject(candidate, args, operands, clock_));
  if (candidate.place == Place::device || !resident) return plain;
  return std::unique_ptr<Subject>(std::make_unique<HomeSubject>(std::move(plain), operands));
}

int Meter::choose(const OpTable& table, const Args& args, const Traffic& traffic, Mask allowed,
                  RegretRow& row, double& overhead) const {
  const auto candidates = table.candidates();
  const OpTable::Guard guard = table.guard();
  double elements = 1;
  for (int i = 0; i < FeatureMap(table.op()).dims(); ++i) elements *= static_cast<double>(args.dim[i]);
  if (guard.kernel && elements < static_cast<double>(guard.below) && traffic.home_bytes <= 0) {
    row.tier = "guard";
    overhead = kScoreGuardSeconds;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (&candidates[c].kernel.entry() == guard.kernel) return static_cast<int>(c);
    }
  }
  const Choice choice = table.choose(args, traffic, allowed, blank_);
  static constexpr std::string_view kTiers[] = {"guard", "seen", "grid", "model", "pinned"};
  row.tier = kTiers[static_cast<std::size_t>(choice.tier)];
  constexpr int kCalls = 256;
  std::vector<double> times;
  for (int round = 0; round < 5; ++round) {
    const double begin = clock_.now();
    for (int i = 0; i < kCalls; ++i) {
      const Choice again = table.choose(args, traffic, allowed, blank_);
      asm volatile("" ::"r"(again.candidate) : "memory");
    }
    times.push_back((clock_.now() - begin) / kCalls);
  }
  overhead = stats::median(times);
  return choice.candidate == 255 ? -1 : choice.candidate;
}

std::optional<RegretTrial> Meter::measure(const OpTable& table, const Draw& draw, Case which,
                                          RegretRow& row) {
  const ops::Op& op = table.op();
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  const auto bound = (which == Case::resident ? pinned_ : bench_).bind(op, draw.args, dtype);
  if (!bound.ok()) return {};
  const Mask possible = possible_of(table, *bound);
  std::shared_ptr<DeviceOperands> operands;
  if (device_) {
    auto made = DeviceOperands::make(*device_, op, *bound, dtype);
    if (!made.ok()) return {};
    operands = *made;
  }
  const auto candidates = table.candidates();
  std::vector<std::unique_ptr<Subject>> owned(candidates.size());
  std::vector<Subject*> subjects(candidates.size(), nullptr);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    if (!(possible >> c & 1)) continue;
    auto made = subject(candidates[c], *bound, which, operands);
    if (!made.ok()) continue;
    owned[c] = std::move(*made);
    subjects[c] = owned[c].get();
  }
  RegretTrial trial;
  trial.in_band = draw.in_band;
  std::vector<int> groups;
  for (const Candidate& candidate : candidates) groups.push_back(candidate.place == Place::device);
  trial.seconds = time_rounds(
      subjects,
      RoundsConfig{
          .rounds = config_.rounds, .hopeless = kNotWorthScoring, .groups = groups, .clock = &clock_});
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    for (double& seconds : trial.seconds[c]) seconds += subjects[c]->plan_seconds;
  }
  const Work work = op.work(draw.args);
  const Traffic traffic = traffic_of(op, work, which);
  trial.chosen = choose(table, draw.args, traffic, default_mask(op, candidates), row, trial.overhead_seconds);
  trial.rules = rules_.answers(table, draw.args, traffic, possible);
  if (trial.chosen < 0 || trial.seconds[static_cast<std::size_t>(trial.chosen)].empty()) return {};
  return trial;
}

Result<RegretReport> Meter::run() {
  struct Source {
    const OpTable* table;
    ShapeSource shapes;
  };
  std::vector<Source> sources;
  const auto ops = ops::all();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpTable* table = engine_.table_of(static_cast<int>(i));
    const bool asked = config_.ops.empty() ? !ops[i]->needs_prepared && !ops[i]->is_probe()
                                           : std::find(config_.ops.begin(), config_.ops.end(),
                                                       ops[i]->name) != config_.ops.end();
    if (!table || !asked || table->candidates().size() < 2) continue;
    sources.push_back({table, ShapeSource(*ops[i], config_.seed + i)});
  }
  if (sources.empty())
    return Error{Code::usage, "no op has two ways to run here", "name ops that have: `fulcrum ops`"};
  RegretReport report;
  report.machine = key_of(device_).text();
  report.table = engine_.table().describe();
  report.measured_utc = utc_now();
  std::vector<double> regrets;
  std::vector<bool> band;
  std::vector<std::vector<double>> rules(rules_.names().size());
  std::map<std::string_view, int> classes;
  const double begin = clock_.now();
  for (int i = 0; static_cast<int>(regrets.size()) < config_.points && i < 4 * config_.points; ++i) {
    if (config_.interrupted && config_.interrupted())
      return Error{Code::interrupted, "interrupted before the regret was known", "run it again"};
    if (clock_.now() - begin > config_.budget_seconds) {
      report.complete = false;
      break;
    }
    Source& source = sources[static_cast<std::size_t>(i) % sources.size()];
    const auto lap = static_cast<std::size_t>(i) / sources.size();
    const Case which = !device_ ? Case::cpu_only : lap / 2 % 2 == 0 ? Case::pageable : Case::resident;
    const auto drawn = draw(*source.table, source.shapes, which, lap % 2 == 0);
    if (!drawn) continue;
    RegretRow row;
    const auto trial = measure(*source.table, *drawn, which, row);
    if (!trial) continue;
    const RegretResult result = score(*trial);
    const auto candidates = source.table->candidates();
    row.op = source.table->op().name;
    row.shape = ops::shape_of(source.table->op(), drawn->args).text();
    row.residency = which == Case::resident ? "resident" : "host";
    row.chosen = candidates[static_cast<std::size_t>(trial->chosen)].kernel.name();
    row.oracle = candidates[static_cast<std::size_t>(result.oracle)].kernel.name();
    row.in_band = trial->in_band;
    row.regret = result.regret;
    row.chosen_seconds = result.chosen_seconds;
    row.oracle_seconds = result.oracle_seconds;
    row.overhead_seconds = trial->overhead_seconds;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      if (!trial->seconds[c].empty())
        row.ways.emplace_back(candidates[c].kernel.name(), stats::median(trial->seconds[c]));
    }
    ++classes[class_of(candidates[static_cast<std::size_t>(result.oracle)])];
    regrets.push_back(result.regret);
    band.push_back(trial->in_band);
    for (std::size_t r = 0; r < rules.size(); ++r) rules[r].push_back(result.rules[r]);
    report.rows.push_back(std::move(row));
    if (config_.progress)
      config_.progress(static_cast<int>(regrets.size()), config_.points, stats::mean(regrets));
  }
  if (regrets.empty())
    return Error{Code::inconclusive, "no call could be measured within the budget", "raise --budget"};
  report.complete = report.complete && static_cast<int>(regrets.size()) >= config_.points;
  report.executor = summarise(regrets, band);
  for (std::size_t r = 0; r < rules.size(); ++r) {
    if (std::any_of(rules[r].begin(), rules[r].end(), [](double regret) { return regret > 0; }))
      report.baselines.push_back(
          {rules_.names()[r].first, rules_.names()[r].second, summarise(rules[r], band)});
  }
  for (const auto& [name, count] : classes) report.classes.emplace_back(name, count);
  report.seconds = clock_.now() - begin;
  return report;
}

}  // namespace

Result<RegretReport> measure_regret(const Options& options, const RegretConfig& config) {
  for (const std::string& name : config.ops) FULCRUM_CHECK(ops::find(name));
  FULCRUM_TRY(const Executor executor, Executor::make(options));
  return Meter(executor, config).run();
}

}  // namespace fulcrum::executor
