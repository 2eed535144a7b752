// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop of a program: a named range that repeats, or else what it launches (sequence.cpp). Warm-up in front and
// whatever comes behind are left out.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

/// Ranges of one name on one thread, that do not lie in each other.
struct Named {
  std::vector<const GpuTrace::Range*> ranges;
  std::int64_t covered_ns = 0;
};

/// GPU time of what the calls inside a range launched into a stream, or into any where that is nothing; counts them.
Span work_of(const Joined& joined, const GpuTrace::Range& range, std::uint32_t process, std::uint32_t stream,
             std::size_t& launches) {
  Span work{INT64_MAX, INT64_MIN}, any = work;
  auto c = std::lower_bound(
      joined.calls.begin(), joined.calls.end(), range.begin_ns,
      [&](std::uint32_t call, std::int64_t at) { return joined.trace.calls[call].begin_ns < at; });
  for (; c != joined.calls.end() && joined.trace.calls[*c].begin_ns < range.end_ns; ++c) {
    if (joined.call_process[*c] != process) continue;
    launches += !joined.caused_by(*c).empty();
    for (const auto i : joined.caused_by(*c)) {
      Span& span = joined.op(i).stream == stream ? work : any;
      span = {std::min(span.begin_ns, joined.begin_ns[i]), std::max(span.end_ns, joined.end_ns[i])};
    }
  }
  return work.end_ns < work.begin_ns ? any : work;
}

bool from_ranges(const Joined& joined, Timeline::Iterations& result) {
  std::map<std::pair<std::uint32_t, std::string>, Named> groups;
  std::vector<const GpuTrace::Range*> ranges;
  for (const auto& range : joined.trace.ranges) ranges.push_back(&range);
  std::stable_sort(ranges.begin(), ranges.end(), [](auto* a, auto* b) { return a->begin_ns < b->begin_ns; });
  for (const auto* range : ranges) {
    if (range->thread >= joined.trace.threads.size() || range->end_ns <= range->begin_ns) continue;
    Named& named = groups[{range->thread, range->name}];
    if (!named.ranges.empty() && range->begin_ns < named.ranges.back()->end_ns) continue;
    named.ranges.push_back(range);
    named.covered_ns += range->end_ns - range->begin_ns;
  }
  const std::pair<const std::pair<std::uint32_t, std::string>, Named>* best = nullptr;
  for (const auto& group : groups) {
    if (group.second.ranges.size() < 3) continue;
    if (!best || group.second.covered_ns > best->second.covered_ns) best = &group;
  }
  if (!best) return false;
  const auto process = joined.trace.threads[best->first.first].process;
  const auto stream = main_stream(joined, process);
  std::vector<std::int64_t> begins;
  std::int64_t end = 0, busy_ns = 0, all_ns = 0;
  std::size_t launches = 0;
  for (const auto* range : best->second.ranges) {
    const Span work = work_of(joined, *range, process, stream, launches);
    if (work.end_ns < work.begin_ns) continue;
    begins.push_back(begins.empty() ? work.begin_ns : std::max(begins.back(), work.begin_ns));
    end = std::max(end, work.end_ns);
  }
  if (begins.size() < 3) return false;
  // Ranges that libraries put around their own launches hold one each and cover little of the time.
  const auto& named = best->second;
  const auto span_ns = named.ranges.back()->end_ns - named.ranges.front()->begin_ns;
  if (launches < 2 * named.ranges.size() && 4 * named.covered_ns < span_ns) return false;
  for (const auto i : joined.ops) {
    const auto ns = joined.end_ns[i] - joined.begin_ns[i];
    all_ns += ns;
    if (joined.begin_ns[i] >= begins.front() && joined.begin_ns[i] < end) busy_ns += ns;
  }
  if (2 * busy_ns < all_ns) return false;  // a detail that is named, not the loop
  begins.push_back(end);
  result.begins_ns = std::move(begins);
  result.how = fmt::format("NVTX range '{}'", best->first.second);
  return true;
}

/// How many iterations at the front are warm-up: code is loaded in them, or they take far longer than later ones.
std::size_t warm_up(const Joined& joined, const std::vector<std::int64_t>& begins) {
  const std::size_t count = begins.size() - 1;
  std::vector<double> later;
  for (std::size_t i = count / 2; i < count; ++i) later.push_back(double(begins[i + 1] - begins[i]));
  const double usual = quantile(later, 0.5), high = quantile(later, 0.95);
  std::size_t skip = 0;
  while (skip < count / 2 && double(begins[skip + 1] - begins[skip]) > std::max(1.5 * usual, 1.2 * high))
    ++skip;
  for (const auto& overhead : joined.trace.overheads) {
    const bool code =
        overhead.what == "jit" || overhead.what == "module load" || overhead.what == "lazy load";
    if (!code || double(overhead.end_ns - overhead.begin_ns) < 0.05 * usual) continue;
    const auto at = std::upper_bound(begins.begin(), begins.end(), overhead.begin_ns) - begins.begin();
    if (at > 0 && std::size_t(at) <= std::max<std::size_t>(1, count / 5))
      skip = std::max(skip, std::size_t(at));
  }
  return std::min(skip, count - 1);
}

}  // namespace

void find_iterations(const Joined& joined, Timeline& result) {
  Timeline::Iterations found;
  if (!joined.ops.empty() && (from_ranges(joined, found) || find_repeats(joined, found)) &&
      found.count() >= 2) {
    auto& begins = found.begins_ns;
    begins.erase(begins.begin(), begins.begin() + std::ptrdiff_t(warm_up(joined, begins)));
    std::vector<double> seconds;
    for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
      // An iteration with a hole in it, where nothing was traced, says nothing about how long one takes.
      const double seen = seconds_of(clipped(joined.windows, begins[i], begins[i + 1]));
      if (const double length = double(begins[i + 1] - begins[i]) * 1e-9; seen >= 0.999 * length) {
        seconds.push_back(length);
      }
    }
    found.median_seconds = quantile(seconds, 0.5);
    found.low_seconds = quantile(seconds, 0.05);
    found.high_seconds = quantile(seconds, 0.95);
    if (!seconds.empty() && found.median_seconds > 0) result.iterations = std::move(found);
  }
  if (result.iterations.count()) {
    result.begin_ns = result.iterations.begins_ns.front();
    result.end_ns = result.iterations.begins_ns.back();
  } else if (!joined.windows.empty()) {
    result.begin_ns = joined.windows.front().begin_ns;
    result.end_ns = joined.windows.back().end_ns;
  }
}

}  // namespace fulcrum::trace
