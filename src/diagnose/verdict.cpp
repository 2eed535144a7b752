// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One sentence about the whole run: how busy the GPU is, and what the rest of the time goes to.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kBusyEnough = 0.9;     // above, gaps are not what the run waits for
constexpr double kCopiesMatter = 0.3;   // share of the time with copies and no kernel
constexpr double kKernelsMatter = 0.5;  // below, which kernels fill the little busy time does not matter
constexpr double kLeastShare = 0.05;    // of the time, to be named
constexpr std::size_t kLongestInVerdict = 40;

// What the first finding makes of the run, in a word or two.
struct Bound {
  std::string_view rule, by;
};
constexpr Bound kBounds[] = {
    {"launch_bound", "kernel launches"},
    {"idle_gaps", "the host's own work"},
    {"sync_stall", "waits of the host"},
    {"alloc_in_loop", "allocations"},
    {"setup_in_loop", "what it sets up again and again"},
    {"pageable_copy", "copies"},
    {"small_copies", "copies"},
    {"redundant_copy", "copies"},
    {"no_overlap", "copies that run alone"},
    {"default_stream", "the default stream"},
    {"managed_faults", "page faults"},
    {"small_grid", "kernels that leave SMs idle"},
    {"tail", "kernels that leave SMs idle"},
    {"throttle", "the GPU's clock"},
    {"one_off", "what it does once, at its start"},
    {"low_occupancy", "its kernels' latencies"},
    {"spill", "its kernels' local memory"},
    {"tensor_unused", "its matrix products"},
};

std::string_view words(GapCause cause) {
  switch (cause) {
    case GapCause::host:
      return "for the host, which is outside CUDA";
    case GapCause::launch:
      return "for launch calls";
    case GapCause::sync:
      return "for the host, which waits for the GPU before it goes on";
    case GapCause::alloc:
      return "for memory to be allocated or freed";
    case GapCause::copy:
      return "for synchronous copies to be set up";
    case GapCause::dependency:
      return "for another stream";
    case GapCause::queue:
      return "between one op and the next";
    case GapCause::module_load:
      return "for code to be loaded";
    case GapCause::unknown:
      break;
  }
  return "for reasons that the trace does not show";
}

// The cause with the most idle time, and its share of the timeline.
std::pair<GapCause, double> biggest_gap(const Facts& facts) {
  std::map<GapCause, double> seconds;
  for (const Timeline::Gap& gap : facts.timeline.gaps) {
    if (gap.steady) seconds[gap.cause] += double(gap.end_ns - gap.begin_ns) * 1e-9;
  }
  std::pair<GapCause, double> most{GapCause::unknown, 0};
  for (const auto& [cause, sum] : seconds) {
    if (sum > most.second) most = {cause, sum};
  }
  if (facts.timeline.seconds > 0) most.second = std::min(1.0, most.second / facts.timeline.seconds);
  return most;
}

const Timeline::Device* busiest(const Timeline& timeline) {
  const auto found =
      std::max_element(timeline.devices.begin(), timeline.devices.end(),
                       [](const auto& a, const auto& b) { return a.busy_seconds < b.busy_seconds; });
  return found == timeline.devices.end() ? nullptr : &*found;
}

// "gemm 61 % (at 88 % of the memory's peak), softmax 12 %"
std::string top_kernels(const Facts& facts, std::size_t most) {
  std::string text;
  const std::vector<Group> all = groups(facts, [](const Timeline::Kernel&) { return true; });
  // Kernels side by side take more than all of the time; then shares are of what kernels take together.
  double sum = 0;
  for (const Group& group : all) sum += group.share;
  const double whole = std::max(1.0, sum);
  for (std::size_t i = 0; i < std::min(most, all.size()) && all[i].share / whole >= kLeastShare; ++i) {
    const Timeline::Kernel& kernel = all[i].first();
    std::string name = all[i].name;
    if (name.size() > kLongestInVerdict) name = name.substr(0, kLongestInVerdict - 3) + "...";
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name, percent(all[i].share / whole));
    const double memory = kernel.dram_share, tensor = kernel.tensor_share;
    if (memory >= 0 && memory >= tensor)
      text += fmt::format(" (at {} of the memory's peak)", percent(memory));
    if (tensor > memory) text += fmt::format(" (tensor cores busy {})", percent(tensor));
  }
  return text;
}

std::string_view bound_by(const Facts& facts, const Diagnosis& diagnosis) {
  if (!diagnosis.findings.empty() && diagnosis.findings.front().severity != Severity::info) {
    for (const Bound& bound : kBounds) {
      if (bound.rule == diagnosis.findings.front().id) return bound.by;
    }
  }
  if (facts.timeline.busy_share() < kBusyEnough) return "";
  const Timeline::Device* device = busiest(facts.timeline);
  return device->exposed_copy_seconds + device->copy_seconds > 2 * device->kernel_seconds ? "its copies"
                                                                                          : "its kernels";
}

}  // namespace

std::string verdict(const Facts& facts, const Diagnosis& diagnosis) {
  const Timeline& timeline = facts.timeline;
  const Timeline::Device* device = busiest(timeline);
  if (device == nullptr || device->ops == 0 || timeline.seconds <= 0) {
    return "Nothing ran on a GPU while the program was traced.";
  }
  const double busy = timeline.busy_share(), copies = device->exposed_copy_seconds / timeline.seconds;
  const std::string of =
      has_steps(facts) ? fmt::format("each step ({})", human_seconds(timeline.iterations.median_seconds))
                       : fmt::format("the {} traced", human_seconds(timeline.seconds));
  const std::string_view by = bound_by(facts, diagnosis);
  std::string text = by.empty() ? "The" : fmt::format("Bound by {}: the", by);
  text += fmt::format(" GPU is busy {} of {}", percent(busy), of);
  const auto [cause, idle] = biggest_gap(facts);
  if (by.empty() && idle > copies) text += fmt::format(" and idle {} of it {}", percent(idle), words(cause));
  if (copies > kCopiesMatter)
    text += fmt::format(", {} with copies and no kernel beside them", percent(copies));
  text += ".";
  const std::string kernels = busy >= kKernelsMatter ? top_kernels(facts, 3) : "";
  if (!kernels.empty()) text += fmt::format(" Most time: {}.", kernels);
  const bool any = std::any_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                               [](const Finding& finding) { return finding.severity != Severity::info; });
  if (!any) text += " Nothing was found that is worth changing.";
  return text;
}

}  // namespace fulcrum::diagnose
