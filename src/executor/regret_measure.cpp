// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Held-out calls for bench --regret: of every calibrated op, each timed in every way in interleaved rounds, in several
// visits and one before them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "executor/candidates.h"
#include "executor/engine.h"
#include "executor/explore.h"
#include "executor/guard_cost.h"
#include "executor/regret.h"
#include "executor/regret_calls.h"
#include "executor/regret_rules.h"
#include "executor/rounds.h"
#include "executor/store.h"
#include "executor/workbench.h"

namespace fulcrum::executor {
namespace {

constexpr double kNotWorthScoring = 8;
// Behind two threads of oneDNN, which spin for a while, ours came to run after 10 to 20 calls of 8 us, now and then after
// 60: a call that was as slow from the first look on counted as settled, at 14 us, as 57 to 102 of 305 products did.
constexpr double kLookSeconds = 600e-6;

class Meter {
 public:
  Meter(const Executor& executor, const RegretConfig& config)
      : engine_(executor.engine()),
        config_(config),
        clock_(engine_.options().clock ? *engine_.options().clock : measure::steady_clock()),
        device_(engine_.device() ? &engine_.device()->backend() : nullptr),
        bench_(kScoreBytes),
        pinned_(device_ ? kScoreBytes : 1, device_ ? &device_->table() : nullptr),
        guard_seconds_(guard_cost(executor, clock_)),
        rules_(device_, engine_.options()),
        of_rules_(rules_.names().size()) {}

  Result<RegretReport> run();

 private:
  /// One call and all that is known of it so far.
  struct Trial {
    const OpTable* table;
    int index;  // of the op
    RegretCall call;
    RegretTrial times;
    RegretRow row;
  };
  struct Source {
    const OpTable* table;
    int index;
    ShapeSource shapes;
  };
  static Error stopped() {
    return Error{Code::interrupted, "interrupted before the regret was known", "run it again"};
  }
  Result<std::vector<Source>> sources() const;
  Result<std::vector<Trial>> visits_before(double end);
  bool visit(const Trial& trial, std::vector<std::vector<double>>& seconds);
  Status visit_all(std::vector<Trial>& trials, double begin);
  bool decide(Trial& trial);
  void learn(Trial& trial);
  void finish(Trial& trial);
  Result<std::unique_ptr<Subject>> subject(const Candidate& candidate, const Args& args, Case which,
                                           const std::shared_ptr<DeviceOperands>& operands) const;
  int choose(const OpTable& table, const Args& args, const Traffic& traffic, Mask allowed, RegretRow& row,
             double& overhead) const;

