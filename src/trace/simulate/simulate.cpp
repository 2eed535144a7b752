// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One pass over the event graph: start(v) = max over what v waits for of end + lag. A change switches edges off or
// gives other lags and durations; the graph itself stays as it is.
#include <algorithm>
#include <unordered_map>

#include "trace/simulate/graph.h"

namespace fulcrum::trace {
namespace {

enum Flag : std::uint8_t {
  kGone = 1,          // ops that are not done; calls that are not made
  kNotLaunched = 2,   // ops
  kOwnStream = 4,     // ops
  kNoWait = 8,        // calls
  kNewOwn = 16,       // calls
  kNewDuration = 32,  // ops
  kNewBefore = 64,    // calls
};

constexpr std::int64_t kLongAgo = INT64_MIN / 4;  // nobody waits for it

/// A change as flags and values that the pass looks up by number.
struct Changed {
  std::vector<std::uint8_t> ops, calls;
  std::unordered_map<std::uint32_t, std::int64_t> own, before;  // by outermost call
  const Change& change;
  bool untraced;

  Changed(const Graph& graph, const Change& c, bool without_tracing)
      : ops(graph.ops, 0), calls(graph.outer.size(), 0), change(c), untraced(without_tracing) {
    const auto mark_op = [&](std::uint32_t i, Flag flag) {
      if (i < ops.size()) ops[i] |= flag;
    };
    const auto mark_call = [&](std::uint32_t i, std::uint8_t flag) {
      if (i < calls.size()) calls[graph.outer[i]] |= flag;
    };
    for (const auto& [i, ns] : c.op_ns) mark_op(i, kNewDuration);
    for (const auto i : c.not_launched) mark_op(i, kNotLaunched);
    for (const auto i : c.own_stream) mark_op(i, kOwnStream);
    for (const auto i : c.gone) mark_op(i, kGone);
    for (const auto i : c.no_wait) mark_call(i, kNoWait);
    for (const auto& [i, ns] : c.call_ns) {
      mark_call(i, ns <= 0 ? kGone : kNewOwn);
      if (i < calls.size()) own[graph.outer[i]] = ns;
    }
    for (const auto& [i, ns] : c.host_before_ns) {
      mark_call(i, kNewBefore);
      if (i < calls.size()) before[graph.outer[i]] = ns;
    }
    if (!c.gone.empty()) drop_calls_without_ops(graph);
  }

  std::int64_t own_ns(const Graph& graph, std::uint32_t call) const {
    if (calls[call] & kGone) return 0;
    if (calls[call] & kNewOwn) return own.at(call);
    return graph.own_ns[call] - (untraced ? graph.tracing_ns[call] : 0);
  }
  /// By how much a call has become shorter.
  std::int64_t shorter_ns(const Graph& graph, std::uint32_t call) const {
    return std::max<std::int64_t>(0, graph.own_ns[call] - own_ns(graph, call));
  }
  std::int64_t duration_ns(const Graph::Node& node) const {
    if (ops[node.number] & kGone) return 0;
    if (ops[node.number] & kNewDuration) return std::max<std::int64_t>(0, change.op_ns.at(node.number));
    return node.duration_ns;
  }

 private:
  void drop_calls_without_ops(const Graph& graph) {
    for (std::uint32_t c = 0; c + 1 < graph.first_op.size(); ++c) {
      const auto begin = graph.first_op[c], end = graph.first_op[c + 1];
      if (begin == end) continue;
      bool all = true;
      for (auto k = begin; k < end && all; ++k) all = ops[graph.ops_of_calls[k]] & kGone;
      if (all) calls[c] |= kGone;
    }
  }
};

class Pass {
 public:
  Pass(const Graph& graph, const Change& change, bool untraced)
      : graph_(graph),
        change_(change),
        changed_(graph, change, untraced),
        end_(graph.nodes.size()),
        tail_(graph.nodes.size(), kLongAgo) {}

  double run() {
    std::vector<std::int64_t> first(graph_.windows, INT64_MAX), last(graph_.windows, INT64_MIN);
    for (std::uint32_t v = 0; v + 1 < graph_.nodes.size(); ++v) {
      const Graph::Node& node = graph_.nodes[v];
      const std::int64_t begin = begin_of(v, node);
      end_[v] = begin;
      if (node.kind != NodeKind::op) continue;
      end_[v] += changed_.duration_ns(node);
      tail_[v] = std::max(tail_[v], end_[v]);
      if (!node.steady || (changed_.ops[node.number] & kGone)) continue;
      const auto w = std::size_t(node.window);
      first[w] = std::min(first[w], begin);
      last[w] = std::max(last[w], end_[v]);
    }
    double ns = 0;
    for (std::size_t w = 0; w < first.size(); ++w) {
      if (last[w] > first[w]) ns += double(last[w] - first[w]);
    }
    return ns * 1e-9;
  }

