// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Graphs of the suite: drawn edges, the same on every machine.
#pragma once

#include <fulcrum/ops/activation_spreading.h>

namespace fulcrum::ops {

enum class GraphData : std::int64_t { engram, rmat };

/// engram: edges spread evenly over the sources, targets drawn and never the source itself. rmat: a power-law graph by
/// recursive halving (0.57, 0.19, 0.19, 0.05). Weights U(0.1, 1). A graph asked for again is the same object.
Result<std::shared_ptr<const SpreadingGraph>> drawn_graph(std::int64_t nodes, std::int64_t edges,
                                                          GraphData data);

}  // namespace fulcrum::ops
