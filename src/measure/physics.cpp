// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the machine allows. Pure: work, time and measured ceilings in, a violation or a place under the roof
// out. Always on compulsory bytes: a kernel that keeps data in registers or cache moves no more than that,
// and streaming bytes would condemn it.
#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <limits>

#include "measure/physics.h"

namespace fulcrum::measure {
namespace {

using Rates = std::map<std::string, Quantity>;

double peak_of(const Rates& rates, std::string_view mix) {
  const auto found = rates.find(std::string(mix));
  return found == rates.end() ? kUnknown : std::max(found->second.value, found->second.high);
}

// Peak of several threads. More threads never do less; a profile that says so was measured on a busy machine,
// and linear scaling is then the only bound left.
double scaled_peak(double one_thread, double all_threads, int threads) {
  if (threads == 1) return one_thread;
  return all_threads >= one_thread ? all_threads : threads * one_thread;
}

Rates rates_of(const MemoryLevel& level, int threads) {
  Rates rates = level.one_thread;
  for (auto& [mix, rate] : rates) {
    rate.value = rate.high = scaled_peak(peak_of(rates, mix), peak_of(level.all_threads, mix), threads);
  }
  return rates;
}

// The measured mix whose share of written bytes is nearest: read 0, triad 1/3, copy 1/2; the best of plain
// and non-temporal stores.
double roof_of(const Rates& rates, const Work& work) {
  const double written = work.bytes() > 0 ? work.write_bytes / work.bytes() : 0;
  const double read = peak_of(rates, "read");
  const double triad = std::max(peak_of(rates, "triad"), peak_of(rates, "triad_nt"));
  const double copy = std::max(peak_of(rates, "copy"), peak_of(rates, "copy_nt"));
  if (written <= 1.0 / 6 && read > kUnknown) return read;
  if (written <= 5.0 / 12 && triad > kUnknown) return triad;
  return copy;
}

// What all instances together hold for this many threads.
double capacity_of(const MemoryLevel& level, int threads) {
  const int instances = std::max(1, threads / std::max(1, level.shared_by_threads));
  return level.capacity_bytes > 0 ? static_cast<double>(level.capacity_bytes) * instances
                                  : std::numeric_limits<double>::infinity();
}

// Seconds to read one byte and to write one byte at best. Reads may be as fast as the fastest mix: what a
// level has supplied as reads and writes together, it can supply as reads. A write's cost is what a mix takes
// beyond its reads; of several mixes the cheapest counts, so that non-temporal stores break no law.
struct ByteCost {
  double read = 0, write = 0;
  bool known = false;
};
ByteCost byte_cost(const Rates& rates) {
  struct Mix {
    std::string_view name;
    double reads, writes;
  };
  constexpr Mix kMixes[] = {{"copy", 1, 1}, {"copy_nt", 1, 1}, {"triad", 2, 1}, {"triad_nt", 2, 1}};
  double read_peak = peak_of(rates, "read");
  if (read_peak <= kUnknown) return {};
  for (const Mix& mix : kMixes) read_peak = std::max(read_peak, peak_of(rates, mix.name));
  ByteCost cost{.read = 1 / read_peak, .write = std::numeric_limits<double>::infinity(), .known = true};
  for (const Mix& mix : kMixes) {
    const double peak = peak_of(rates, mix.name);
    if (peak <= kUnknown) continue;
    const double write = ((mix.reads + mix.writes) / peak - mix.reads * cost.read) / mix.writes;
    cost.write = std::min(cost.write, std::max(0.0, write));
  }
  if (cost.write == std::numeric_limits<double>::infinity()) cost.write = 0;  // no mix measured: reads only
  return cost;
}

// The least time in which the levels can supply the bytes of a warm working set: each level, smallest first,
// is taken to hold as much of it as fits. Without that, a set a little larger than L1 would beat the rate of
// L2 lawfully.
double least_warm_seconds(const Work& work, double working_set, int threads,
                          const std::vector<MemoryLevel>& levels) {
  double seconds = 0, placed = 0;
  for (const MemoryLevel& level : levels) {
    const ByteCost cost = byte_cost(rates_of(level, threads));
    if (!cost.known) return 0;
    const double here = std::min(working_set, capacity_of(level, threads)) - placed;
    if (here <= 0) continue;
    seconds += here / working_set * (work.read_bytes * cost.read + work.write_bytes * cost.write);
    placed += here;
  }
  return seconds;
}

double peak_flops(const CpuCeilings& cpu, int threads, std::string_view isa) {
  const auto peak = [&](const std::string& name) {
    return scaled_peak(peak_of(cpu.flops_one_thread, name), peak_of(cpu.flops_all_threads, name), threads);
  };
  const double own = peak(std::string(isa));
  if (own > kUnknown) return own;
  double best = kUnknown;  // a library names its core, not our ISA: the best of the machine bounds it
  for (const auto& entry : cpu.flops_one_thread) best = std::max(best, peak(entry.first));
  return best;
}

const MemoryLevel* holding_level(const CpuCeilings& cpu, Cache cache, double working_set, int threads) {
  if (cpu.levels.empty()) return nullptr;
  if (cache == Cache::cold) return &cpu.levels.back();
  for (const MemoryLevel& level : cpu.levels) {
    if (working_set <= capacity_of(level, threads)) return &level;
  }
  return &cpu.levels.back();
}

void check_bytes(const Work& work, double seconds, Cache cache, double working_set, int threads,
                 const MemoryLevel& level, const CpuCeilings& cpu, Physics& out) {
  const double allowed_seconds = kTolerance * seconds;
  if (cache == Cache::warm) {
    const double least = least_warm_seconds(work, working_set, threads, cpu.levels);
    if (least > allowed_seconds) {
      out.violation = too_fast(work.bytes() / seconds, work.bytes() / least, "GB/s", level.name);
    }
    return;
  }
  const ByteCost cost = byte_cost(rates_of(level, threads));
  if (!cost.known) return;
  const double read_seconds = work.read_bytes * cost.read;
  if (read_seconds > allowed_seconds) {
    out.violation = too_fast(work.read_bytes / seconds, 1 / cost.read, "GB/s", level.name + " reads");
  } else if (read_seconds + work.write_bytes * cost.write > allowed_seconds) {
    out.unverified = true;  // the outputs may still be in a cache when the clock stops
  }
}

}  // namespace

std::string too_fast(double rate, double peak, std::string_view unit, std::string_view what) {
  return fmt::format("{:.3g} {} is above {} x {:.3g} {}, the measured peak of {}", rate * 1e-9, unit,
                     kTolerance, peak * 1e-9, unit, what);
}

Physics physics_check(const Work& work, double seconds, Cache cache, int threads, std::string_view isa,
                      std::int64_t working_set_bytes, const Machine& machine) {
  Physics out;
  if (!(seconds > 0)) return Physics{.violation = "the time is not positive"};
  const CpuCeilings& cpu = machine.cpu;
  const double working_set =
      working_set_bytes > 0 ? static_cast<double>(working_set_bytes) : std::max(work.bytes(), 1.0);
  const MemoryLevel* level = holding_level(cpu, cache, working_set, threads);
  const double flops_peak = peak_flops(cpu, threads, isa);
  if (flops_peak > kUnknown && work.flops > kTolerance * flops_peak * seconds) {
    out.violation = too_fast(work.flops / seconds, flops_peak, "GFLOP/s", "arithmetic");
  }
  if (!level) return out;
  if (out.violation.empty()) check_bytes(work, seconds, cache, working_set, threads, *level, cpu, out);

  const double rate = roof_of(rates_of(*level, threads), work);
  if (rate <= kUnknown) return out;
  // An FMA is two flops in one issue slot, so slots go by at half the peak.
  const double compute_seconds =
      flops_peak > kUnknown ? std::max(work.flops, 2 * work.issue_slots) / flops_peak : 0;
  const double memory_seconds = work.bytes() / rate;
  out.ceiling = Ceiling{.bound = compute_seconds > memory_seconds ? "compute" : "memory",
                        .level = level->name,
                        .fraction = memory_seconds / seconds};
  return out;
}

}  // namespace fulcrum::measure
