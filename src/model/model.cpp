// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Predictions: closed form, times what measurements say, with an interval and a grade; or the measured cell itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

constexpr double kClosedFormSigma = 0.5;  // no measurement of any op behind it
constexpr double kAssumed = 1.5;          // fields of a data sheet: interval at least this factor each way
constexpr double kTwoSided = 1.96;

Prediction prediction_of(const Formula& formula, std::string machine, std::string where, Regime regime,
                         std::string way) {
  Prediction p;
  p.machine = std::move(machine);
  p.where = std::move(where);
  p.regime = regime;
  p.way = std::move(way);
  p.missing = formula.missing;
  if (!p.missing.empty()) return p;
  p.seconds = formula.seconds;
  p.terms = formula.terms;
  p.bound = formula.bound;
  p.level = formula.level;
  if (formula.seconds > 0) p.ceiling_fraction = std::min(1.0, formula.roof_seconds / formula.seconds);
  return p;
}

// `least`: what the interval cannot reach below. Probes of a host say less about that than those of a device: 0 there.
void set_doubt(Prediction& p, double sigma, Grade grade, double least) {
  p.grade = grade;
  double factor = std::exp(kTwoSided * sigma);
  if (grade == Grade::d) factor = std::max(factor, kAssumed);
  p.low = std::min(p.seconds, std::max(p.seconds / factor, least));
  p.high = p.seconds * factor;
}

// The cell in place of the model's number; the terms stay, and one more says how far they were off.
void take_cell(Prediction& p, const Cell& cell) {
  const double off = cell.seconds - p.seconds;
  p.terms.push_back({"measured", off, fmt::format("the measured cell less the terms above"), true});
  if (p.ceiling_fraction > 0)
    p.ceiling_fraction = std::min(1.0, p.ceiling_fraction * p.seconds / cell.seconds);
  p.seconds = cell.seconds;
  p.low = std::min(cell.low, cell.seconds);
  p.high = std::max(cell.high, cell.seconds);
  p.grade = Grade::a;
  p.missing.clear();
}

// Beyond `cache_bytes` a cold call and a warm one are the same.
bool same_call(const Call& a, const Call& b, double cache_bytes = INFINITY) {
  return a.op == b.op && a.shape == b.shape && a.precision == b.precision &&
         (a.cache == b.cache || a.working_set() > cache_bytes);
}

const Cell* find_cell(const Calibration& calibration, const Call& call, int threads, bool scalar) {
  for (const Cell& cell : calibration.cells()) {
    if (cell.where == "cpu" && cell.threads == threads && (cell.backend == "scalar") == scalar &&
        same_call(cell.call, call)) {
      return &cell;
    }
  }
  return nullptr;
}

const Cell* find_cell(const Calibration& calibration, const Call& call, const GpuUse& use) {
  const Cell* found = nullptr;
  const auto& gpus = calibration.state().machine.gpus;
  const double cache = gpus.empty() ? INFINITY : static_cast<double>(gpus.front().l2_bytes);
  for (const Cell& cell : calibration.cells()) {
    if (cell.where != "gpu" || cell.regime != use.regime || !same_call(cell.call, call, cache)) continue;
    if (use.regime == Regime::reuse && cell.reuse != use.reuse) continue;
    if (!use.path.empty() && cell.path != use.path) continue;
    if (!found || cell.seconds < found->seconds) found = &cell;
  }
  return found;
}

// Fastest first; the first becomes the answer and the others its losers.
Prediction best_of(std::vector<Prediction> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Prediction& a, const Prediction& b) {
    return a.valid() != b.valid() ? a.valid() : a.seconds < b.seconds;
  });
  Prediction best = candidates.front();
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    if (candidates[i].valid()) best.losers.push_back({candidates[i].way, candidates[i].seconds});
  }
  return best;
}

std::vector<int> thread_counts(int all) {
  std::vector<int> counts;
  for (int p = 1; p < all; p *= 2) counts.push_back(p);
  counts.push_back(std::max(1, all));
  return counts;
}

