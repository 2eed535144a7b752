// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From measurements to cells, and from cells to their distance from the closed form.
#include "model/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

constexpr double kSlotsPerByte = 1;
// Rows of few samples have no interval of their own; runs of the same call differ by about so much (one sigma of the
// logarithm): after a handful of calls, or after one batch of many.
constexpr std::int64_t kFewSamples = 5, kFewCalls = 10;
constexpr double kFewCallsSigma = 0.1, kOneBatchSigma = 0.04;

// How much more arithmetic so many threads do than one.
double arithmetic_scaling(const CpuCeilings& cpu, int threads) {
  if (threads <= 1) return 1;
  double most = threads;
  for (const auto& [isa, one] : cpu.flops_one_thread) {
    const auto all = cpu.flops_all_threads.find(isa);
    if (all != cpu.flops_all_threads.end() && one.value > 0 && all->second.value > one.value) {
      most = std::min(most, std::max(1.0, all->second.value / one.value));
    }
  }
  return most;
}

bool usable(const Measurement& m) {
  // Beside other programs on the device times are theirs as well.
  const bool alone = std::find(m.flags.begin(), m.flags.end(), "shared_device") == m.flags.end();
  return alone && m.quality != Quality::invalid && m.seconds.median > 0 && std::isfinite(m.seconds.median) &&
         !m.op.starts_with("probe_") && m.backend != "peers" && !m.backend.empty();
}

bool on_gpu(const Measurement& m) { return m.regime != Regime::host; }

std::string cell_key(const Measurement& m) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", on_gpu(m), m.op, m.shape.text(),
                     to_string(m.shape.dtype), m.precision, to_string(m.regime), m.path, m.reuse,
                     on_gpu(m) ? 0 : m.threads,
                     fmt::format("{} {}", to_string(m.cache), m.backend == "scalar"));
}

Cell cell_of(const Measurement& m) {
  Cell cell;
  cell.call = call_of(m);
  cell.where = on_gpu(m) ? "gpu" : "cpu";
  cell.regime = m.regime;
  cell.path = m.path;
  cell.reuse = m.reuse;
  cell.threads = m.threads;
  cell.backend = m.backend;
  cell.variant = m.variant;
  cell.isa = m.isa;
  cell.seconds = m.seconds.median;
  cell.low = m.seconds.ci_low > 0 ? m.seconds.ci_low : m.seconds.median;
  cell.high = std::max(m.seconds.ci_high, m.seconds.median);
  if (m.samples > 0 && m.samples < kFewSamples) {
    const bool batch = m.samples * std::max<std::int64_t>(1, m.calls_per_sample) >= kFewCalls;
    const double factor = std::exp(2 * (batch ? kOneBatchSigma : kFewCallsSigma));
    cell.low = std::min(cell.low, cell.seconds / factor);
    cell.high = std::max(cell.high, cell.seconds * factor);
  }
  if (m.device_seconds && m.device_seconds->median > 0) cell.device_seconds = m.device_seconds->median;
  cell.samples = m.samples;
  cell.noise = std::isfinite(m.seconds.cv_robust) ? m.seconds.cv_robust : 0;
  return cell;
}

double noise_of(const Cell& cell) { return 0.25 * (std::log(cell.high) - std::log(cell.low)); }

std::string rate_key(std::string_view op, int threads) { return fmt::format("{}/{}", op, threads); }

void add_host(const Cell& cell, Calibration::State& state) {
  const CpuCeilings& cpu = state.machine.cpu;
  const bool scalar = cell.backend == "scalar";
  const auto rate = state.in_cache.find(rate_key(cell.call.op, cell.threads));
  const Formula formula = host_formula(
      cell.call, cpu, cell.threads, rate == state.in_cache.end() || scalar ? 0 : rate->second, scalar, true);
  // Faster than waking the threads takes: the call stayed on one, and says nothing about many.
  const bool stayed = cell.threads > 1 && cell.seconds < formula.fixed;
  if (!stayed) {
    state.cpu.add(key_of(cell.call, cpu_way(cell.threads, scalar, cell.call.cache)),
                  {features_of(cell.call), formula.parts(), cell.seconds, noise_of(cell)});
  }
  auto& threads = state.threads[cell.call.op];
  if (!scalar && std::find(threads.begin(), threads.end(), cell.threads) == threads.end()) {
    threads.push_back(cell.threads);
  }
}

void add_kernel(const Cell& cell, const GpuCeilings& gpu, Calibration::State& state) {
  const Formula kernel = kernel_formula(cell.call, gpu);
  if (!kernel.missing.empty() || !cell.device_seconds) return;
  const Families::Key key = key_of(cell.call, "resident");
  state.kernel.add(key, {features_of(cell.call), kernel.parts(), *cell.device_seconds, 0.01});
  const double around = call_overhead(gpu, false);
  const double measured = cell.seconds - *cell.device_seconds;
  if (around > 0 && measured > 0) {
    const double doubt = std::max(noise_of(cell), 0.02) * cell.seconds / measured;
    state.overhead.add(key, {features_of(cell.call), measured / around, doubt, {}});
  }
}

void add_total(const Cell& cell, const GpuCeilings& gpu, Calibration::State& state) {
  const GpuUse use{.regime = cell.regime, .path = cell.path, .reuse = std::max<std::int64_t>(1, cell.reuse)};
  const KernelPart kernel = kernel_part(cell.call, gpu, state, false);
  const Formula formula = gpu_formula(cell.call, gpu, use, kernel.formula, kernel.overhead);
  if (!formula.missing.empty()) return;
  const Evidence evidence{features_of(cell.call), formula.parts(), cell.seconds, noise_of(cell)};
  state.total.add(key_of(cell.call, gpu_way(use)), evidence);
  // Ways between which the backend changes at some size have little in common.
  if (!formula.way.empty()) state.total.add(key_of(cell.call, chosen_way(use, formula)), evidence);
}

