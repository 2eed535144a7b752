// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which part of a run the page shows event by event.
#include <algorithm>
#include <cmath>
#include <limits>

#include "report/trace_view.h"

namespace fulcrum::report {
namespace {

std::int64_t events_in(const GpuTrace& trace, const Stretch& stretch) {
  const auto count = [&](const auto& list) {
    return std::count_if(list.begin(), list.end(),
                         [&](const auto& one) { return inside(one.begin_ns, one.end_ns, stretch); });
  };
  return count(trace.ops) + count(trace.calls) + count(trace.ranges);
}

/// When the event begins that would be one too many.
std::int64_t end_of_so_many(const GpuTrace& trace, const Stretch& stretch, std::int64_t most) {
  std::vector<std::int64_t> begins;
  const auto add = [&](const auto& list) {
    for (const auto& one : list) {
      if (inside(one.begin_ns, one.end_ns, stretch)) begins.push_back(one.begin_ns);
    }
  };
  add(trace.ops);
  add(trace.calls);
  add(trace.ranges);
  if (static_cast<std::int64_t>(begins.size()) <= most) return stretch.end_ns;
  const auto nth = begins.begin() + most;
  std::nth_element(begins.begin(), nth, begins.end());
  return std::max(*nth, stretch.begin_ns + 1);
}

// How far from the length that most iterations have: where the first finding is, and elsewhere.
constexpr double kAtThePlace = 0.5, kNearEnough = 0.15;

/// `count` neighbouring iterations whose length is near what most take, the nearer to `near_ns` the better.
Stretch typical(const Timeline::Iterations& each, std::int64_t count, std::int64_t near_ns) {
  const double wanted = each.median_seconds * 1e9 * static_cast<double>(count);
  const std::int64_t last = each.count() - count;  // where such a stretch can begin
  const auto after = std::upper_bound(each.begins_ns.begin(), each.begins_ns.end(), near_ns);
  const std::int64_t first = std::clamp<std::int64_t>(after - each.begins_ns.begin() - 1, 0, last);
  Stretch best;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t step = 0; step <= 2 * last; ++step) {
    const std::int64_t at = first + (step % 2 == 0 ? step / 2 : -(step + 1) / 2);
    if (at < 0 || at > last) continue;
    const auto i = static_cast<std::size_t>(at);
    const std::int64_t begin_ns = each.begins_ns[i],
                       end_ns = each.begins_ns[i + static_cast<std::size_t>(count)];
    const double off = std::fabs(static_cast<double>(end_ns - begin_ns) - wanted);
    if (!(off < least)) continue;
    least = off;
    best = {.begin_ns = begin_ns, .end_ns = end_ns, .iterations = count};
    if (off < (begin_ns <= near_ns && near_ns < end_ns ? kAtThePlace : kNearEnough) * wanted) break;
  }
  return best;
}

/// Three, or more where iterations hold next to nothing.
std::int64_t iterations_to_show(const GpuTrace& trace, const Timeline& timeline) {
  constexpr double kFewEvents = 60, kMostIterations = 30;
  const auto count = static_cast<double>(timeline.iterations.count());
  const double events = static_cast<double>(trace.ops.size() + trace.calls.size());
  if (!(count > 0) || !(events > 0)) return static_cast<std::int64_t>(count);
  const double wanted = std::clamp(std::ceil(kFewEvents * count / events), 3.0, kMostIterations);
  return static_cast<std::int64_t>(std::min(wanted, count));
}

/// Where the first finding that names ops has them; the middle of the run without any.
std::int64_t place_of_interest(const GpuTrace& trace, const Timeline& timeline, const Diagnosis& diagnosis) {
  for (const Finding& finding : diagnosis.findings) {
    if (finding.ops.empty()) continue;
    const std::uint32_t middle = finding.ops[finding.ops.size() / 2];
    if (middle < trace.ops.size()) return trace.ops[middle].begin_ns;
  }
  return timeline.begin_ns + (timeline.end_ns - timeline.begin_ns) / 2;
}

}  // namespace

Stretch choose_stretch(const GpuTrace& trace, const Timeline& timeline, const Diagnosis& diagnosis,
                       std::int64_t most) {
  const std::int64_t near_ns = place_of_interest(trace, timeline, diagnosis);
  Stretch stretch;
  for (std::int64_t count = iterations_to_show(trace, timeline); count > 0;
       count = count > 3 ? 3 : count - 1) {
    stretch = typical(timeline.iterations, count, near_ns);
    stretch.items = events_in(trace, stretch);
    if (stretch.items <= most) return stretch;
  }
  if (trace.ops.empty()) return stretch;
  // One iteration is too much, or there are none: from its beginning, or from the place itself.
  if (stretch.iterations == 0) {
    stretch = {.begin_ns = trace.ops.front().begin_ns, .end_ns = timeline.end_ns};
    for (const GpuTrace::Op& op : trace.ops) stretch.end_ns = std::max(stretch.end_ns, op.end_ns);
    stretch.items = events_in(trace, stretch);
    if (stretch.items <= most) return stretch;
    stretch.begin_ns = std::clamp(near_ns, stretch.begin_ns, stretch.end_ns - 1);
  }
  stretch.iterations = 0;
  stretch.end_ns = end_of_so_many(trace, stretch, most);
  stretch.items = events_in(trace, stretch);
  return stretch;
}

}  // namespace fulcrum::report