std::string threads_text(int threads) {
  return threads == 1 ? "1 thread" : fmt::format("{} threads", threads);
}

Prediction host_prediction(Call call, const Machine& machine, const Calibration& calibration, int threads,
                           bool scalar, bool use_cells) {
  call.precision = host_precision(call);
  const Calibration::State& state = calibration.state();
  const Families::Key key = key_of(call, cpu_way(threads, scalar, call.cache));
  const auto rate = state.in_cache.find(fmt::format("{}/{}", call.op, threads));
  const bool in_cache = rate != state.in_cache.end() && !scalar;
  Formula formula =
      host_formula(call, machine.cpu, threads, in_cache ? rate->second : 0, scalar, state.cpu.has_own(key));
  std::optional<Residual> residual;
  if (formula.missing.empty()) residual = state.cpu.at(key, features_of(call), formula.parts());
  if (residual) correct(formula, std::exp(residual->value), residual->source);
  const double least = least_seconds(call, machine.cpu, threads);
  hold_to(formula, least, "at the roof");
  Prediction p = prediction_of(formula, machine.id, "cpu", Regime::host,
                               scalar ? "plain code, 1 thread" : threads_text(threads));
  const Cell* cell = use_cells ? find_cell(calibration, call, threads, scalar) : nullptr;
  if (p.missing.empty())
    set_doubt(p, residual ? residual->sigma : kClosedFormSigma, residual ? residual->grade : Grade::c, 0);
  if (cell) {
    take_cell(p, *cell);
    p.way += fmt::format(" ({}/{})", cell->backend, cell->variant);
  }
  return p;
}

}  // namespace

Model::Model(Machine host, Calibration host_calibration, std::optional<Machine> gpu,
             Calibration gpu_calibration)
    : host_(std::move(host)),
      host_calibration_(std::move(host_calibration)),
      gpu_(std::move(gpu)),
      gpu_calibration_(std::move(gpu_calibration)) {}

bool Model::gpu_from_data_sheet() const {
  const GpuCeilings* device = gpu();
  return device && from_data_sheet(*device);
}

Model Model::without_cells() const {
  Model copy = *this;
  copy.use_cells_ = false;
  return copy;
}

Prediction Model::cpu(const Call& call, int threads) const {
  return host_prediction(call, host_, host_calibration_, threads, false, use_cells_);
}

Prediction Model::cpu_scalar(const Call& call) const {
  return host_prediction(call, host_, host_calibration_, 1, true, use_cells_);
}

Prediction Model::cpu(const Call& call) const {
  const auto& measured = host_calibration_.state().threads;
  const auto found = measured.find(call.op);
  // Where the op was measured, thread counts that were not are no candidates: their closed form would be the optimist
  // of the round.
  const std::vector<int> counts =
      found != measured.end() && !found->second.empty() ? found->second : thread_counts(host_.cpu.threads);
  std::vector<Prediction> candidates;
  candidates.reserve(counts.size());
  for (const int threads : counts) candidates.push_back(cpu(call, threads));
  return best_of(std::move(candidates));
}

