// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps that build the event graph: the order in which the host asked for things (issue.cpp), what calls waited
// for (host.cpp), what ops waited for (ops.cpp). All limits are multiples of costs of the trace itself, so that a run
// that is slower by some factor gives the same graph.
#pragma once

#include <unordered_map>

#include "trace/simulate/graph.h"

namespace fulcrum::trace {

struct Scale {
  std::int64_t unit_ns = 0;          // from the beginning of a launch call to the kernel on an idle GPU
  std::int64_t back_to_back_ns = 0;  // between two queued ops
  explicit Scale(const Timeline&);
};

/// An edge before nodes have places.
struct Link {
  NodeKind to_kind, from_kind;
  EdgeKind kind;
  std::uint32_t to, from;
  std::int64_t lag_ns;
};

/// What follows from the order of calls: streams, events and the legacy default stream.
struct Issue {
  explicit Issue(const Joined&);
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>
      sync_targets;                                                        // call -> ops that it waits for
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> op_waits;  // op -> ops of other streams
};

/// Beginnings and ends of outermost calls, one behind the other on each thread.
struct CallTimes {
  explicit CallTimes(const Joined&);
  std::vector<std::int64_t> begin_ns, end_ns;  // by call
};

/// Host time between calls, waits of calls, the own time of each call, and which sync gave back what pool_free freed.
void link_host(const Joined&, const Scale&, const Issue&, const CallTimes&, std::vector<Link>&,
               std::vector<std::int64_t>& own_ns, std::vector<std::int64_t>& trims);
void link_ops(const Joined&, const Scale&, const Issue&, const CallTimes&, std::vector<Link>&);

}  // namespace fulcrum::trace
