// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a GPU and the link to it allow: the same law as for the CPU (physics.cpp), with two levels and a wire.
#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <algorithm>

#include "measure/physics.h"

namespace fulcrum::measure {
namespace {

double peak_of(const std::map<std::string, Quantity>& rates, const std::string& name) {
  const auto found = rates.find(name);
  return found == rates.end() ? kUnknown : std::max(found->second.value, found->second.high);
}

/// Rates of one level: the mix whose share of written bytes is nearest, and the best of all.
struct Level {
  std::string name;  // as a ceiling calls it
  double roof = kUnknown, best = kUnknown;
};
Level level_of(const GpuCeilings& gpu, std::string name, const std::string& prefix, const Work& work) {
  const double read = peak_of(gpu.rates, prefix + "_read");
  const double triad = std::max(peak_of(gpu.rates, prefix + "_triad"), peak_of(gpu.rates, prefix + "_add"));
  const double copy = peak_of(gpu.rates, prefix + "_copy");
  const double write = peak_of(gpu.rates, prefix + "_write");
  const double written = work.bytes() > 0 ? work.write_bytes / work.bytes() : 0;
  Level level{.name = std::move(name)};
  level.best = std::max({read, triad, copy, write});
  level.roof = written <= 1.0 / 6 ? read : written <= 5.0 / 12 ? triad : written <= 5.0 / 6 ? copy : write;
  if (level.roof <= kUnknown) level.roof = copy > kUnknown ? copy : read;
  return level;
}

// The least time for the bytes. Warm: L2 holds as much of the set as fits, and costs nothing when its rate is not
// known.
double least_seconds(const Work& work, Cache cache, double working_set, double l2_bytes, const Level& l2,
                     const Level& memory) {
  const double held = cache == Cache::warm ? std::min(1.0, l2_bytes / working_set) : 0;
  const double from_l2 = l2.best > kUnknown ? work.bytes() / l2.best : 0;
  const double from_memory = memory.best > kUnknown ? work.bytes() / memory.best : 0;
  return held * from_l2 + (1 - held) * from_memory;
}

double fastest_link(const GpuCeilings& gpu, std::string_view direction) {
  double best = kUnknown;
  for (const auto& [name, table] : gpu.link) {
    if (!name.ends_with(direction)) continue;
    for (const auto& [bytes, seconds] : table) {
      if (seconds.value > 0) best = std::max(best, static_cast<double>(bytes) / seconds.value);
    }
  }
  return best;
}

}  // namespace

Physics device_physics(const Work& work, double seconds, Cache cache, std::string_view precision,
                       std::int64_t working_set_bytes, const GpuCeilings& gpu) {
  Physics out;
  if (!(seconds > 0)) return Physics{.violation = "the time is not positive"};
  const double working_set =
      working_set_bytes > 0 ? static_cast<double>(working_set_bytes) : std::max(work.bytes(), 1.0);
  const auto l2_bytes = static_cast<double>(gpu.l2_bytes);
  const Level memory = level_of(gpu, "HBM", "hbm", work);
  const Level l2 = level_of(gpu, "L2", "l2", work);
  const double allowed_seconds = kTolerance * seconds;

  const double flops_peak = peak_of(gpu.flops, std::string(precision));
  if (flops_peak > kUnknown && work.flops > flops_peak * allowed_seconds)
    out.violation = too_fast(work.flops / seconds, flops_peak, "GFLOP/s", "arithmetic");
  if (out.violation.empty()) {
    Work reads = work;
    reads.write_bytes = 0;
    const double least = least_seconds(work, cache, working_set, l2_bytes, l2, memory);
    const double least_reads = least_seconds(reads, cache, working_set, l2_bytes, l2, memory);
    // Outputs may still be in L2 when the clock stops, so that a cold row is condemned by its reads alone.
    if ((cache == Cache::cold ? least_reads : least) > allowed_seconds) {
      out.violation = too_fast(work.bytes() / seconds, work.bytes() / least, "GB/s",
                               cache == Cache::warm && working_set <= l2_bytes ? "L2" : "HBM");
    } else if (least > allowed_seconds) {
      out.unverified = true;
    }
  }
  const bool in_l2 = cache == Cache::warm && 2 * working_set <= l2_bytes;
  const Level& level = in_l2 ? l2 : memory;
  if (level.roof <= kUnknown) return out;
  const double memory_seconds = work.bytes() / level.roof;
  const double compute_seconds = flops_peak > kUnknown ? work.flops / flops_peak : 0;
  out.ceiling = Ceiling{.bound = compute_seconds > memory_seconds ? "compute" : "memory",
                        .level = level.name,
                        .fraction = memory_seconds / seconds};
  return out;
}

Physics link_physics(const Work& work, double seconds, const GpuCeilings& gpu) {
  Physics out;
  if (!(seconds > 0)) return Physics{.violation = "the time is not positive"};
  const bool said = work.link_in_bytes + work.link_out_bytes > 0;
  const double in = said ? work.link_in_bytes : work.read_bytes;
  const double back = said ? work.link_out_bytes : work.write_bytes;
  const double in_rate = fastest_link(gpu, "_h2d"), back_rate = fastest_link(gpu, "_d2h");
  if (in_rate <= kUnknown || back_rate <= kUnknown) return out;
  const double least = std::max(in / in_rate, back / back_rate);
  if (least > kTolerance * seconds) {
    const bool inwards = in / in_rate >= back / back_rate;
    out.violation = too_fast((inwards ? in : back) / seconds, inwards ? in_rate : back_rate, "GB/s",
                             inwards ? "the link to the device" : "the link from the device");
  }
  out.ceiling = Ceiling{.bound = "link", .level = "link", .fraction = least / seconds};
  return out;
}

}  // namespace fulcrum::measure