  Engine& engine_;
  const RegretConfig& config_;
  const measure::Clock& clock_;
  const backends::Backend* device_;
  Workbench bench_, pinned_;  // where host data lies, and where that of buffers does
  double guard_seconds_;
  RegretRules rules_;
  Tracker blank_;
  std::vector<double> regrets_, after_, hindsight_, before_;
  std::vector<Band> bands_;
  std::vector<std::vector<double>> of_rules_;
  std::map<std::string_view, int> classes_;
};

Result<std::unique_ptr<Subject>> Meter::subject(const Candidate& candidate, const Args& args, Case which,
                                                const std::shared_ptr<DeviceOperands>& operands) const {
  const bool resident = which == Case::resident;
  if (candidate.place == Place::device && !resident) return make_trip_subject(candidate, operands);
  // Operands of host calls lie in plain memory, of which nobody knows whether it is as it was.
  if (!resident && candidate.kernel.entry().plan_reads != 0) return make_plain_subject(candidate, args);
  const bool comes_home = candidate.place == Place::host && resident;
  return comes_home ? make_home_subject(candidate, args, operands, clock_)
                    : make_subject(candidate, args, operands, clock_);
}

int Meter::choose(const OpTable& table, const Args& args, const Traffic& traffic, Mask allowed,
                  RegretRow& row, double& overhead) const {
  const auto candidates = table.candidates();
  const OpTable::Guard guard = table.guard();
  const double elements = FeatureMap(table.op()).of(args).elements();
  if (guard.kernel && elements < static_cast<double>(guard.below) && traffic.home_bytes <= 0) {
    row.tier = "guard";
    overhead = guard_seconds_;
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

/// Adds the times of every way in one visit. False: the call cannot be timed here.
bool Meter::visit(const Trial& trial, std::vector<std::vector<double>>& seconds) {
  const ops::Op& op = trial.table->op();
  const DType dtype = op.dtypes.empty() ? DType::f32 : op.dtypes.front();
  const Case which = trial.call.which;
  const auto bound = (which == Case::resident ? pinned_ : bench_).bind(op, trial.call.args, dtype);
  if (!bound.ok()) return false;
  const Mask possible = possible_of(*trial.table, *bound);
  std::shared_ptr<DeviceOperands> operands;
  if (device_) {
    auto made = DeviceOperands::make(*device_, op, *bound, dtype);
    if (!made.ok()) return false;
    operands = *made;
  }
  const auto candidates = trial.table->candidates();
  std::vector<std::unique_ptr<Subject>> owned(candidates.size());
  std::vector<Subject*> subjects(candidates.size(), nullptr);
  std::vector<int> groups;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    groups.push_back(candidates[c].place == Place::device);
    if (!(possible >> c & 1)) continue;
    auto made = subject(candidates[c], *bound, which, operands);
    if (!made.ok()) continue;
    owned[c] = std::move(*made);
    subjects[c] = owned[c].get();
  }
  const auto times = time_rounds(subjects, RoundsConfig{.rounds = std::max(2, config_.rounds),
                                                        .look_seconds = kLookSeconds,
                                                        .hopeless = kNotWorthScoring,
                                                        .groups = groups,
                                                        .clock = &clock_});
  seconds.resize(candidates.size());
  for (std::size_t c = 0; c < candidates.size(); ++c)
    seconds[c].insert(seconds[c].end(), times[c].begin(), times[c].end());
  return true;
}

/// What the executor and the rules take; false: a way that has no times.
bool Meter::decide(Trial& trial) {
  const OpTable& table = *trial.table;
  const ops::Op& op = table.op();
  const Traffic traffic = traffic_of(op, trial.call.args, trial.call.which);
  RegretTrial& times = trial.times;
  times.band = trial.call.band;
  times.chosen = choose(table, trial.call.args, traffic, default_mask(op, table.candidates()), trial.row,
                        times.overhead_seconds);
  times.rules = rules_.answers(table, trial.call.args, traffic, possible_of(table, trial.call.args));
  for (const Price& price : table.prices(trial.call.args, traffic)) {
    RegretRow::Way way;
    way.name = table.candidates()[trial.row.ways.size()].kernel.name();
    way.predicted_seconds = price.seconds;
    trial.row.ways.push_back(std::move(way));
  }
  return times.chosen >= 0 && !times.before[static_cast<std::size_t>(times.chosen)].empty();
}

/// As a program that makes this call over and over would find it: the tracker's own way from the table's answer on.
void Meter::learn(Trial& trial) {
  const OpTable& table = *trial.table;
  const Args& args = trial.call.args;
  const Traffic traffic = traffic_of(table.op(), args, trial.call.which);
  const Asked asked{table, trial.index, args, traffic, default_mask(table.op(), table.candidates())};
  for (const std::size_t half : {0, 1}) {
    if (trial.row.tier == "guard") {  // such calls are neither timed nor tried
      trial.times.after[half] = trial.times.chosen;
      continue;
    }
    Tracker tracker;
    const Learned learned = after_calls(asked, trial.times.seconds[half], config_.learned_calls, tracker,
                                        static_cast<std::size_t>(config_.rounds));
    trial.times.after[half] = learned.choice.candidate == 255 ? -1 : learned.choice.candidate;
    trial.times.explored_seconds[half] = learned.explored_seconds;
  }
}

void Meter::finish(Trial& trial) {
  learn(trial);
  const auto candidates = trial.table->candidates();
  const RegretResult result = score(trial.times);
  RegretRow& row = trial.row;
  row.op = trial.table->op().name;
  row.shape = ops::shape_of(trial.table->op(), trial.call.args).text();
  row.residency = trial.call.which == Case::resident ? "resident" : "host";
  row.chosen = candidates[static_cast<std::size_t>(trial.times.chosen)].kernel.name();
  row.oracle = candidates[static_cast<std::size_t>(result.oracle)].kernel.name();
  row.band = trial.times.band;
  row.regret = result.regret;
  row.regret_after = result.after;
  row.regret_before = result.before;
  row.chosen_seconds = result.chosen_seconds;
  row.oracle_seconds = result.oracle_seconds;
  row.overhead_seconds = trial.times.overhead_seconds;
  std::vector<RegretRow::Way> timed;
  for (std::size_t c = 0; c < row.ways.size(); ++c) {
    const auto &first = trial.times.seconds[0][c], &second = trial.times.seconds[1][c],
               &before = trial.times.before[c];
    if (first.empty() && second.empty()) continue;
    row.ways[c].first_seconds = first.empty() ? 0 : stats::median(first);
    row.ways[c].second_seconds = second.empty() ? 0 : stats::median(second);
    row.ways[c].before_seconds = before.empty() ? 0 : stats::median(before);
    timed.push_back(std::move(row.ways[c]));
  }
  row.ways = std::move(timed);
  ++classes_[class_of(candidates[static_cast<std::size_t>(result.oracle)])];
  regrets_.push_back(result.regret);
  after_.push_back(result.after);
  hindsight_.push_back(result.hindsight);
  before_.push_back(result.before);
  bands_.push_back(row.band);
  for (std::size_t r = 0; r < result.rules.size(); ++r) of_rules_[r].push_back(result.rules[r]);
}

Result<std::vector<Meter::Source>> Meter::sources() const {
  std::vector<Source> sources;
  const auto ops = ops::all();
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpTable* table = engine_.table_of(static_cast<int>(i));
    const bool asked = config_.ops.empty() ? !ops[i]->needs_prepared && !ops[i]->is_probe()
                                           : std::find(config_.ops.begin(), config_.ops.end(),
                                                       ops[i]->name) != config_.ops.end();
    if (!table || !asked || table->candidates().size() < 2) continue;
    sources.push_back({table, static_cast<int>(i), ShapeSource(*ops[i], config_.seed + i)});
  }
  if (sources.empty())
    return Error{Code::usage, "no op has two ways to run here", "name ops that have: `fulcrum ops`"};
  return sources;
}

/// The visit before the two, of new calls, until there are enough of them.
Result<std::vector<Meter::Trial>> Meter::visits_before(double end) {
  FULCRUM_TRY(std::vector<Source> sources, sources());
  std::vector<Trial> trials;
  for (int i = 0; static_cast<int>(trials.size()) < config_.points && i < 4 * config_.points; ++i) {
    if (config_.interrupted && config_.interrupted()) return stopped();
    if (clock_.now() > end) break;
    Source& source = sources[static_cast<std::size_t>(i) % sources.size()];
    const auto lap = static_cast<std::size_t>(i) / sources.size();
    const Case which = !device_ ? Case::cpu_only : lap / 2 % 2 == 0 ? Case::pageable : Case::resident;
    const auto call = draw_call(*source.table, source.shapes, which, lap % 2 == 0);
    if (!call) continue;
    Trial trial{.table = source.table, .index = source.index, .call = *call, .times = {}, .row = {}};
    if (!visit(trial, trial.times.before) || !decide(trial)) continue;
    trials.push_back(std::move(trial));
    if (config_.progress)
      config_.progress(static_cast<int>(trials.size()), (config_.visits + 1) * config_.points);
  }
  return trials;
}

/// All calls once, then all once more, and so on; the halves take turns.
Status Meter::visit_all(std::vector<Trial>& trials, double begin) {
  const auto count = static_cast<int>(trials.size());
  int done = count;
  for (int number = 0; number < config_.visits; ++number) {
    for (Trial& trial : trials) {
      if (config_.interrupted && config_.interrupted()) return stopped();
      if (clock_.now() - begin > config_.budget_seconds) return {};
      visit(trial, trial.times.seconds[static_cast<std::size_t>(number) % 2]);
      if (config_.progress) config_.progress(++done, (config_.visits + 1) * count);
    }
  }
  return {};
}

Result<RegretReport> Meter::run() {
  RegretReport report;
  report.machine = key_of(device_).text();
  report.table = engine_.table().describe();
  report.measured_utc = utc_now();
  report.seed = config_.seed;
  const double begin = clock_.now();
  // Each visit takes as long as the one before it, or a little less.
  FULCRUM_TRY(std::vector<Trial> trials,
              visits_before(begin + config_.budget_seconds / (config_.visits + 1)));
  FULCRUM_CHECK(visit_all(trials, begin));
  for (Trial& trial : trials) {
    if (trial.times.seconds[0].empty() || trial.times.seconds[1].empty()) continue;
    finish(trial);
    report.rows.push_back(std::move(trial.row));
  }
  if (regrets_.empty())
    return Error{Code::inconclusive, "no call could be measured within the budget", "raise --budget"};
  report.complete = static_cast<int>(regrets_.size()) >= config_.points;
  report.executor = summarise(regrets_, bands_);
  report.after = summarise(after_, bands_);
  report.after_calls = config_.learned_calls;
  report.hindsight = summarise(hindsight_, bands_);
  report.timed_before = summarise(before_, bands_);
  for (std::size_t r = 0; r < of_rules_.size(); ++r) {
    if (std::any_of(of_rules_[r].begin(), of_rules_[r].end(), [](double regret) { return regret > 0; }))
      report.baselines.push_back(
          {rules_.names()[r].first, rules_.names()[r].second, summarise(of_rules_[r], bands_)});
  }
  for (const auto& [name, number] : classes_) report.classes.emplace_back(name, number);
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
