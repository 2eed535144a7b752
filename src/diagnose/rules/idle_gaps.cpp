// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU idles while the host is outside the CUDA API: computing, reading files, sleeping. What is lost to launches,
// waits, allocations and copies belongs to the rules about these. With CPU samples the finding names the function.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::int64_t kShortestNs = 10'000;
constexpr std::size_t kLeastGaps = 3;
constexpr double kSurelyOverlaps = 0.65;  // of what the GPU's own work could hide
// Ahead of the GPU the host works on another buffer than the one before, and beside copies: where a step takes as long
// as its work, that may become slower.
constexpr double kSlowerHost = 0.1;

struct Gaps {
  Change change;
  double seconds = 0, longest = 0;
  std::map<std::string, double> functions;
  std::vector<std::uint32_t> ops, calls;
};

Gaps gaps_of(const Facts& facts, const Joined& joined, std::span<const Idle> idle) {
  Gaps gaps;
  for (const Idle& i : idle) {
    if (i.owner != Owner::host || i.gap->end_ns - i.gap->begin_ns < kShortestNs) continue;
    gaps.seconds += double(i.lost_ns) * 1e-9;
    gaps.longest = std::max(gaps.longest, double(i.lost_ns) * 1e-9);
    if (!i.gap->function.empty()) gaps.functions[i.gap->function] += double(i.lost_ns) * 1e-9;
    gaps.ops.push_back(i.gap->after);
    // Host time between the end of the GPU's work and the launch that ended the gap.
    std::int64_t call = joined.call_of_op[i.gap->after];
    if (call >= 0) gaps.calls.push_back(std::uint32_t(call));
    while (call >= 0 && facts.trace.calls[std::size_t(call)].begin_ns >= i.gap->begin_ns) {
      gaps.change.host_before_ns[std::uint32_t(call)] = 0;
      call = joined.before(std::uint32_t(call));
    }
  }
  return gaps;
}

std::string functions_text(const Gaps& gaps) {
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [name, seconds] : gaps.functions) most.emplace_back(seconds, name);
  std::sort(most.rbegin(), most.rend());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, most.size()); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", most[i].second, percent(most[i].first / gaps.seconds));
  }
  return text;
}

double busy_seconds(const Facts& facts) { return facts.timeline.busy_share() * facts.timeline.seconds; }

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "idle_gaps")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const std::vector<Idle> idle = idle_times(facts, joined);
  Gaps gaps = gaps_of(facts, joined, idle);
  const double all = facts.timeline.seconds;
  if (gaps.ops.size() < kLeastGaps || gaps.seconds < facts.threshold * all) return {};
  const double high = std::min(gaps.seconds, saved_seconds(facts, gaps.change));
  // At the least the host's work is done while the GPU does its own.
  const double busy = busy_seconds(facts);
  const double overlaps = kSurelyOverlaps * std::min(gaps.seconds, busy);
  const double slower = gaps.seconds > busy ? kSlowerHost * gaps.seconds : 0;
  const double low = std::min(high, std::max(overlaps - slower, overlaps / 2));

  Finding finding;
  finding.subject = "host";
  finding.grade = Evidence::measured;
  const std::string functions = functions_text(gaps);
  finding.claim =
      functions.empty()
          ? fmt::format("The GPU idles {} of the time while the host computes", percent(gaps.seconds / all))
          : fmt::format("The GPU idles {} of the time while the host is in {}", percent(gaps.seconds / all),
                        functions.substr(0, functions.rfind(' ', functions.find(" %") - 1)));
  finding.evidence.push_back(
      fmt::format("{}, {} in all, the longest {}; the host launches, copies and waits "
                  "for nothing in them",
                  count_text(facts, double(gaps.ops.size()), "gaps"), time_text(facts, gaps.seconds),
                  human_seconds(gaps.longest)));
  finding.evidence.push_back(functions.empty() ? "which function that is: not checked (trace --with-cpu)"
                                               : "host functions in them: " + functions);
  finding.next_step =
      "prepare the next step while the GPU works on this one (another thread, or launch first and compute "
      "then), or "
      "make that work shorter";
  finding.verify = verify_by_difference();
  finding.ops = some(gaps.ops);
  finding.calls = some(gaps.calls);
  add_gain(finding, range(facts, low, high, 0, std::move(gaps.change)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule idle_gaps() {
  return Rule{.id = "idle_gaps",
              .looks_for = "a GPU that idles while the host computes",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