Prediction Model::gpu(const Call& call, const GpuUse& wanted) const {
  const GpuCeilings* device = gpu();
  GpuUse use = wanted;
  // These regimes leave the way of their operands to the backend.
  if (use.path.empty() && use.regime == Regime::reuse) use.path = "auto";
  if (use.path.empty() && use.regime == Regime::overlapped) use.path = "overlapped";
  const std::string id = gpu_ ? gpu_->id : std::string();
  if (!device) return prediction_of(missing_formula("no GPU profile"), id, "gpu", use.regime, use.path);
  const Calibration::State& state = gpu_calibration_.state();
  const auto paths = paths_of(use.regime);
  if (use.path.empty() && !paths.empty()) {
    GpuUse automatic = use;
    automatic.path = "auto";
    const auto measured = [&](const GpuUse& one) { return state.total.has_own(key_of(call, gpu_way(one))); };
    std::vector<Prediction> candidates, known;
    for (const std::string_view path : paths) {
      GpuUse one = use;
      one.path = path;
      candidates.push_back(gpu(call, one));
      if (measured(one)) known.push_back(candidates.back());
    }
    Prediction best = best_of(std::move(candidates));
    if (use.regime != Regime::roundtrip) return best;
    // The backend's own choice, and single paths only where they alone were measured: the least of several doubtful
    // numbers would be too low.
    Prediction answer = gpu(call, automatic);
    if (!known.empty() && !measured(automatic)) {
      known.push_back(std::move(answer));
      answer = best_of(std::move(known));
    }
    answer.losers = best.losers;
    answer.losers.insert(answer.losers.begin(), {best.way, best.seconds});
    // What looks faster is no way that the backend would take.
    std::erase_if(answer.losers, [&answer](const auto& loser) { return loser.seconds < answer.seconds; });
    return answer;
  }

  const KernelPart kernel = kernel_part(call, *device, state, use.graph);
  Formula formula = gpu_formula(call, *device, use, kernel.formula, kernel.overhead);
  Residual doubt = kernel.residual;
  if (formula.missing.empty()) {
    // Resident calls are kernel and launch; a factor on their sum counts only where the op has no device time.
    const bool resident =
        use.regime == Regime::resident &&
        (state.kernel.has_own(key_of(call, "resident")) || !state.total.has_own(key_of(call, gpu_way(use))));
    Families::Key key = key_of(call, chosen_way(use, formula));
    // Other ops in pieces say more about pieces than this op in copies.
    if (!state.total.has_own(key) && !state.total.has_class(key)) key = key_of(call, gpu_way(use));
    const auto residual = resident ? std::nullopt : state.total.at(key, features_of(call), formula.parts());
    if (residual) {
      correct(formula, std::exp(residual->value), residual->source);
      doubt = *residual;
    } else if (kernel.residual.points > 0) {
      // Launch and link are known well: only the kernel's part of the time carries the kernel's doubt.
      const double share = std::min(1.0, kernel.formula.seconds / formula.seconds);
      doubt.sigma = std::hypot(doubt.sigma * share, use.regime == Regime::resident ? 0.04 : 0.15);
      if (use.regime != Regime::resident) doubt.grade = Grade::c;
    }
  }
  const double least = least_seconds(call, *device, use);
  hold_to(formula, least, "at the roof");
  Prediction p = prediction_of(formula, id, "gpu", use.regime,
                               use.path.empty() ? std::string(to_string(use.regime)) : use.path);
  if (!formula.way.empty()) p.way += ": " + formula.way;
  if (use.graph) p.way += " graph";
  if (use.regime == Regime::reuse) p.way = fmt::format("reuse={}", use.reuse);
  if (!p.missing.empty()) return p;
  const auto& calibrated = state.machine.gpus;
  const bool elsewhere =
      gpu_from_data_sheet() || calibrated.empty() || calibrated.front().name != device->name;
  const bool borrowed = !gpu_calibration_.empty() && elsewhere;
  set_doubt(p, doubt.sigma, gpu_from_data_sheet() || borrowed ? Grade::d : doubt.grade, least);
  if (use_cells_ && !elsewhere) {
    if (const Cell* cell = find_cell(gpu_calibration_, call, use)) {
      take_cell(p, *cell);
      p.way += fmt::format(" ({}/{})", cell->backend, cell->variant);
    }
  }
  return p;
}

Prediction closed_form_cpu(const Call& call, const Machine& machine, int threads) {
  return Model(machine, {}).cpu(call, threads);
}

Prediction closed_form_gpu(const Call& call, const Machine& machine, const GpuUse& use) {
  return Model({}, {}, machine, {}).gpu(call, use);
}

}  // namespace fulcrum::model