 private:
  std::int64_t begin_of(std::uint32_t v, const Graph::Node& node) {
    std::int64_t begin = node.anchored ? node.observed_ns : INT64_MIN;
    for (auto e = node.first_edge; e < graph_.nodes[v + 1].first_edge; ++e) {
      const Edge& edge = graph_.edges[e];
      const std::int64_t at = node.kind == NodeKind::op           ? op_edge(v, node, edge)
                              : node.kind == NodeKind::call_begin ? program_edge(node, edge)
                                                                  : return_edge(node, edge);
      begin = std::max(begin, at);
    }
    if (begin != INT64_MIN) return begin;
    const bool gone = node.kind == NodeKind::op && (changed_.ops[node.number] & kGone);
    return gone ? kLongAgo : node.observed_ns;
  }

  /// A pageable copy that takes less time is one of pinned memory: the host no longer copies before or after it.
  bool pinned_now(std::uint32_t v) const {
    const Graph::Node& node = graph_.nodes[v];
    return node.pageable && (changed_.ops[node.number] & kNewDuration) &&
           changed_.duration_ns(node) < node.duration_ns;
  }

  std::int64_t program_edge(const Graph::Node& node, const Edge& edge) const {
    std::int64_t lag = edge.lag_ns;
    if (changed_.calls[node.number] & kNewBefore) lag = std::min(lag, changed_.before.at(node.number));
    if (change_.host_scale != 1) lag = std::int64_t(double(lag) * change_.host_scale);
    return end_[edge.from] + lag;
  }

  std::int64_t return_edge(const Graph::Node& node, const Edge& edge) const {
    const auto flags = changed_.calls[node.number];
    if (edge.kind == EdgeKind::own) return end_[edge.from] + changed_.own_ns(graph_, node.number);
    if (flags & (kNoWait | kGone)) return INT64_MIN;
    if (pinned_now(edge.from)) return end_[edge.from] + std::min(edge.lag_ns, graph_.usual_lag_ns);
    // What a sync did beside waiting was to give memory back that is now kept.
    const auto trim = graph_.trims[node.number];
    if (trim >= 0 && (changed_.calls[std::size_t(trim)] & kGone)) {
      return end_[edge.from] + std::min(edge.lag_ns, graph_.usual_lag_ns);
    }
    return end_[edge.from] + std::max<std::int64_t>(std::min<std::int64_t>(0, edge.lag_ns),
                                                    edge.lag_ns - changed_.shorter_ns(graph_, node.number));
  }

  std::int64_t op_edge(std::uint32_t v, const Graph::Node& node, const Edge& edge) {
    const auto flags = changed_.ops[node.number];
    switch (edge.kind) {
      case EdgeKind::launch: {
        if (flags & (kNotLaunched | kGone)) return INT64_MIN;
        const auto call = graph_.nodes[edge.from].number;
        if (pinned_now(v)) return end_[edge.from] + std::min(edge.lag_ns, graph_.usual_lag_ns);
        // The latency counts from the beginning of the call: a shorter call comes to the launch sooner.
        return end_[edge.from] + std::max<std::int64_t>(0, edge.lag_ns - changed_.shorter_ns(graph_, call));
      }
      case EdgeKind::stream:
      case EdgeKind::order: {
        // Whatever follows waits for this op and for what this op stood behind.
        tail_[v] = std::max(tail_[v], tail_[edge.from]);
        if (flags & kOwnStream) return INT64_MIN;
        const auto lag = flags & kGone          ? 0
                         : flags & kNotLaunched ? std::min(edge.lag_ns, graph_.node_gap_ns)
                                                : edge.lag_ns;
        return tail_[edge.from] + lag;
      }
      case EdgeKind::engine:
        return flags & kGone ? INT64_MIN : end_[edge.from] + edge.lag_ns;
      case EdgeKind::resource:
        return flags & (kGone | kOwnStream) ? INT64_MIN : end_[edge.from] + edge.lag_ns;
      case EdgeKind::crowd:
        // Nodes of a graph follow each other more closely than launches do.
        return flags & kGone
                   ? INT64_MIN
                   : end_[edge.from] +
                         (change_.own_stream.empty() ? std::min<std::int64_t>(0, edge.lag_ns) : edge.lag_ns);
      default:
        return INT64_MIN;
    }
  }

  const Graph& graph_;
  const Change& change_;
  Changed changed_;
  std::vector<std::int64_t> end_;   // of ops; of other nodes when they happen
  std::vector<std::int64_t> tail_;  // of ops: when all of the stream up to it is done
};

}  // namespace

double simulate(const Graph& graph, const Change& change, bool untraced) {
  return Pass(graph, change, untraced).run();
}

double observed_seconds(const Graph& graph) {
  std::vector<std::int64_t> first(graph.windows, INT64_MAX), last(graph.windows, INT64_MIN);
  for (const Graph::Node& node : graph.nodes) {
    if (node.kind != NodeKind::op || !node.steady) continue;
    const auto w = std::size_t(node.window);
    first[w] = std::min(first[w], node.observed_ns);
    last[w] = std::max(last[w], node.observed_ns + node.duration_ns);
  }
  double ns = 0;
  for (std::size_t w = 0; w < first.size(); ++w) {
    if (last[w] > first[w]) ns += double(last[w] - first[w]);
  }
  return ns * 1e-9;
}

}  // namespace fulcrum::trace
