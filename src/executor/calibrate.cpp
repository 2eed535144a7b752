// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calibration: what moving data costs, then every op at few shapes, each with its share of the time that is left.
#include <fmt/format.h>
#include <fulcrum/machine.h>

#include <algorithm>

#include "executor/calibrate_costs.h"
#include "executor/calibrate_op.h"
#include "executor/candidates.h"
#include "executor/prior.h"
#include "executor/store.h"

namespace fulcrum::executor {
namespace {

constexpr std::int64_t kBenchBytes = std::int64_t{96} << 20;

constexpr double kFirstPass = 0.55;  // of the budget
// Ops whose calls take long have few shapes after the first pass: in the second their share grows as far as this.
constexpr double kEnoughShapes = 40, kMostShare = 3;

struct Job {
  const ops::Op* op = nullptr;
  std::size_t index = 0;
  std::vector<Candidate> candidates;
  double weight = 1;  // share of the time
};

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

}  // namespace

Result<std::shared_ptr<const Table>> calibrate_table(const backends::Backend* device, const Options& options,
                                                     const CalibrateConfig& config) {
  FULCRUM_TRY(const std::vector<Job> jobs, jobs_of(device, config));
  const measure::Clock& clock = options.clock ? *options.clock : measure::steady_clock();
  const double begin = clock.now();
  Stored stored;
  stored.known.resize(ops::all().size());
  stored.data.ops.resize(stored.known.size());
  if (device) {
    FULCRUM_TRY(stored.data.costs, measure_costs(*device, clock));
  }
  measure_forks(clock, stored.data.costs);
  Workbench bench(kBenchBytes);
  const std::optional<Machine> machine = machine::known();
  const CalibrationTools tools{.device = device,
                               .bench = &bench,
                               .clock = &clock,
                               .machine = machine ? &*machine : nullptr,
                               .caches = caches_of(device),
                               .interrupted = config.interrupted};
  for (const Job& job : jobs) OpCalibration(*job.op, job.candidates, tools).touch();
  // Two passes: a disturbance that lasts through all shapes of an op in one of them is gone in the other.
  int done = 0;
  for (const bool again : {false, true}) {
    const double end = begin + config.budget_seconds * (again ? 1 : kFirstPass);
    const auto weight_of = [&](const Job& job) {
      const double shapes = static_cast<double>(stored.data.ops[job.index].points.size());
      const bool few = again && shapes > 0 && !FeatureMap(*job.op).is_line();
      return job.weight * (few ? std::clamp(kEnoughShapes / shapes, 1.0, kMostShare) : 1);
    };
    double weights = 0;
    for (const Job& job : jobs) weights += weight_of(job);
    for (const Job& job : jobs) {
      if (config.progress) config.progress(job.op->name, done++, 2 * static_cast<int>(jobs.size()));
      const double weight = weight_of(job);
      const double share = std::max(0.0, end - clock.now()) * weight / weights;
      weights -= weight;
      OpCalibration calibration(*job.op, job.candidates, tools);
      OpPoints& points = stored.data.ops[job.index];
      points = again ? calibration.look_again(std::move(points), share) : calibration.run(share);
      stored.known[job.index] = !points.points.empty();
      if (config.interrupted && config.interrupted())
        return Error{Code::interrupted, "interrupted before every op was calibrated; nothing was saved",
                     "run it again"};
    }
  }
  stored.measured_utc = utc_now();
  FULCRUM_CHECK(save_stored(device, options, stored));
  Options again = options;
  again.load_table = true;
  return load_table(device, again);
}

}  // namespace fulcrum::executor
