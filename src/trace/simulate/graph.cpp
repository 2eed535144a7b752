// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts the nodes in the order in which they happened: then everything comes behind what it waited for, and one pass
// simulates the run.
#include "trace/simulate/graph.h"

#include <algorithm>
#include <numeric>

#include "trace/simulate/links.h"
#include "trace/timeline/parts.h"

namespace fulcrum::trace {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Between two nodes of a graph: seen here, or next to nothing, which it is.
std::int64_t gap_of_nodes(const Joined& joined, const Scale& scale) {
  std::vector<double> gaps;
  for (const auto& ops : joined.stream_ops) {
    for (std::size_t k = 1; k < ops.size(); ++k) {
      const bool nodes = joined.op(ops[k]).graph && joined.call_of[ops[k]] >= 0 &&
                         joined.call_of[ops[k]] == joined.call_of[ops[k - 1]];
      const auto gap = joined.begin_ns[ops[k]] - joined.end_ns[ops[k - 1]];
      if (nodes && gap >= 0) gaps.push_back(double(gap));
    }
  }
  return gaps.size() < 5 ? scale.back_to_back_ns / 8 : std::int64_t(quantile(gaps, 0.5));
}

/// What tracing adds to calls that launch: at most half of a call, whatever was calibrated; nearly all of it where a
/// graph's nodes get a record each.
std::vector<std::int64_t> tracing_of_calls(const Joined& joined, const Timeline& timeline,
                                           const std::vector<std::int64_t>& own_ns) {
  const auto a_launch_ns = std::int64_t(timeline.tracing_per_launch.seconds * 1e9);
  std::vector<std::int64_t> result(own_ns.size(), 0);
  for (const auto c : joined.calls) {
    if (joined.caused_by(c).empty()) continue;
    result[c] =
        std::max(std::min(a_launch_ns, own_ns[c] / 2), std::min(tracing_of_graph_ns(joined, c), own_ns[c]));
  }
  return result;
}

/// Places of nodes by kind and number.
struct Places {
  std::vector<std::uint32_t> begins, ends, ops;
  std::uint32_t& of(NodeKind kind, std::uint32_t number) {
    return (kind == NodeKind::call_begin ? begins : kind == NodeKind::call_end ? ends : ops)[number];
  }
};

int rank(NodeKind kind) {  // of nodes at one instant: a call returns, the next begins, its op begins
  return kind == NodeKind::call_end ? 0 : kind == NodeKind::call_begin ? 1 : 2;
}

}  // namespace

Scale::Scale(const Timeline& timeline)
    : unit_ns(std::max<std::int64_t>(
          1, std::int64_t((timeline.launch.seconds + timeline.launch_latency.seconds) * 1e9))),
      back_to_back_ns(std::int64_t(timeline.back_to_back.seconds * 1e9)) {}

Graph::Graph(const Joined& joined, const Timeline& timeline)
    : outer(joined.outer),
      first_op(joined.first_op),
      ops_of_calls(joined.ops_of_calls),
      windows(joined.windows.size()),
      ops(joined.trace.ops.size()) {
  const Scale scale(timeline);
  const Issue issue(joined);
  const CallTimes times(joined);
  std::vector<Link> links;
  links.reserve(3 * joined.ops.size() + 3 * joined.calls.size());
  link_host(joined, scale, issue, times, links, own_ns, trims);
  link_ops(joined, scale, issue, times, links);
  tracing_ns = tracing_of_calls(joined, timeline, own_ns);
  node_gap_ns = gap_of_nodes(joined, scale);
  usual_lag_ns = scale.unit_ns;

  for (const auto c : joined.calls) {
    if (joined.call_window[c] < 0) continue;
    nodes.push_back({.kind = NodeKind::call_begin,
                     .number = c,
                     .window = joined.call_window[c],
                     .observed_ns = times.begin_ns[c]});
    nodes.push_back({.kind = NodeKind::call_end,
                     .number = c,
                     .window = joined.call_window[c],
                     .observed_ns = times.end_ns[c]});
  }
  for (const auto i : joined.ops) {
    const bool steady = joined.begin_ns[i] >= timeline.begin_ns && joined.begin_ns[i] < timeline.end_ns;
    const GpuTrace::Op& op = joined.op(i);
    const bool pageable = op.from == MemoryKind::pageable || op.to == MemoryKind::pageable;
    nodes.push_back({.kind = NodeKind::op,
                     .number = i,
                     .window = joined.window_of[i],
                     .observed_ns = joined.begin_ns[i],
                     .duration_ns = joined.end_ns[i] - joined.begin_ns[i],
                     .steady = steady,
                     .pageable = pageable});
  }
  std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
    return a.observed_ns != b.observed_ns ? a.observed_ns < b.observed_ns : rank(a.kind) < rank(b.kind);
  });

  Places places{std::vector<std::uint32_t>(joined.trace.calls.size(), kNone),
                std::vector<std::uint32_t>(joined.trace.calls.size(), kNone),
                std::vector<std::uint32_t>(joined.trace.ops.size(), kNone)};
  for (std::uint32_t v = 0; v < nodes.size(); ++v) places.of(nodes[v].kind, nodes[v].number) = v;

  std::vector<std::uint32_t> counts(nodes.size() + 1, 0);
  const auto valid = [&](const Link& link, std::uint32_t& to, std::uint32_t& from) {
    to = places.of(link.to_kind, link.to);
    from = places.of(link.from_kind, link.from);
    return to != kNone && from != kNone && from < to;
  };
  std::uint32_t to = 0, from = 0;
  for (const Link& link : links) {
    if (valid(link, to, from)) ++counts[to + 1];
  }
  std::partial_sum(counts.begin(), counts.end(), counts.begin());
  edges.resize(counts.back());
  nodes.push_back({});
  for (std::uint32_t v = 0; v < nodes.size(); ++v) nodes[v].first_edge = counts[v];
  for (const Link& link : links) {
    if (valid(link, to, from)) edges[counts[to]++] = {from, link.kind, link.lag_ns};
  }
  nodes.back().steady = false;
  for (std::uint32_t v = 0; v + 1 < nodes.size(); ++v) {
    nodes[v].anchored = nodes[v].first_edge == nodes[v + 1].first_edge;
  }
}

}  // namespace fulcrum::trace
