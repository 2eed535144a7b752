// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See widths.h.
#include "executor/widths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace fulcrum::executor {
namespace {

// What disturbs a machine holds up threads first: one that waits for a core makes all of them wait. A call on threads that
// took far longer than the same call on fewer of them, the one time that it was looked at, says nothing about the kernel.
// Seconds later it is over: what takes as long at a second look is what it takes. (Sixteen threads of oneDNN take 40 to
// 80 us where one takes 14 to 38, at some shapes and always: without those times they were predicted to take 13 to 36.)
constexpr double kSpikeRatio = 1.5, kSpikeSeconds = 10e-6;
constexpr int kKnownLooks = 2;
// Nobody's threads take so long but those that wait for each other without a core: 40 ms where one takes 0.08.
constexpr double kAbsurdRatio = 5, kAbsurdSeconds = 100e-6;
constexpr int kLeastHeldUp = 2;
// Of what the call takes otherwise, that one spike counts for: how long another program has a core is its affair, and a
// hundred times a short call is no hundred times as much to fear.
constexpr double kMostLost = 3;
// More than this share of all calls: that is what the threads cost. Sixteen of a library, woken one by one for calls of a
// few microseconds, take 40 each time.
constexpr double kMostHeldUp = 0.5;

}  // namespace

std::vector<Width> widths_of(std::span<const Candidate> candidates) {
  std::vector<Width> widths;
  std::map<std::string, int> families, groups;
  const auto number = [](std::map<std::string, int>& of, const std::string& name) {
    return of.emplace(name, static_cast<int>(of.size()) + 1).first->second;
  };
  for (const Candidate& candidate : candidates) {
    const backends::Kernel& kernel = candidate.kernel;
    std::string variant(kernel.variant());
    const std::string_view backend = kernel.backend().name();
    const bool library = backend == "cpulib";
    const bool plain = variant == "default" || variant == "t" + std::to_string(candidate.threads);
    Width width{0, candidate.threads};
    width.group = number(
        groups, fmt::format("{}/{}/{}", backend, library ? variant.substr(0, variant.find('_')) : variant,
                            candidate.threads));
    if (candidate.place == Place::host && (library || (plain && backend == "threads"))) {
      if (library && variant.ends_with("_t1")) variant.resize(variant.size() - 3);
      width.family =
          number(families, fmt::format("{}/{}", library ? variant : std::string(backend), kernel.dtype()));
    }
    widths.push_back(width);
  }
  return widths;
}

std::vector<int> singles_of(std::span<const Candidate> candidates) {
  std::vector<int> singles(candidates.size(), -1);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const backends::Kernel& kernel = candidates[c].kernel;
    const bool ours = kernel.backend().name() == "threads";
    if (candidates[c].place != Place::host || candidates[c].threads <= 1) continue;
    std::string variant(kernel.variant());
    if (ours && variant == "t" + std::to_string(candidates[c].threads)) variant = "default";
    if (!ours) variant += "_t1";
    for (std::size_t other = 0; other < candidates.size(); ++other) {
      const backends::Kernel& single = candidates[other].kernel;
      const std::string_view backend = ours ? "simd" : kernel.backend().name();
      if (candidates[other].threads == 1 && single.backend().name() == backend &&
          single.variant() == variant && single.dtype() == kernel.dtype())
        singles[c] = static_cast<int>(other);
    }
  }
  return singles;
}

std::vector<PlanMaker> plan_makers_of(std::span<const Candidate> candidates) {
  const std::vector<int> singles = singles_of(candidates);
  std::vector<PlanMaker> makers;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const bool ours = candidates[c].kernel.backend().name() == "threads" && singles[c] >= 0;
    const std::size_t made_by = ours ? static_cast<std::size_t>(singles[c]) : c;
    makers.push_back(PlanMaker{candidates[made_by].kernel.entry().plan, ours ? candidates[c].threads : 1});
  }
  return makers;
}

std::vector<double> drop_spikes(std::span<const Candidate> candidates, OpPoints& points) {
  const std::vector<Width> widths = widths_of(candidates);
  std::vector<double> lost(widths.size() + 1, 0), calls(widths.size() + 1, 0);  // by group
  std::vector<int> held_up(widths.size() + 1, 0);
  std::vector<std::vector<double>> all_spikes;  // by point and candidate
  for (Point& point : points.points) {
    const std::size_t count = std::min(widths.size(), point.samples.size());
    std::vector<double> spikes(count, 0);
    for (std::size_t c = 0; c < count; ++c) {
      calls[static_cast<std::size_t>(widths[c].group)] += point.samples[c].seconds > 0;
      for (std::size_t other = 0; other < count; ++other) {
        const bool fewer = widths[c].family > 0 && widths[other].family == widths[c].family &&
                           widths[other].threads < widths[c].threads;
        const double seconds = point.samples[other].seconds, own = point.samples[c].seconds;
        const bool known =
            point.samples[c].looks >= kKnownLooks && own < kAbsurdRatio * seconds + kAbsurdSeconds;
        if (fewer && !known && seconds > 0 && own > kSpikeRatio * seconds + kSpikeSeconds)
          spikes[c] = std::max(spikes[c], std::min(own / seconds - 1, kMostLost));
      }
    }
    for (std::size_t c = 0; c < count; ++c) {
      lost[static_cast<std::size_t>(widths[c].group)] += spikes[c];
      held_up[static_cast<std::size_t>(widths[c].group)] += spikes[c] > 0;
    }
    all_spikes.push_back(std::move(spikes));
  }
  const auto is_usual = [&](const Width& width) {
    const auto group = static_cast<std::size_t>(width.group);
    return held_up[group] > kMostHeldUp * calls[group];
  };
  for (std::size_t i = 0; i < all_spikes.size(); ++i) {
    for (std::size_t c = 0; c < all_spikes[i].size(); ++c) {
      if (all_spikes[i][c] > 0 && !is_usual(widths[c])) points.points[i].samples[c].seconds = 0;
    }
  }
  std::vector<double> fears;
  for (const Width& width : widths) {
    const auto group = static_cast<std::size_t>(width.group);
    const bool is_rare = held_up[group] >= kLeastHeldUp && !is_usual(width);
    fears.push_back(is_rare ? std::log1p(lost[group] / calls[group]) : 0);
  }
  return fears;
}

}  // namespace fulcrum::executor
