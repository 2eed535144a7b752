// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The events of a trace and what each waited for. A call of the host is two nodes (its beginning and its return), a GPU
// op is one. A node happens when everything it waits for has, plus a lag for each; lags are those that were observed
// where that edge decided, and calibrated ones where another did.
#pragma once

#include <fulcrum/core/finding.h>

#include "trace/timeline/joined.h"

namespace fulcrum::trace {

enum class NodeKind : std::uint8_t { call_begin, call_end, op };
enum class EdgeKind : std::uint8_t {
  program,   // return of a call -> next call of the thread: host time outside the API
  own,       // beginning of a call -> its return: the host's own time in it
  wait,      // op -> return of a call that waited for it
  launch,    // beginning of a call -> op
  stream,    // op -> next op of the stream
  order,     // op -> op of another stream: events, the legacy default stream
  engine,    // copy -> next copy of that direction
  resource,  // op -> op that was seen to begin when it ended
  crowd,     // kernel that fills half of the device -> next such kernel, whatever streams they are in
};

struct Edge {
  std::uint32_t from = 0;  // node
  EdgeKind kind = EdgeKind::program;
  std::int64_t lag_ns = 0;
};

struct Graph {
  Graph(const Joined&, const Timeline&);

  struct Node {
    NodeKind kind = NodeKind::op;
    std::uint32_t number = 0;  // of the call or op
    std::int32_t window = 0;
    std::uint32_t first_edge = 0;  // edges of node v: edges[first_edge of v .. first_edge of v + 1)
    std::int64_t observed_ns = 0;  // when it happened (ops: began)
    std::int64_t duration_ns = 0;  // ops
    bool anchored = false;         // waits for nothing that was seen: stays where it was
    bool steady = false;           // ops inside the timeline
    bool pageable = false;         // copies of memory that is not pinned
  };
  std::vector<Node>
      nodes;  // in an order in which everything comes behind what it waits for; one more at the end
  std::vector<Edge> edges;
  std::vector<std::int64_t> own_ns;                   // of calls: host time without waiting
  std::vector<std::uint32_t> outer;                   // call -> outermost call
  std::vector<std::uint32_t> first_op, ops_of_calls;  // as in Joined
  std::size_t windows = 0, ops = 0;                   // ops: of the trace
  std::vector<std::int64_t> tracing_ns;               // of calls: what tracing added to their own time
  std::int64_t node_gap_ns = 0;                       // between two nodes of a graph
  std::int64_t usual_lag_ns = 0;    // of launches and of returns with nothing special about them
  std::vector<std::int64_t> trims;  // of syncs: the pool_free whose memory they gave back; -1
};

/// Simulated length of the steady part, summed over windows, with a change applied; with or without what tracing added.
double simulate(const Graph&, const Change&, bool untraced = false);
/// The same as it was observed.
double observed_seconds(const Graph&);

}  // namespace fulcrum::trace
