// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules share: gains by simulation, kernels grouped by name, words for shares and names. All of it is
// deterministic: the same facts give the same text.
#pragma once

#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

// Gains.

/// The shortest a kernel gets, whatever it does: start, one block, end.
inline constexpr std::int64_t kDurationFloorNs = 2000;

/// Shares of the timeline that a change would save.
struct Gain {
  double low = 0, high = 0;
  Change change;           // the one of the high end
  bool simulated = false;  // false: the sum of what the ops lose, an upper bound
};
/// Both ends by simulation, in order and within 0 to 0.99.
Gain simulate(const Facts&, const Change& low, Change high);
/// For bounds: the low end is 0. Without a simulation the high end is what the ops themselves lose.
Gain simulate_up_to(const Facts&, Change high);
/// Takes the gain over and makes the finding one that has a gain: diagnose() then drops it when that is too small, and
/// sets its severity. Findings that never had one stay `info` and are shown.
void add_gain(Finding&, Gain);

/// The ops of kernels shorter by these shares of their own time.
Gain kernel_gain(const Facts&, std::span<const std::uint32_t> ops, double low_local, double high_local);

/// Both at once: the shorter of two durations, all that either leaves out.
Change merged(Change, const Change&);
/// Every op of these to `share` of its time, but not below the duration floor; ops that are shorter stay.
void shorten(const Facts&, Change&, std::span<const std::uint32_t> ops, double share,
             std::int64_t floor_ns = kDurationFloorNs);

// What is not there.

NotChecked not_checked(std::string_view rule, std::string why, std::string hint);
/// Why a rule that needs the host's calls or a simulation cannot look; none: it can.
std::optional<NotChecked> needs_calls(const Facts&, std::string_view rule);
std::optional<NotChecked> needs_simulation(const Facts&, std::string_view rule);
std::optional<NotChecked> needs_kernels(const Facts&, std::string_view rule);

// Kernels.

/// Kernels of one name at all the shapes that a rule picked; the longest first.
struct Group {
  std::string name;  // short
  std::vector<const Timeline::Kernel*> kernels;
  std::vector<std::uint32_t> ops;  // of all of them
  double seconds = 0, share = 0;
  const Timeline::Kernel& first() const { return *kernels.front(); }
};
/// Groups with the most time first.
template <class Pick>
std::vector<Group> groups(const Facts&, Pick pick);
const LaunchShape& shape_of(const Facts&, const Timeline::Kernel&);
/// The device that the kernel's ops ran on; null: not in the trace.
const GpuTrace::Device* device_of(const Facts&, const Timeline::Kernel&);
/// Some ops for the page: the first, at most eight.
std::vector<std::uint32_t> some(std::span<const std::uint32_t>);
/// Share of the kernel's time with another kernel beside it on the device, 0 to 1.
double beside_others(const Facts&, const Timeline::Kernel&);
/// A counter of the kernel from `ncu --csv`; none: not in the file, or no file.
std::optional<double> metric(const Facts&, const Timeline::Kernel&, std::string_view name);

// Words.

std::string percent(double share);                   // "3.4 %", "45 %"
std::string percent(double low, double high);        // "1.2-4.5 %"
std::string short_name(std::string_view demangled);  // without arguments, namespaces and most of its template
/// Iterations, at least 1: what totals are divided by for "every step".
double steps(const Facts&);
bool has_steps(const Facts&);
/// "every step" or "in this run"; "76 a step" or "76"; "1.2 ms a step" or "1.2 ms".
std::string every_step(const Facts&);
std::string count_text(const Facts&, double total, std::string_view what);  // "76 kernels a step"
std::string time_text(const Facts&, double total_seconds);
/// "12 launches a step, median 4.2 us, 31 % of the time"
std::string launches_text(const Facts&, const Group&);

// Implementation.

std::vector<Group> grouped(const Facts&, std::span<const Timeline::Kernel* const>);
template <class Pick>
std::vector<Group> groups(const Facts& facts, Pick pick) {
  std::vector<const Timeline::Kernel*> picked;
  for (const Timeline::Kernel& kernel : facts.timeline.kernels) {
    if (!kernel.ops.empty() && kernel.shape < facts.trace.shapes.size() && pick(kernel)) {
      picked.push_back(&kernel);
    }
  }
  return grouped(facts, picked);
}

}  // namespace fulcrum::diagnose
