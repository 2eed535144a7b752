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

constexpr double kBusyEnough = 0.9;    // above, gaps are not what the run waits for
constexpr double kCopiesMatter = 0.3;  // share of the time with copies and no kernel

std::string_view words(GapCause cause) {
  switch (cause) {
    case GapCause::host:
      return "for the host to compute";
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

// "gemm 61 % of the time at 88 % of the memory's peak, softmax 12 %"
std::string top_kernels(const Facts& facts, std::size_t most) {
  std::string text;
  const std::vector<Group> all = groups(facts, [](const Timeline::Kernel&) { return true; });
  for (std::size_t i = 0; i < std::min(most, all.size()); ++i) {
    const Timeline::Kernel& kernel = all[i].first();
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", all[i].name, percent(all[i].share));
    const double memory = kernel.dram_share, tensor = kernel.tensor_share;
    if (memory >= 0 && memory >= tensor)
      text += fmt::format(" (at {} of the memory's peak)", percent(memory));
    if (tensor > memory) text += fmt::format(" (tensor cores busy {})", percent(tensor));
  }
  return text;
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
  std::string text = fmt::format("The GPU is busy {} of {}", percent(busy), of);
  const auto [cause, idle] = biggest_gap(facts);
  if (busy < kBusyEnough && idle > copies) {
    text += fmt::format(" and idle {} of it {}", percent(idle), words(cause));
  } else if (copies > kCopiesMatter) {
    text += fmt::format(", {} with copies and no kernel beside them", percent(copies));
  }
  text += fmt::format(". Most time: {}.", top_kernels(facts, 3));
  if (timeline.kernels.empty()) text = text.substr(0, text.rfind(" Most time"));
  if (diagnosis.findings.empty()) text += " Nothing was found that is worth changing.";
  return text;
}

}  // namespace fulcrum::diagnose
