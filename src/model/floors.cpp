// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What no kernel can beat: bytes that no cache holds at the highest rate that the memory reached, flops at the peak,
// bytes that travel at the highest rate of the link. Factors from measurements know nothing of it beyond their sizes.
#include <algorithm>
#include <string_view>

#include "model/calibration.h"

namespace fulcrum::model {
namespace {

// Probes are good kernels, not the best that can be written, and rates of hosts scatter more than those of devices.
constexpr double kAboveDevice = 1.05, kAboveHost = 1.25;

double highest(const std::map<std::string, Quantity>& rates, std::string_view prefix) {
  double best = 0;
  for (const auto& [name, rate] : rates) {
    if (name.starts_with(prefix)) best = std::max(best, rate.value);
  }
  return best;
}

double over(double amount, double rate) { return rate > 0 ? std::max(0.0, amount) / rate : 0; }

double highest_peak(const GpuCeilings& gpu, const std::string& precision) {
  const auto value = [&gpu](const std::string& name) {
    const auto found = gpu.flops.find(name);
    return found == gpu.flops.end() ? 0 : found->second.value;
  };
  // Tensor units may do most of an fp32 result: three products of tf32 for one, or one that only says where to look.
  return precision == "fp32" ? std::max(value("fp32"), value("tf32")) : value(precision);
}

// The rate between any two knots: what a table says about long transfers, without its fixed part.
double link_rate(const GpuCeilings& gpu, std::initializer_list<const char*> names) {
  double best = 0;
  for (const char* name : names) {
    const auto found = gpu.link.find(name);
    if (found == gpu.link.end()) continue;
    for (std::size_t i = 1; i < found->second.size(); ++i) {
      const auto& [before, then] = found->second[i - 1];
      const auto& [bytes, now] = found->second[i];
      // Small transfers differ by less than their noise.
      constexpr std::int64_t kLong = 1 << 20;
      if (bytes > kLong && now.value > then.value)
        best = std::max(best, static_cast<double>(bytes - before) / (now.value - then.value));
    }
  }
  return best;
}

}  // namespace

double least_kernel_seconds(const Call& call, const GpuCeilings& gpu) {
  const double held = call.cache == Cache::cold ? 0 : static_cast<double>(gpu.l2_bytes);
  const double memory = over(call.work.bytes() - held, highest(gpu.rates, "hbm_"));
  const double compute = over(call.work.flops, highest_peak(gpu, call.precision));
  return std::max(memory, compute) / kAboveDevice;
}

double least_seconds(const Call& call, const GpuCeilings& gpu, const GpuUse& use) {
  const double kernel = least_kernel_seconds(call, gpu);
  const bool travels =
      use.regime == Regime::roundtrip || use.regime == Regime::overlapped || use.regime == Regime::reuse;
  if (!travels) return kernel;
  const double in = over(call.work.link_in_bytes, link_rate(gpu, {"pinned_h2d", "mapped_read"}));
  const double out = over(call.work.link_out_bytes, link_rate(gpu, {"pinned_d2h", "mapped_write"}));
  const double calls =
      use.regime == Regime::reuse ? static_cast<double>(std::max<std::int64_t>(1, use.reuse)) : 1;
  return std::max(kernel, std::max(in, out) / calls / kAboveDevice);
}

double least_seconds(const Call& call, const CpuCeilings& cpu, int threads) {
  if (cpu.levels.empty()) return 0;
  const bool all = threads > 1;
  double held = 0;
  for (std::size_t i = 0; i + 1 < cpu.levels.size(); ++i) {
    const MemoryLevel& level = cpu.levels[i];
    const int instances = std::max(1, cpu.threads / std::max(1, level.shared_by_threads));
    held += static_cast<double>(level.capacity_bytes) * instances;
  }
  if (call.cache == Cache::cold) held = 0;
  const MemoryLevel& memory = cpu.levels.back();
  const double rate = std::max(highest(memory.one_thread, ""), all ? highest(memory.all_threads, "") : 0);
  const double peak =
      std::max(highest(cpu.flops_one_thread, ""), all ? highest(cpu.flops_all_threads, "") : 0);
  return std::max(over(call.work.bytes() - held, rate), over(call.work.flops, peak)) / kAboveHost;
}

void hold_to(Formula& formula, double least, std::string name) {
  if (!formula.missing.empty() || formula.seconds >= least) return;
  formula.add(std::move(name), least - formula.seconds,
              "what memory, arithmetic and link take at their highest rates");
}

}  // namespace fulcrum::model
