// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration: what moving data costs, then every op at few shapes, each with its share of the time that is left.
#include <fmt/format.h>
#include <fulcrum/backends/device.h>
#include <fulcrum/machine.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>

#include "executor/calibrate_costs.h"
#include "executor/calibrate_op.h"
#include "executor/candidates.h"
#include "executor/moves.h"
#include "executor/prior.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kBenchBytes = std::int64_t{96} << 20;

constexpr double kPasses[] = {0.45, 0.69, 0.93};  // where they end, of the budget
// Then come looks at threads that were held up, for so much of it and so many a point: what holds them up may last for
// seconds, so that all of them at the end might find it as it was.
constexpr double kHeldUpShare = 0.04, kHeldUpAtTheEnd = 0.07;
constexpr int kHeldUpLooks = 3;
// After the first pass time goes where a wrong choice would cost most, within these factors.
constexpr double kLeastFactor = 0.4, kMostFactor = 3, kEnoughShapes = 40;

struct Job {
  const ops::Op* op = nullptr;
  std::size_t index = 0;
  std::vector<Candidate> candidates;
  double weight = 1;  // share of the time
};

/// Core seconds that other programs have used since the machine was started, or other machines of the same host have taken
/// from it; 0: the system does not say.
double others_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::array<double, 8> ticks{};  // user nice system idle iowait irq softirq steal
  if (!(file >> cpu)) return 0;
  for (double& value : ticks) {
    if (!(file >> value)) return 0;
  }
  rusage own{};
  getrusage(RUSAGE_SELF, &own);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double all = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return all / static_cast<double>(sysconf(_SC_CLK_TCK)) - seconds(own.ru_utime) - seconds(own.ru_stime);
}

/// Cores that others used, beyond those that nobody here asks for.
double other_cores(double others_seconds, double wall_seconds) {
  const double spare = static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN)) - backends::usable_threads();
  const double used = wall_seconds > 0 ? others_seconds / wall_seconds - std::max(0.0, spare) : 0;
  return std::clamp(used, 0.0, static_cast<double>(backends::usable_threads()));
}

Result<std::vector<Job>> jobs_of(const backends::Backend* device, const CalibrateConfig& config) {
  const auto ops = ops::all();
  for (const std::string& name : config.ops) FULCRUM_CHECK(ops::find(name));
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const bool asked = std::find(config.ops.begin(), config.ops.end(), ops[i]->name) != config.ops.end();
    if (ops[i]->is_probe() || (!asked && !config.ops.empty())) continue;
    // Building a graph or an index can take longer than everything else together.
    if (ops[i]->needs_prepared && !asked) continue;
    Job job{.op = ops[i], .index = i, .candidates = candidates_of(*ops[i], device)};
    if (job.candidates.empty()) continue;
    const FeatureMap map(*ops[i]);
    job.weight = (map.is_line() ? 0.5 : 1) * (1 + 0.25 * static_cast<double>(job.candidates.size()));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Status not_interrupted(const CalibrateConfig& config) {
  if (!config.interrupted || !config.interrupted()) return {};
  return Error{Code::interrupted, "interrupted before every op was calibrated; nothing was saved",
               "run it again"};
}

}  // namespace

