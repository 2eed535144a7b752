// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Counters as rules read them: from samples that were joined to kernels by time, or from `ncu --csv`.
#pragma once

#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

/// Shares of the peak, 0 to 1; -1: not known.
struct SpeedOfLight {
  double memory = -1, compute = -1;
  bool dram_alone = false;  // `memory` is DRAM: what the caches do is not in it
  bool known() const { return memory >= 0 && compute >= 0; }
  double larger() const { return memory > compute ? memory : compute; }
};
SpeedOfLight speed_of_light(const Facts&, const Timeline::Kernel&);

/// Warps that were active, of what an SM holds, 0 to 1, by ncu; -1: not known.
inline constexpr std::string_view kActiveWarps = "sm__warps_active.avg.pct_of_peak_sustained_active";
double achieved_occupancy(const Facts&, const Timeline::Kernel&);
/// Instructions that each scheduler issued a cycle, 0 to 1; -1: not known.
double issue_rate(const Facts&, const Timeline::Kernel&);

/// Why a rule cannot look: no samples and no file of counters, or no kernel whose speed of light is known.
std::optional<NotChecked> needs_counters(const Facts&, std::string_view rule);
/// Why a rule cannot look: no kernel has all of these counters.
std::optional<NotChecked> needs_metrics(const Facts&, std::string_view rule,
                                        std::initializer_list<std::string_view> names);

}  // namespace fulcrum::diagnose
