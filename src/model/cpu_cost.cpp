// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU's closed form: t0 + fork + max(compute, memory), memory smoothly shared by the levels that hold the data.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/cost.h"

namespace fulcrum::model {
namespace {

constexpr double kCallSeconds = 20e-9;  // entering a kernel and leaving it; far below every other term
// Dims at which a dense kernel reaches half of its rate.
constexpr double kHalfDim = 12;

// A few threads share a rate linearly, many reach its limit; in between both bend into each other.
double scaled(double one, double all, int threads, int all_threads) {
  if (threads <= 1) return one;
  if (one <= 0) return all;
  const double linear = one * threads;
  if (all < one) return linear;  // measured on a busy machine: more threads never do less
  if (threads >= all_threads) return all;
  const double r = linear / all;
  return all * r / std::pow(1 + std::pow(r, 4), 0.25);
}

double level_rate(const MemoryLevel& level, const Work& work, int threads, int all_threads) {
  return scaled(mix_rate(level.one_thread, "", work), mix_rate(level.all_threads, "", work), threads,
                all_threads);
}

double capacity(const MemoryLevel& level, int threads) {
  const int instances = std::max(1, threads / std::max(1, level.shared_by_threads));
  return static_cast<double>(level.capacity_bytes) * instances;
}

struct MemorySeconds {
  double seconds = 0;
  std::string level;  // that takes most of them
  double level_rate = 0;
  double far = 0;  // from the last level, which is no cache
};

// s_l = 1 / (1 + (W/C_l)^4) of what the levels before it do not hold.
MemorySeconds memory_seconds(const Call& call, const CpuCeilings& cpu, int threads) {
  MemorySeconds out;
  double left = 1, most = -1;
  for (std::size_t i = 0; i < cpu.levels.size(); ++i) {
    const MemoryLevel& level = cpu.levels[i];
    const bool last = i + 1 == cpu.levels.size();
    const double rate = level_rate(level, call.work, threads, cpu.threads);
    if (rate <= 0) {
      if (last) return {};
      continue;
    }
    double held = 1;
    if (!last) {
      const double size = capacity(level, threads);
      held = call.cache == Cache::cold || size <= 0 ? 0 : 1 / (1 + std::pow(call.working_set() / size, 4));
    }
    const double share = last ? left : left * held;
    left -= share;
    // Passes over data that a first-level cache holds are not paid again.
    const double bytes = i == 0 ? call.work.bytes() : call.work.streamed();
    const double seconds = share * bytes / rate;
    out.seconds += seconds;
    if (last) out.far = seconds;
    if (seconds > most) {
      most = seconds;
      out.level = level.name;
      out.level_rate = rate;
    }
  }
  return out;
}

double peak(const std::map<std::string, Quantity>& one, const std::map<std::string, Quantity>& all,
            int threads, int all_threads, bool scalar) {
  double best = 0;
  for (const auto& [isa, rate] : one) {
    if (scalar != (isa == "scalar")) continue;
    const auto found = all.find(isa);
    best = std::max(best,
                    scaled(rate.value, found == all.end() ? 0 : found->second.value, threads, all_threads));
  }
  return best;
}

// Short dims leave vector lanes and unrolled loops empty.
double dense_share(const Call& call) {
  if (call.category != "dense") return 1;
  double share = 1;
  for (const char* name : {"M", "N", "K"}) {
    const Shape::Value* value = call.shape.find(name);
    if (!value || !std::holds_alternative<std::int64_t>(*value)) continue;
    const auto dim = static_cast<double>(std::get<std::int64_t>(*value));
    if (dim > 0) share *= dim / (dim + kHalfDim);
  }
  return share;
}

}  // namespace

Formula cpu_formula(const Call& call, const CpuCeilings& cpu, int threads, double in_cache, bool scalar) {
  if (cpu.levels.empty()) return missing_formula("no measured memory rates of this CPU");
  const MemorySeconds memory = memory_seconds(call, cpu, threads);
  if (memory.seconds <= 0 && call.work.bytes() > 0)
    return missing_formula("no measured memory rates of this CPU");
  const double flops_peak = peak(cpu.flops_one_thread, cpu.flops_all_threads, threads, cpu.threads, scalar);
  if (flops_peak <= 0 && in_cache <= 0) return missing_formula("no measured arithmetic peak of this CPU");

  Formula formula;
  formula.add_fixed("call", kCallSeconds, "entering the kernel");
  if (threads > 1) {
    const double width = static_cast<double>(threads) / std::max(1, cpu.threads);
    formula.add_fixed("fork", cpu.fork_join_seconds.value * (0.5 + 0.5 * width),
                      fmt::format("{} threads", threads));
  }
  const bool measured_rate = in_cache > 0 && call.work.issue_slots > 0;
  // An FMA is two flops in one issue slot, so slots go by at half the peak.
  const double compute =
      measured_rate ? call.work.issue_slots / in_cache
                    : std::max(call.work.flops, 2 * call.work.issue_slots) / (flops_peak * dense_share(call));
  const bool compute_binds = compute > memory.seconds;
  formula.add("compute", compute,
              measured_rate ? fmt::format("{:.3g} G slots/s in cache", in_cache * 1e-9)
                            : fmt::format("peak {}", human_flops(flops_peak)),
              compute_binds);
  formula.add("memory", memory.seconds,
              fmt::format("{} mostly from {} at {}", human_bytes(call.work.streamed()), memory.level,
                          human_rate(memory.level_rate)),
              !compute_binds);
  formula.bound = compute_binds ? "compute" : "memory";
  formula.level = memory.level;
  formula.roof_seconds = std::max(compute, memory.seconds);
  if (!compute_binds) formula.far = memory.far;
  return formula;
}

}  // namespace fulcrum::model