Result<std::shared_ptr<const Table>> calibrate_table(const backends::Backend* device, const Options& options,
                                                     const CalibrateConfig& config) {
  FULCRUM_TRY(const std::vector<Job> jobs, jobs_of(device, config));
  const measure::Clock& clock = options.clock ? *options.clock : measure::steady_clock();
  const double begin = clock.now();
  // The machine's own time, whatever clock the calls are timed with.
  const double wall_before = measure::steady_clock().now(), others_before = others_seconds();
  Stored stored;
  stored.known.resize(ops::all().size());
  stored.data.ops.resize(stored.known.size());
  std::vector<Costs> looks;
  std::optional<MovedCalls> moved;
  if (device && backends::has_memory(*device)) moved.emplace(*device, clock);
  const auto all_costs = [&] {
    const Costs copies = costs_of(looks);
    return moved ? as_calls_say(copies, moved->calls()) : copies;
  };
  // Ops that keep their times keep what forks took then.
  const std::optional<Stored> before = config.ops.empty() ? std::nullopt : load_stored(device, options);
  ForkWatch forks(clock, before ? before->data.costs.forks : ForkTimes{});
  const auto look_at_costs = [&]() -> Status {
    Costs costs;
    if (device) {
      FULCRUM_TRY(costs, measure_costs(*device, clock));
    }
    costs.forks = forks.usual();
    costs.fork_seconds = fork_seconds(costs.forks, backends::usable_threads());
    looks.push_back(std::move(costs));
    stored.data.costs = all_costs();
    return {};
  };
  FULCRUM_CHECK(look_at_costs());
  Workbench bench(kBenchBytes);
  const std::optional<Machine> machine = machine::known();
  const CalibrationTools tools{.device = device,
                               .bench = &bench,
                               .clock = &clock,
                               .machine = machine ? &*machine : nullptr,
                               .caches = caches_of(device),
                               .costs = &stored.data.costs,
                               .forks = &forks,
                               .interrupted = config.interrupted};
  std::deque<OpCalibration> calibrations;  // what one pass found out about plans the other knows
  for (const Job& job : jobs) calibrations.emplace_back(*job.op, job.candidates, tools).touch();
  // Several passes: a disturbance that lasts through all shapes of an op in one of them is gone in the others, and a
  // machine that is slower for some seconds at a time counts in the mean.
  int done = 0, pass = 0;
  for (const double share_of_budget : kPasses) {
    const bool again = share_of_budget > kPasses[0];
    if (again) FULCRUM_CHECK(look_at_costs());
    const double end = begin + config.budget_seconds * share_of_budget;
    std::vector<double> losses(jobs.size()), known;
    for (std::size_t number = 0; again && number < jobs.size(); ++number) {
      losses[number] = calibrations[number].expected_loss();
      if (losses[number] > 0) known.push_back(losses[number]);
    }
    const double usual = known.empty() ? 0 : stats::median(known);
    const auto weight_of = [&](std::size_t number) {
      if (losses[number] <= 0) return jobs[number].weight;
      // Few shapes do not know how wrong they are.
      const double shapes = static_cast<double>(stored.data.ops[jobs[number].index].points.size());
      const double factor = std::max(losses[number] / usual, kEnoughShapes / shapes);
      return jobs[number].weight * std::clamp(factor, kLeastFactor, kMostFactor);
    };
    double weights = 0;
    for (std::size_t number = 0; number < jobs.size(); ++number) weights += weight_of(number);
    for (std::size_t number = 0; number < jobs.size(); ++number) {
      const Job& job = jobs[number];
      if (config.progress)
        config.progress(job.op->name, done++, static_cast<int>(std::size(kPasses) * jobs.size()));
      const double weight = weight_of(number);
      const double share = std::max(0.0, end - clock.now()) * weight / weights;
      weights -= weight;
      OpCalibration& calibration = calibrations[number];
      OpPoints& points = stored.data.ops[job.index];
      points = again ? calibration.look_again(share) : calibration.run(share);
      stored.known[job.index] = !points.points.empty();
      if (moved) moved->look(*job.op, job.candidates, looks.back(), bench);
      FULCRUM_CHECK(not_interrupted(config));
    }
    stored.data.costs = all_costs();
    const bool at_the_end = share_of_budget == *std::rbegin(kPasses);
    look_at_held_up(calibrations, clock,
                    end + (at_the_end ? kHeldUpAtTheEnd : kHeldUpShare) * config.budget_seconds,
                    ++pass * kHeldUpLooks);
    FULCRUM_CHECK(not_interrupted(config));
  }
  for (std::size_t number = 0; number < jobs.size(); ++number)
    stored.data.ops[jobs[number].index] = calibrations[number].points();
  stored.measured_utc = utc_now();
  stored.other_cores =
      other_cores(others_seconds() - others_before, measure::steady_clock().now() - wall_before);
  if (stored.other_cores >= kDisturbingCores) {
    log(LogLevel::warning,
        fmt::format(
            "other programs used {:.1f} of {} cores while this was measured: threads look slower than "
            "they are; calibrate again when the machine is idle",
            stored.other_cores, backends::usable_threads()));
  }
  FULCRUM_CHECK(save_stored(device, options, stored));
  Options again = options;
  again.load_table = true;
  return load_table(device, again);
}

}  // namespace fulcrum::executor