std::shared_ptr<const Calibration::State> build(const Machine& machine, std::vector<Cell> cells) {
  auto state = std::make_shared<Calibration::State>();
  state->machine = machine;
  state->cells = std::move(cells);
  for (const Cell& cell : state->cells) {
    if (cell.where != "cpu" || cell.backend == "scalar") continue;
    const std::string key = rate_key(cell.call.op, cell.threads);
    if (state->in_cache.contains(key)) continue;
    if (const double rate = in_cache_slots(state->cells, machine, cell.call.op, cell.threads); rate > 0) {
      state->in_cache[key] = rate;
    }
  }
  for (const Cell& cell : state->cells) {
    if (cell.where == "cpu") add_host(cell, *state);
  }
  state->cpu.finish();
  if (machine.gpus.empty()) return state;
  const GpuCeilings& gpu = machine.gpus.front();
  for (const Cell& cell : state->cells) {
    if (cell.regime == Regime::resident && cell.device_seconds) add_kernel(cell, gpu, *state);
  }
  state->kernel.finish();
  // Whole calls rest on what is known of their kernels.
  for (const Cell& cell : state->cells) {
    if (cell.where == "gpu" && !(cell.regime == Regime::resident && cell.device_seconds))
      add_total(cell, gpu, *state);
  }
  state->total.finish();
  return state;
}

}  // namespace

std::vector<Cell> cells_of(std::span<const Measurement> measurements) {
  std::map<std::string, Cell> cells;
  for (const Measurement& m : measurements) {
    if (!usable(m)) continue;
    Cell cell = cell_of(m);
    const auto [place, fresh] = cells.try_emplace(cell_key(m), cell);
    if (!fresh && cell.seconds < place->second.seconds) place->second = std::move(cell);
  }
  std::vector<Cell> out;
  out.reserve(cells.size());
  for (auto& [key, cell] : cells) out.push_back(std::move(cell));
  return out;
}

double in_cache_slots(std::span<const Cell> cells, const Machine& machine, std::string_view op, int threads) {
  double limit = 0;  // the second cache of one thread
  for (const MemoryLevel& level : machine.cpu.levels) {
    if (level.name == "L2") limit = static_cast<double>(level.capacity_bytes);
  }
  double best = 0;
  for (const Cell& cell : cells) {
    const Call& call = cell.call;
    if (cell.where != "cpu" || call.op != op || cell.threads != 1 || cell.backend == "scalar") continue;
    if (call.cache != Cache::warm || call.working_set() > limit || call.category == "dense") continue;
    // Ops with few slots for each byte wait for their cache: their rate there is no rate of arithmetic.
    if (call.work.issue_slots < kSlotsPerByte * call.work.bytes()) continue;
    best = std::max(best, call.work.issue_slots / cell.seconds);
  }
  return best * arithmetic_scaling(machine.cpu, threads);
}

Formula host_formula(const Call& call, const CpuCeilings& cpu, int threads, double in_cache, bool scalar,
                     bool nominal) {
  Formula formula = cpu_formula(call, cpu, threads, in_cache, scalar);
  if (formula.missing.empty() || !nominal) return formula;
  // No ceilings: any plain rate does, since cells say how far it is off and what lies between them follows.
  constexpr double kBytesPerSecond = 10e9, kFlopsPerSecond = 50e9;
  Formula plain;
  plain.add_fixed("call", 1e-6, "entering the kernel");
  plain.add("work", call.work.bytes() / kBytesPerSecond + call.work.flops / kFlopsPerSecond,
            "a nominal rate: this CPU has no measured ceilings");
  return plain;
}

void correct(Formula& formula, double factor, const std::string& source) {
  const double more = formula.seconds * (factor - 1);
  formula.add("measured factor", more, fmt::format("x{:.3g}, from {}", factor, source));
}

KernelPart kernel_part(const Call& call, const GpuCeilings& gpu, const Calibration::State& state,
                       bool graph) {
  KernelPart part;
  part.formula = kernel_formula(call, gpu);
  part.residual = {.value = 0, .sigma = 0.5, .grade = Grade::c, .points = 0, .source = "closed form alone"};
  if (!part.formula.missing.empty()) return part;
  const Families::Key key = key_of(call, "resident");
  const Features features = features_of(call);
  if (const auto residual = state.kernel.at(key, features, part.formula.parts())) {
    part.residual = *residual;
    correct(part.formula, std::exp(residual->value), residual->source);
  }
  hold_to(part.formula, least_kernel_seconds(call, gpu), "kernel at its roof");
  if (const auto ratio = state.overhead.at(key, features)) part.overhead = *ratio * call_overhead(gpu, graph);
  return part;
}

Calibration::Calibration() : state_(std::make_shared<State>()) {}
Calibration::Calibration(const Machine& machine, std::span<const Measurement> measurements)
    : state_(build(machine, cells_of(measurements))) {}
Calibration::Calibration(const Machine& machine, std::vector<Cell> cells)
    : state_(build(machine, std::move(cells))) {}

const std::string& Calibration::machine() const { return state_->machine.id; }
const std::vector<Cell>& Calibration::cells() const { return state_->cells; }

}  // namespace fulcrum::model
