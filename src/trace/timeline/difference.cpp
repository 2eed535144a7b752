// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How two runs differ: sums an iteration with an interval over the iterations, or sums of the whole run where one of
// them has none. What two short runs of one program differ by anyway is not called a difference.
#include <algorithm>
#include <cmath>
#include <map>

#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr double kNoise = 0.01;  // that two runs differ by though nothing was changed
constexpr double kLeastShare = 1e-3;
constexpr std::int64_t kLeastIterations = 3;

/// Sums of one run: seconds and counts by what they are of, an entry an iteration.
struct Sums {
  std::map<std::string, std::vector<double>> seconds;
  std::map<std::string, double> count;
  std::size_t parts = 0;  // iterations, or 1
  std::vector<double> lengths;
};

class Adder {
 public:
  Adder(const Timeline& timeline, bool by_iteration, Sums& sums) : sums_(sums) {
    if (by_iteration) {
      begins_ = timeline.iterations.begins_ns;
    } else {
      begins_ = {timeline.begin_ns, timeline.end_ns};
    }
    sums_.parts = begins_.size() - 1;
    for (std::size_t i = 0; i < sums_.parts; ++i)
      sums_.lengths.push_back(double(begins_[i + 1] - begins_[i]) * 1e-9);
    if (!by_iteration) sums_.lengths = {timeline.seconds};
  }
  void add(const std::string& what, std::int64_t begin_ns, std::int64_t end_ns) {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), begin_ns);
    if (after == begins_.begin() || after == begins_.end()) return;
    auto& seconds = sums_.seconds[what];
    seconds.resize(sums_.parts);
    seconds[std::size_t(after - begins_.begin() - 1)] += double(end_ns - begin_ns) * 1e-9;
    sums_.count[what] += 1;
  }

 private:
  Sums& sums_;
  std::vector<std::int64_t> begins_;
};

std::string name_of(const GpuTrace& trace, const GpuTrace::Op& op) {
  if (op.kind == GpuOpKind::kernel) return trace.shapes[op.shape].name;
  if (op.kind == GpuOpKind::memset) return "memsets";
  if (op.kind == GpuOpKind::graph) return "graphs";
  switch (op.copy) {
    case CopyKind::h2d:
      return "copies to the device";
    case CopyKind::d2h:
      return "copies to the host";
    case CopyKind::d2d:
      return "copies on the device";
    default:
      return "other copies";
  }
}

std::string name_of(GapCause cause) { return "GPU idle: " + std::string(to_string(cause)); }

Sums sums_of(const GpuTrace& trace, const Timeline& timeline, bool by_iteration) {
  Sums sums;
  Adder adder(timeline, by_iteration, sums);
  const Joined joined(trace);
  std::map<int, std::int64_t> busy_until;
  for (const auto i : joined.ops) {
    adder.add(name_of(trace, joined.op(i)), joined.begin_ns[i], joined.end_ns[i]);
    std::int64_t& until = busy_until[joined.device_of[i]];
    if (joined.end_ns[i] > until) {
      adder.add("GPU busy", std::max(until, joined.begin_ns[i]), joined.end_ns[i]);
      until = joined.end_ns[i];
    }
  }
  for (const auto& gap : timeline.gaps) {
    if (gap.steady) adder.add(name_of(gap.cause), gap.begin_ns, gap.end_ns);
  }
  return sums;
}

struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// The mean with what it is sure within; one value alone is taken to be as sure as runs repeat.
Estimate estimate(const std::vector<double>& values) {
  if (values.empty()) return {};
  double sum = 0, squares = 0;
  for (const double v : values) sum += v;
  const double n = double(values.size()), mean = sum / n;
  for (const double v : values) squares += (v - mean) * (v - mean);
  const double doubt = std::max(n > 1 ? 1.96 * std::sqrt(squares / (n - 1) / n) : 0, kNoise * mean);
  return {mean, mean - doubt, mean + doubt};
}

/// The median, which hiccups do not move.
Estimate estimate_length(std::vector<double> values) {
  const double median = quantile(values, 0.5), n = double(values.size());
  std::vector<double> off;
  off.reserve(values.size());
  for (const double v : values) off.push_back(std::abs(v - median));
  const double doubt =
      std::max(1.96 * 1.2533 * 1.4826 * quantile(off, 0.5) / std::sqrt(std::max(n, 1.0)), kNoise * median);
  return {median, median - doubt, median + doubt};
}

Difference::Row row_of(std::string what, const Estimate& before, const Estimate& after) {
  return {.what = std::move(what),
          .before = before.value,
          .after = after.value,
          .before_low = before.low,
          .before_high = before.high,
          .after_low = after.low,
          .after_high = after.high,
          .beyond_doubt = before.high < after.low || after.high < before.low};
}

double count_of(const Sums& sums, const std::string& what) {
  const auto found = sums.count.find(what);
  return found == sums.count.end() || sums.parts == 0 ? 0 : found->second / double(sums.parts);
}

}  // namespace

Difference difference(const GpuTrace& before, const Timeline& before_line, const GpuTrace& after,
                      const Timeline& after_line) {
  const bool by_iteration =
      before_line.iterations.count() >= kLeastIterations && after_line.iterations.count() >= kLeastIterations;
  const Sums a = sums_of(before, before_line, by_iteration), b = sums_of(after, after_line, by_iteration);
  Difference result;
  result.basis = by_iteration ? "iteration" : "whole run";
  result.rows.push_back(row_of(result.basis, estimate_length(a.lengths), estimate_length(b.lengths)));
  result.rows.back().before_count = result.rows.back().after_count = 1;
  std::map<std::string, std::pair<Estimate, Estimate>> all;
  for (const auto& [what, seconds] : a.seconds) all[what].first = estimate(seconds);
  for (const auto& [what, seconds] : b.seconds) all[what].second = estimate(seconds);
  const double least = kLeastShare * std::max(result.rows.front().before, result.rows.front().after);
  for (const auto& [what, pair] : all) {
    if (std::max(pair.first.value, pair.second.value) < least) continue;
    result.rows.push_back(row_of(what, pair.first, pair.second));
    result.rows.back().before_count = count_of(a, what);
    result.rows.back().after_count = count_of(b, what);
  }
  std::stable_sort(result.rows.begin() + 1, result.rows.end(), [](const auto& x, const auto& y) {
    return std::abs(x.after - x.before) > std::abs(y.after - y.before);
  });
  return result;
}

}  // namespace fulcrum::trace
