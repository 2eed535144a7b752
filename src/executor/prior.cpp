// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See prior.h.
#include "executor/prior.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "executor/candidates.h"
#include "executor/prior_machine.h"
#include "executor/shapes.h"

namespace fulcrum::executor {
namespace {

constexpr int kDraws = 14, kPriorSizes = 16;
constexpr double kShortestPrior = 2e-8, kLongestPrior = 0.05;  // nominal seconds
// What closed forms were off by in ln, calls of 5 us and more of all ops on a 2-core EPYC: 1.2 with a profile.
constexpr double kProfileSigma = 1.2, kAssumedSigma = 1.3;
// A variant that nobody measured is taken for slower than the best of its place: tries come from the tracker.
constexpr double kUnknownVariant = 1.2, kOtherCpuKernel = 1.05;
// A library's plan that reads operands is made for every call on plain memory (oneDNN's convolutions: 0.2 to 1.4 ms).
constexpr double kPlanSeconds = 0.5e-3;

// Variants of a device's kernels against the fastest one, from shipped rows that share shape and regime.
std::map<std::string, double> variant_factors(std::span<const Measurement> rows) {
  std::map<std::string, std::vector<const Measurement*>> groups;
  for (const Measurement& row : rows) {
    if (row.regime == Regime::resident && row.seconds.median > 0)
      groups[row.op + "/" + row.precision + "/" + row.shape.text()].push_back(&row);
  }
  std::map<std::string, std::pair<double, int>> sums;
  for (const auto& [key, group] : groups) {
    double best = INFINITY;
    for (const Measurement* row : group) best = std::min(best, row->seconds.median);
    for (const Measurement* row : group) {
      auto& [sum, count] = sums[row->op + "/" + row->variant];
      sum += std::log(row->seconds.median / best);
      ++count;
    }
  }
  std::map<std::string, double> factors;
  for (const auto& [variant, sum] : sums) factors[variant] = std::exp(sum.first / sum.second);
  return factors;
}

}  // namespace

struct Prior::State {
  explicit State(const backends::Backend* device)
      : machine(prior_machine(device)),
        model(machine.host, machine.host_calibration, machine.gpu, machine.gpu_calibration),
        factors(variant_factors(machine.rows)) {}
  double host_seconds(const model::Call& call, const Candidate& candidate) const;
  double device_seconds(const model::Call& call, const Candidate& candidate) const;
  PriorMachine machine;
  model::Model model;
  std::map<std::string, double> factors;
  std::string description;
};

double Prior::State::host_seconds(const model::Call& call, const Candidate& candidate) const {
  if (candidate.kernel.backend().name() == "scalar") return model.cpu_scalar(call).seconds;
  const double seconds = model.cpu(call, candidate.threads).seconds;
  const bool plain = candidate.kernel.variant() == "default" || candidate.kernel.variant().front() == 't';
  const fulcrum_kernel& entry = candidate.kernel.entry();
  const bool plans = entry.plan_reads != 0 && !entry.plan_for_any;
  return seconds * (plain ? 1 : kOtherCpuKernel) + (plans ? kPlanSeconds : 0);
}

double Prior::State::device_seconds(const model::Call& call, const Candidate& candidate) const {
  model::Call priced = call;
  priced.precision = candidate.kernel.precision();
  const Prediction resident = model.gpu(priced, {.regime = Regime::resident});
  if (!resident.valid()) return 0;
  const auto found = factors.find(fmt::format("{}/{}", call.op, candidate.kernel.variant()));
  if (found != factors.end()) return resident.seconds * found->second;
  return resident.seconds * (candidate.kernel.variant() == "default" ? 1 : kUnknownVariant);
}

Prior::Prior(const backends::Backend* device) : state_(std::make_unique<State>(device)) {
  const PriorMachine& machine = state_->machine;
  state_->description =
      machine.host_known ? "closed forms over this machine's profile" : "closed forms over an assumed CPU";
  if (machine.gpu) state_->description += fmt::format(", shipped profile {}", machine.gpu->id);
  state_->description += "; not calibrated";
}

Prior::~Prior() = default;

const Costs& Prior::costs() const { return state_->machine.costs; }
const std::string& Prior::description() const { return state_->description; }

OpPoints Prior::points_of(const ops::Op& op, std::span<const Candidate> candidates) const {
  OpPoints points{.points = {},
                  .grade = state_->machine.host_known ? Grade::c : Grade::d,
                  .sigma = state_->machine.host_known ? kProfileSigma : kAssumedSigma};
  ShapeSource source(op);
  std::vector<Args> shapes;
  const FeatureMap map(op);
  for (const Args& args : source.standard()) {
    if (!map.is_line() && nominal_seconds(op, args) <= kLongestPrior) shapes.push_back(args);
  }
  for (int i = 0; i < (map.is_line() ? kPriorSizes : kDraws); ++i) {
    const double share = static_cast<double>(i) / (kPriorSizes - 1);
    if (map.is_line() && !source.empty())
      shapes.push_back(source.scaled(source.standard().front(),
                                     kShortestPrior * std::pow(kLongestPrior / kShortestPrior, share)));
    else if (const auto drawn = source.draw(kShortestPrior, kLongestPrior))
      shapes.push_back(*drawn);
  }
  for (const Args& args : shapes) {
    Shape shape = ops::shape_of(op, args);
    if (!op.dtypes.empty()) shape.dtype = op.dtypes.front();
    const auto call = model::call_of(op.name, shape);
    if (!call.ok()) continue;
    Point point{.args = args, .dtype = shape.dtype, .samples = {}};
    for (const Candidate& candidate : candidates) {
      const double seconds = candidate.place == Place::host ? state_->host_seconds(*call, candidate)
                                                            : state_->device_seconds(*call, candidate);
      point.samples.push_back(Sample{.seconds = std::isfinite(seconds) ? seconds : 0});
    }
    points.points.push_back(std::move(point));
  }
  return points;
}

TableData prior_data(const backends::Backend* device) {
  const Prior prior(device);
  TableData data{.costs = prior.costs(), .ops = {}, .description = prior.description()};
  for (const ops::Op* op : ops::all()) {
    if (op->is_probe()) {
      data.ops.emplace_back();
      continue;
    }
    data.ops.push_back(prior.points_of(*op, candidates_of(*op, device)));
  }
  return data;
}

}  // namespace fulcrum::executor
