// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Clocks that were held down while the GPU worked. Only what the SMs limit gets slower with them, T (1 - f/f_max); what
// waits for memory does not. A card at its power limit is as fast as it gets: that is said without a gain.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "throttle";
constexpr double kSlow = 0.95;              // of the highest clock
constexpr double kSlowAtPowerLimit = 0.85;  // such cards seldom run at their highest clock under load
constexpr double kLeastShare = 0.2;         // of the samples
constexpr double kMemoryBound = 0.6;

struct Reason {
  std::uint64_t bit;
  std::string_view text, next;
};
// NVML's bits. Idle (1) and sync boost (16) are no throttling; a display's clock (256) is none of a program's.
constexpr std::uint64_t kPowerLimit = 0x4;
constexpr Reason kReasons[] = {
    {0x40, "hardware thermal slowdown", "look at cooling and airflow"},
    {0x20, "software thermal slowdown", "look at cooling and airflow"},
    {0x80, "power brake", "look at the power supply"},
    {0x8, "hardware slowdown", "look at power supply and cooling"},
    {0x2, "application clocks set below the maximum", "nvidia-smi -rac resets them"},
    {kPowerLimit, "power limit",
     "nothing in the program: nvidia-smi -pl raises the limit where that is allowed"},
};

struct Slow {
  double mhz = 0, of_mhz = 0, share = 0;
  std::size_t samples = 0;
  const Reason* reason = nullptr;
};

// Samples of a device in the timeline that a reason held down.
Slow slow_samples(const Facts& facts, const GpuTrace::Device& device) {
  Slow out{.of_mhz = device.max_sm_mhz};
  double sum_mhz = 0;
  std::size_t held = 0;
  std::map<std::uint64_t, std::size_t> bits;
  for (const GpuTrace::Clock& clock : facts.trace.clocks) {
    const bool working = (clock.reasons & 1) == 0;
    if (clock.device != device.id || clock.sm_mhz <= 0 || !working || clock.at_ns < facts.timeline.begin_ns ||
        clock.at_ns > facts.timeline.end_ns) {
      continue;
    }
    ++out.samples;
    for (const Reason& reason : kReasons) {
      if ((clock.reasons & reason.bit) == 0) continue;
      ++bits[reason.bit];
      ++held;
      sum_mhz += clock.sm_mhz;
      break;
    }
  }
  if (held == 0) return out;
  out.mhz = sum_mhz / double(held);
  out.share = double(held) / double(out.samples);
  std::size_t most = 0;
  for (const Reason& reason : kReasons) {
    if (bits[reason.bit] > most) most = bits[reason.bit], out.reason = &reason;
  }
  return out;
}

Finding about(const Facts& facts, const GpuTrace::Device& device, const Slow& slow) {
  Finding finding{.claim = fmt::format("The clock of GPU {} is held at {:.0f} of {:.0f} MHz: {}", device.id,
                                       slow.mhz, slow.of_mhz, slow.reason->text),
                  .evidence = {fmt::format("in {} of {} samples while the GPU worked", percent(slow.share),
                                           slow.samples)},
                  .next_step = std::string(slow.reason->next),
                  .grade = Evidence::bounded,
                  .subject = fmt::format("GPU {}", device.id)};
  if (slow.reason->bit == kPowerLimit) return finding;
  Change change;
  for (const Timeline::Kernel& kernel : facts.timeline.kernels) {
    const GpuTrace::Device* own = device_of(facts, kernel);
    if (own == nullptr || own->id != device.id || kernel.dram_share >= kMemoryBound) continue;
    shorten(facts, change, kernel.ops, 1 - slow.share * (1 - slow.mhz / slow.of_mhz));
  }
  add_gain(finding, simulate_up_to(facts, std::move(change)));
  return finding;
}

Looked look(const Facts& facts) {
  Looked looked;
  if (facts.trace.clocks.empty()) {
    looked.not_checked =
        not_checked(kId, "no clocks were read", "NVML must be there: `fulcrum doctor` looks");
    return looked;
  }
  bool seen = false;
  for (const GpuTrace::Device& device : facts.trace.devices) {
    const Slow slow = slow_samples(facts, device);
    seen = seen || (slow.samples > 0 && device.max_sm_mhz > 0);
    if (slow.reason == nullptr || slow.of_mhz <= 0 || slow.share < kLeastShare) continue;
    const double limit = slow.reason->bit == kPowerLimit ? kSlowAtPowerLimit : kSlow;
    if (slow.mhz < limit * slow.of_mhz) looked.findings.push_back(about(facts, device, slow));
  }
  if (!seen)
    looked.not_checked = not_checked(kId, "no clock was read while the GPU worked", "trace a longer run");
  return looked;
}

}  // namespace

Rule throttle() {
  return Rule{.id = kId,
              .looks_for = "clocks held down by heat, power or a setting while the GPU worked",
              .needs = "clocks (NVML)",
              .look = look};
}

}  // namespace fulcrum::diagnose
