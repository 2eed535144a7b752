// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Bounds for code that is no op, from its instruction mix: the ratio of two roofs at one arithmetic intensity. Bytes
// are those of loads and stores, so caches make the memory roof of the CPU too low and the gain too kind: the interval
// reaches from the bound to ten times its seconds.
#include <fmt/format.h>
#include <fulcrum/model.h>

#include <algorithm>
#include <cmath>

namespace fulcrum::model {
namespace {

constexpr double kDoubt = 10;   // the bound may be missed by so much
constexpr double kTypical = 2;  // kernels that nobody tuned reach half of their roof
// How much faster than its bound says the best build of a program was on all cores: up to so much in strangers' programs.
constexpr double kBuildDoubt = 2.5;
// Of one GPU thread that waits for its own data: from its second-level cache, from memory, for the sum before. The
// longest iteration of a triangular loop takes twice the mean.
constexpr double kCacheLatency = 150e-9, kMemoryLatency = 500e-9, kFmaCycles = 4, kUneven = 2;
constexpr double kClockHz = 1.5e9;  // where the profile has none
constexpr double kElementBytes = 4, kMostLoads = 8;
constexpr double kStridedRate = 0.5, kGatherRate = 0.25;  // of the streaming rate, assumed

double best_of(const std::map<std::string, Quantity>& rates) {
  double best = 0;
  for (const auto& [name, rate] : rates) best = std::max(best, rate.value);
  return best;
}

double flops_of_width(const CpuCeilings& cpu, double bits) {
  const auto& rates = cpu.flops_one_thread;
  const auto of = [&rates](const char* isa) {
    const auto found = rates.find(isa);
    return found == rates.end() ? 0.0 : found->second.value;
  };
  const double scalar = of("scalar"), widest = best_of(rates);
  if (scalar <= 0) return widest;
  // 32 bits are one lane; wider work reaches its part of the widest unit.
  return std::clamp(scalar * bits / 32, scalar, std::max(scalar, widest));
}

double rate_of(const std::map<std::string, Quantity>& rates) {
  for (const char* name : {"triad", "copy", "read"}) {
    if (const auto found = rates.find(name); found != rates.end()) return found->second.value;
  }
  return best_of(rates);
}

/// The first cache that holds what the program touches, else memory: what stays in a cache is read at its rate.
const MemoryLevel* level_of(const CpuCeilings& cpu, double touched_bytes) {
  if (cpu.levels.empty()) return nullptr;
  for (const MemoryLevel& level : cpu.levels) {
    const bool measured = !level.one_thread.empty() && !level.all_threads.empty();
    if (measured && touched_bytes > 0 && static_cast<double>(level.capacity_bytes) >= touched_bytes)
      return &level;
  }
  return &cpu.levels.back();
}

/// Of the GPU's second-level cache where everything fits into it, else of its memory.
double device_rate(const GpuCeilings& gpu, double touched_bytes) {
  const bool cached = touched_bytes > 0 && static_cast<double>(gpu.l2_bytes) >= touched_bytes;
  for (const char* name : {"l2_copy", "hbm_copy", "hbm_read"}) {
    if (!cached && std::string_view(name) == "l2_copy") continue;
    if (const auto found = gpu.rates.find(name); found != gpu.rates.end()) return found->second.value;
  }
  return 0;
}

/// Work units a second under both roofs: flops where there are any, else bytes.
double roof(double flops, double bytes_per_second, const UnknownCode& code) {
  if (code.flops_per_byte <= 0) return code.moves_bytes ? bytes_per_second : 0;
  if (!code.moves_bytes) return flops;
  return std::min(flops, code.flops_per_byte * bytes_per_second);
}

/// Once there, and the written part back.
double travel(const GpuCeilings& gpu, const std::string& memory, double bytes, double written_share) {
  double seconds = 0;
  for (const auto& [way, share] : {std::pair{"_h2d", 1.0}, std::pair{"_d2h", written_share}}) {
    const auto found = gpu.link.find(memory + way);
    if (found != gpu.link.end()) seconds += link_seconds(found->second, bytes * share).value_or(0);
  }
  return seconds;
}

/// Work units a second of as many threads as iterations were seen. Nothing says that inner loops can be spread too, and a
/// card that is not filled waits.
double narrow_rate(const UnknownCode& code, const GpuCeilings& gpu, double peak_flops, double peak_bytes) {
  const bool cached = code.touched_bytes > 0 && static_cast<double>(gpu.l2_bytes) >= code.touched_bytes;
  const double in_flight = kElementBytes * std::clamp(code.loads_per_turn, 1.0, kMostLoads);
  const double bytes = code.iterations * in_flight / (cached ? kCacheLatency : kMemoryLatency);
  const double flops = code.iterations * 2 * (gpu.max_sm_hz > 0 ? gpu.max_sm_hz : kClockHz) / kFmaCycles;
  return roof(std::min(peak_flops, flops), std::min(peak_bytes, bytes), code);
}

/// Calls of scalar functions keep their loop scalar, and what those do is bound by arithmetic whatever the bytes say: with
/// their vector versions they gain what those were measured to gain, on every core, and the rest what its roofs allow.
double with_vector_math(const UnknownCode& code, double cores_gain, double rest_seconds) {
  const double math = code.seconds * code.math_share / (std::max(1.0, code.math_gain) * cores_gain);
  return math + (1 - code.math_share) * rest_seconds;
}

/// A loop with vector functions is a vector loop altogether, and what looks like memory may be its caches: the least that
/// another build may take.
double least_with_vector_math(const UnknownCode& code, const CpuCeilings& cpu, double cores_gain) {
  const auto scalar = cpu.flops_one_thread.find("scalar");
  const double lanes = scalar == cpu.flops_one_thread.end() || !(scalar->second.value > 0)
                           ? 1
                           : std::max(1.0, best_of(cpu.flops_one_thread) / scalar->second.value / kTypical);
  return with_vector_math(code, cores_gain, code.seconds / (lanes * cores_gain));
}

double latency(const GpuCeilings& gpu, const char* name) {
  const auto found = gpu.latencies.find(name);
  return found == gpu.latencies.end() ? 0 : found->second.value;
}

Prediction bound(const UnknownCode& code, double now_rate, double then_rate, const char* where) {
  Prediction p;
  p.where = where;
  p.grade = Grade::c;
  if (!(now_rate > 0) || !(then_rate > 0)) {
    p.missing = "its instructions say nothing about memory or arithmetic";
    return p;
  }
  const double ratio = now_rate / then_rate;
  p.seconds = code.seconds * ratio * kTypical;
  p.low = code.low * ratio;
  p.high = code.high * ratio * kDoubt;
  return p;
}

}  // namespace

Bounds bounds_of(const UnknownCode& code, const Machine& host, const GpuCeilings* gpu) {
  Bounds out;
  const double pattern = code.access == "gather" ? kGatherRate : code.access == "strided" ? kStridedRate : 1;
  const MemoryLevel* memory = level_of(host.cpu, code.touched_bytes);
  const double one = memory ? rate_of(memory->one_thread) : 0,
               all = memory ? rate_of(memory->all_threads) : 0;
  const double threads = std::clamp(code.threads, 1.0, std::max(1.0, static_cast<double>(host.cpu.threads)));
  const double flops_now = flops_of_width(host.cpu, code.vector_bits) * threads;
  // What jumps about in memory is slow on both sides; SIMD and more cores do not change that.
  const double bytes_now = std::min(one * threads, std::max(one, all)) * pattern;
  const double now_rate = roof(flops_now, bytes_now, code);

  out.now.where = "cpu";
  out.now.way = "as recorded";
  out.now.grade = Grade::a;
  out.now.seconds = code.seconds;
  out.now.low = code.low;
  out.now.high = code.high;
  out.now.bound =
      code.flops_per_byte > 0 && flops_now <= code.flops_per_byte * bytes_now ? "compute" : "memory";

  out.cpu = bound(code, now_rate,
                  roof(best_of(host.cpu.flops_all_threads), std::max(one, all) * pattern, code), "cpu");
  out.cpu.way = fmt::format("{} threads, SIMD: a bound", host.cpu.threads);
  if (code.math_share > 0 && out.cpu.valid()) {
    const double cores = std::max(1.0, static_cast<double>(host.cpu.threads) / threads);
    const double rest = std::min(out.cpu.seconds, code.seconds);
    out.cpu.seconds = std::min(out.cpu.seconds, with_vector_math(code, cores, rest));
    out.cpu.low = std::min(out.cpu.low, least_with_vector_math(code, host.cpu, cores));
    out.cpu.way = fmt::format("{} threads, SIMD, vector functions: a bound", host.cpu.threads);
  }
  // What runs at its roof already cannot gain by it.
  if (out.cpu.valid()) {
    out.cpu.seconds = std::min(out.cpu.seconds, code.seconds);
    out.cpu.high = std::max(out.cpu.high, out.cpu.seconds);
    out.cpu.low = std::min(out.cpu.low, out.cpu.seconds / kBuildDoubt);
  }
  out.gpu.where = "gpu";
  out.gpu.missing = "no GPU profile";
  if (gpu == nullptr) return out;
  const auto peak = gpu->flops.find("fp32");
  const double gpu_flops = peak == gpu->flops.end() ? 0 : peak->second.value;
  const double gpu_bytes = device_rate(*gpu, code.touched_bytes) * pattern;
  out.gpu = bound(code, now_rate, roof(gpu_flops, gpu_bytes, code), "gpu");
  out.gpu.regime = Regime::resident;
  out.gpu.way = "a bound";
  if (!out.gpu.valid()) return out;
  // A launch for each entry of the loop, waited for or not.
  const double launches = code.entries * latency(*gpu, "launch_sync");
  out.gpu.seconds += launches;
  out.gpu.low += code.entries * latency(*gpu, "launch");
  out.gpu.high += launches;
  if (code.iterations > 0)
    out.narrow_seconds =
        launches + code.high * kUneven * now_rate / narrow_rate(code, *gpu, gpu_flops, gpu_bytes);
  if (!(code.touched_bytes > 0)) return out;
  const double least = code.least_bytes > 0 ? code.least_bytes : code.touched_bytes;
  const double pinned = travel(*gpu, "pinned", code.touched_bytes, code.written_share);
  // Nobody has pinned the program's memory yet.
  const double link = std::max(pinned, travel(*gpu, "pageable", code.touched_bytes, code.written_share));
  out.gpu.regime = Regime::roundtrip;
  out.gpu.seconds += link;
  out.gpu.low += travel(*gpu, "pinned", least, code.written_share);
  // What comes back may land in memory that nobody has touched yet.
  out.gpu.high += link + code.touched_bytes * code.written_share * code.fresh_seconds_per_byte;
  if (out.narrow_seconds > 0) out.narrow_seconds += link;
  out.gpu.terms = {
      {"kernel", out.gpu.seconds - link - launches, "ratio of roofs", true},
      {"in", link,
       human_bytes(code.touched_bytes) + " touched, from pageable memory there and what is written back",
       true}};
  if (launches > 0)
    out.gpu.terms.push_back(
        {"launch", launches, fmt::format("{:.0f} entries of its parallel loop", code.entries), true});
  return out;
}

}  // namespace fulcrum::model
