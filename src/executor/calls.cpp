// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What typed calls need beside their arguments: do the counts fit, and the sizes of a graph or an index.
#include <fmt/format.h>
#include <fulcrum/executor/calls.h>
#include <fulcrum/ops/activation_spreading.h>
#include <fulcrum/ops/hnsw_search.h>

#include "executor/async.h"

namespace fulcrum::executor {

void find_known_ops(Guards& guards) {
  for (std::size_t i = 0; i < kKnownCount; ++i) {
    const Result<const ops::Op*> op = ops::find(kKnownNames[i]);
    FULCRUM_ASSERT(op.ok());
    guards.op[i] = *op;
  }
}

Status check_counts(const ops::Op& op, const Args& args, std::span<const Operand> operands) {
  std::size_t slot = 0;
  for (const ops::Slot& described : op.slots) {
    if (described.kind != ops::SlotKind::in && described.kind != ops::SlotKind::out &&
        described.kind != ops::SlotKind::inout)
      continue;
    const Operand& operand = operands[slot];
    const std::int64_t wanted = op.extent(args, static_cast<int>(slot++));
    if (operand.count() == wanted || (operand.absent() && described.optional)) continue;
    FULCRUM_CHECK(ops::check_args(op, args));  // sizes that make no sense have an error of their own
    return Error{Code::invalid_shape,
                 fmt::format("{} of {} has {} values, but {} asks for {}", described.name, op.name,
                             operand.count(), ops::shape_of(op, args).text(), wanted),
                 "sizes that were not given follow from the other operands"};
  }
  return {};
}

Args spreading_args(const ops::SpreadingGraph& graph) {
  Args args{};
  args.dim[0] = graph.nodes, args.dim[1] = graph.edges;
  args.prepared = &graph;
  return args;
}

Args hnsw_args(const ops::HnswIndex& index, std::int64_t query_values, std::int64_t k) {
  Args args{};
  args.dim[0] = index.dimension > 0 ? query_values / index.dimension : 0;
  args.dim[1] = index.count, args.dim[2] = index.dimension, args.dim[3] = k;
  args.scalar[2].i = static_cast<std::int64_t>(index.metric);
  args.prepared = &index;
  return args;
}

void fail(Future& future, Error error) { future = ready_future(Status(std::move(error))); }

}  // namespace fulcrum::executor
