// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Pinned copies that could run beside kernels and never do: upload, kernel and download of one chunk after the other.
// At best the longest of the three stays: (H + K + D) - max(H, K, D), never more than the copies with nothing beside
// them and the time between ops of one stream. Whether chunks are independent is not in a trace, so the low end is 0.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastExposed = 0.05;  // of the time
// Hiding copies takes chunks or a second buffer, and uploads alone are often hidden by a loader that runs ahead: only
// what is worth that is said.
constexpr double kLeastBothWays = 0.2, kLeastOneWay = 0.35;
constexpr double kLeastApart = 0.1;       // copies have streams of their own: somebody meant them to overlap
constexpr double kOverlapsAlready = 0.3;  // of what could overlap
constexpr std::size_t kLeastCopies = 4;
constexpr double kBothWays = 0.1;  // the lesser direction, of all copies
// Copies that the host waits for have to be taken apart first: that is said where kernels are a part worth hiding them
// behind, of all three lanes.
constexpr double kLeastKernels = 0.2;

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Sorts and merges; returns the length.
double unite(Spans& spans) {
  std::sort(spans.begin(), spans.end());
  Spans merged;
  double ns = 0;
  for (const auto& span : spans) {
    if (!merged.empty() && span.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, span.second);
    } else {
      merged.push_back(span);
    }
  }
  for (const auto& [begin, end] : merged) ns += double(end - begin);
  spans = std::move(merged);
  return ns * 1e-9;
}

struct Lanes {
  std::array<Spans, 3> spans;       // uploads, kernels, downloads
  std::array<double, 3> seconds{};  // of their unions
  double all_seconds = 0;           // of the union of all
  std::vector<std::uint32_t> copies;
  double bytes = 0;
  std::size_t waited_for = 0;  // copies by synchronous calls
  std::set<std::uint32_t> copy_streams, kernel_streams;
  bool apart() const {
    return !copy_streams.empty() && std::none_of(copy_streams.begin(), copy_streams.end(), [&](auto stream) {
      return kernel_streams.count(stream) > 0;
    });
  }
};

Lanes lanes_of(const Facts& facts, const Joined& joined, int device) {
  Lanes lanes;
  std::set<std::uint32_t> others;
  const Repeats repeats = repeated_uploads(facts, joined);
  others.insert(repeats.ops.begin(), repeats.ops.end());
  const double small = small_bytes(facts);
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    if (!is_steady(facts, op.begin_ns) || device_of_op(facts, op) != device) continue;
    if (op.kind == GpuOpKind::kernel || op.kind == GpuOpKind::graph) {
      lanes.spans[1].emplace_back(op.begin_ns, op.end_ns);
      lanes.kernel_streams.insert(op.stream);
    } else if (op.kind == GpuOpKind::copy && crosses(op) && !is_pageable(op) && double(op.bytes) >= small &&
               others.count(i) == 0) {
      lanes.spans[op.copy == CopyKind::h2d ? 0 : 2].emplace_back(op.begin_ns, op.end_ns);
      lanes.copies.push_back(i);
      lanes.bytes += double(op.bytes);
      lanes.waited_for += !op.async;
      lanes.copy_streams.insert(op.stream);
    }
  }
  Spans all;
  for (std::size_t lane = 0; lane < lanes.spans.size(); ++lane) {
    all.insert(all.end(), lanes.spans[lane].begin(), lanes.spans[lane].end());
    lanes.seconds[lane] = unite(lanes.spans[lane]);
  }
  lanes.all_seconds = unite(all);
  return lanes;
}

int busiest(const Timeline& timeline) {
  const auto most =
      std::max_element(timeline.devices.begin(), timeline.devices.end(),
                       [](const auto& a, const auto& b) { return a.busy_seconds < b.busy_seconds; });
  return most == timeline.devices.end() ? 0 : most->id;
}

// Time between two ops of a stream, which the work of other streams fills.
double between_ops_seconds(const Facts& facts, int device) {
  double ns = 0;
  for (const Timeline::Gap& gap : facts.timeline.gaps)
    if (gap.steady && gap.device == device && gap.cause == GapCause::queue)
      ns += double(gap.end_ns - gap.begin_ns);
  return ns * 1e-9;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "no_overlap")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const int device = busiest(facts.timeline);
  const Lanes lanes = lanes_of(facts, joined, device);
  const auto [up, kernels, down] = lanes.seconds;
  const double sum = up + kernels + down, longest = std::max({up, kernels, down}),
               all = facts.timeline.seconds;
  if (lanes.copies.size() < kLeastCopies || kernels <= 0 || sum <= longest) return {};
  if (2 * lanes.waited_for > lanes.copies.size() && kernels < kLeastKernels * sum) return {};
  if ((sum - lanes.all_seconds) / (sum - longest) > kOverlapsAlready) return {};
  const double exposed = lanes.all_seconds - kernels;  // copies with no kernel beside them
  // Streams that wait for each other's buffers lose the time between them as well.
  const double hidden = std::min(exposed, (lanes.apart() ? all : lanes.all_seconds) - longest);
  const bool both_ways = std::min(up, down) > kBothWays * (up + down);
  const double least = lanes.apart() ? kLeastApart : both_ways ? kLeastBothWays : kLeastOneWay;
  if (exposed < kLeastExposed * all || hidden < least * all) return {};

  Change change;
  const double left = 1 - hidden / (up + down);
  for (const std::uint32_t op : lanes.copies) {
    change.op_ns[op] = std::int64_t(double(facts.trace.ops[op].duration_ns()) * std::max(0.0, left));
  }
  double high = std::min(hidden, saved_seconds(facts, change));
  if (!lanes.apart()) high = std::min(high + between_ops_seconds(facts, device), all - longest);
  Finding finding;
  finding.subject = "copies";
  finding.grade = Evidence::bounded;
  finding.claim =
      fmt::format("Copies and kernels take turns: {} of the time only copies run", percent(exposed / all));
  finding.evidence.push_back(
      fmt::format("uploads {}, kernels {}, downloads {}: {} one after the other, {} if they overlapped",
                  time_text(facts, up), time_text(facts, kernels), time_text(facts, down),
                  time_text(facts, lanes.all_seconds), time_text(facts, lanes.all_seconds - hidden)));
  finding.evidence.emplace_back("pinned memory: the copy engines could work beside the kernels");
  if (lanes.apart()) finding.evidence.emplace_back("copies have streams of their own, and still take turns");
  finding.next_step =
      lanes.apart()
          ? "give copies a second buffer, so that the next one need not wait until this one was used"
          : "split the work into chunks and put upload, kernel and download of each on one of several "
            "streams";
  finding.verify = verify_by_difference();
  finding.ops = some(lanes.copies);
  add_gain(finding, range(facts, 0, high, 0, std::move(change)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule no_overlap() {
  return Rule{.id = "no_overlap",
              .looks_for = "pinned copies that never run beside kernels",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
