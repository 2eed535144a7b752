// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Builds the graph of activation_spreading: checks it, turns outgoing lists around, cuts rows into pieces of about
// the same number of edges and lays short rows out side by side.
#include "ops/support/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/support/memo.h"

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kPieceEdges = 8192;
constexpr std::int64_t kMostEdges = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMemoBytes = std::int64_t{1} << 30;

struct Edge {
  std::int32_t from, to;
  float weight;
};

/// The graph with the memory it points to.
struct OwnedGraph : SpreadingGraph {
  std::vector<std::int32_t> row_begins, sources, out_begins, out_rows, longs, slice_sources;
  std::vector<float> weights, slice_weights;
  std::vector<SpreadingPiece> all_pieces;
  std::vector<SpreadingSlice> all_slices;

  OwnedGraph() = default;
  OwnedGraph(const OwnedGraph&) = delete;
  OwnedGraph& operator=(const OwnedGraph&) = delete;
  ~OwnedGraph() { tell_ended(static_cast<const SpreadingGraph*>(this)); }
  void add_slices(SpreadingPiece& piece);
  void cut();
  void list_outgoing();
  void point();
};

/// Short rows of a piece, longest first, sixteen a slice. Rows of equal degree keep their order.
void OwnedGraph::add_slices(SpreadingPiece& piece) {
  const auto degree = [this](std::int32_t row) {
    return row_begins[static_cast<std::size_t>(row) + 1] - row_begins[static_cast<std::size_t>(row)];
  };
  std::vector<std::int32_t> rows;
  piece.first_slice = static_cast<std::int64_t>(all_slices.size());
  piece.first_long = static_cast<std::int64_t>(longs.size());
  for (std::int64_t row = piece.row; row < piece.row + piece.rows; ++row) {
    const auto number = static_cast<std::int32_t>(row);
    (degree(number) > kSpreadingShortRow ? longs : rows).push_back(number);
  }
  piece.longs = static_cast<std::int64_t>(longs.size()) - piece.first_long;
  std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return degree(a) > degree(b); });
  for (std::size_t first = 0; first < rows.size(); first += kSpreadingSlice) {
    SpreadingSlice slice{.at = static_cast<std::int64_t>(slice_sources.size())};
    slice.steps = degree(rows[first]);
    slice_sources.resize(slice_sources.size() + static_cast<std::size_t>(slice.steps * kSpreadingSlice), 0);
    slice_weights.resize(slice_sources.size(), 0);
    for (std::size_t lane = 0; lane < kSpreadingSlice; ++lane) {
      const bool there = first + lane < rows.size();
      slice.row[lane] = there ? rows[first + lane] : -1;
      slice.degree[lane] = there ? degree(rows[first + lane]) : 0;
      for (std::int32_t step = 0; step < slice.degree[lane]; ++step) {
        const std::int64_t begin = row_begins[static_cast<std::size_t>(slice.row[lane])];
        const auto from = static_cast<std::size_t>(begin + step);
        const auto to = static_cast<std::size_t>(slice.at + step * kSpreadingSlice) + lane;
        slice_sources[to] = sources[from];
        slice_weights[to] = weights[from];
      }
    }
    all_slices.push_back(slice);
  }
  piece.slices = static_cast<std::int64_t>(all_slices.size()) - piece.first_slice;
}

void OwnedGraph::cut() {
  for (std::int64_t row = 0; row < nodes;) {
    SpreadingPiece piece{.row = row};
    const std::int64_t first_edge = row_begins[static_cast<std::size_t>(row)];
    do {
      row = std::min(row + kSpreadingWord, nodes);
    } while (row < nodes && row - piece.row < kSpreadingPieceRows &&
             row_begins[static_cast<std::size_t>(row)] - first_edge < kPieceEdges);
    piece.rows = row - piece.row;
    add_slices(piece);
    all_pieces.push_back(piece);
  }
}

void OwnedGraph::list_outgoing() {
  out_begins.assign(static_cast<std::size_t>(nodes) + 1, 0);
  for (const std::int32_t from : sources) ++out_begins[static_cast<std::size_t>(from) + 1];
  std::partial_sum(out_begins.begin(), out_begins.end(), out_begins.begin());
  std::vector<std::int32_t> next(out_begins.begin(), out_begins.end() - 1);
  out_rows.resize(sources.size());
  for (std::int64_t row = 0; row < nodes; ++row) {
    for (auto e = row_begins[static_cast<std::size_t>(row)];
         e < row_begins[static_cast<std::size_t>(row) + 1]; ++e) {
      const auto from = static_cast<std::size_t>(sources[static_cast<std::size_t>(e)]);
      out_rows[static_cast<std::size_t>(next[from]++)] = static_cast<std::int32_t>(row);
    }
  }
}

void OwnedGraph::point() {
  row_begin = row_begins.data();
  source = sources.data();
  weight = weights.data();
  out_begin = out_begins.data();
  out_row = out_rows.data();
  pieces = all_pieces;
  slices = all_slices;
  long_rows = longs;
  slice_source = slice_sources.data();
  slice_weight = slice_weights.data();
}

Error invalid(std::string message) {
  return Error{Code::invalid_argument, std::move(message), "see make_graph() for what a graph must be"};
}

Status check(std::int64_t nodes, std::span<const std::int32_t> begin, std::span<const std::int32_t> ends,
             std::span<const float> weights) {
  if (nodes < 0 || nodes >= kMostEdges || ends.size() >= static_cast<std::size_t>(kMostEdges)) {
    return invalid(
        fmt::format("a graph of {} nodes and {} edges: both must be below 2^31", nodes, ends.size()));
  }
  if (begin.size() != static_cast<std::size_t>(nodes) + 1 || weights.size() != ends.size()) {
    return invalid(fmt::format("a graph of {} nodes with {} list ends, {} edges and {} weights", nodes,
                               begin.size(), ends.size(), weights.size()));
  }
  if (begin.front() != 0 || begin.back() != static_cast<std::int64_t>(ends.size())) {
    return invalid(fmt::format("the lists of a graph run from {} to {}, not from 0 to its {} edges",
                               begin.front(), begin.back(), ends.size()));
  }
  for (std::size_t i = 1; i < begin.size(); ++i) {
    if (begin[i] < begin[i - 1]) {
      return invalid(fmt::format("list {} of a graph ends at {}, before it begins at {}", i - 1, begin[i],
                                 begin[i - 1]));
    }
  }
  for (std::size_t e = 0; e < ends.size(); ++e) {
    if (ends[e] < 0 || ends[e] >= nodes) {
      return invalid(fmt::format("edge {} of a graph names node {} of {}", e, ends[e], nodes));
    }
    if (!std::isfinite(weights[e]))
      return invalid(fmt::format("edge {} of a graph has weight {}", e, weights[e]));
  }
  return {};
}

/// Rows of incoming edges from edges in any order; those into one node keep their order.
void set_rows(OwnedGraph& graph, std::span<const Edge> edges) {
  graph.row_begins.assign(static_cast<std::size_t>(graph.nodes) + 1, 0);
  for (const Edge& edge : edges) ++graph.row_begins[static_cast<std::size_t>(edge.to) + 1];
  std::partial_sum(graph.row_begins.begin(), graph.row_begins.end(), graph.row_begins.begin());
  std::vector<std::int32_t> next(graph.row_begins.begin(), graph.row_begins.end() - 1);
  graph.sources.resize(edges.size());
  graph.weights.resize(edges.size());
  for (const Edge& edge : edges) {
    const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(edge.to)]++);
    graph.sources[at] = edge.from;
    graph.weights[at] = edge.weight;
  }
}

std::shared_ptr<const SpreadingGraph> finish(std::shared_ptr<OwnedGraph> graph) {
  graph->id = unique_number();
  graph->edges = static_cast<std::int64_t>(graph->sources.size());
  graph->cut();
  graph->list_outgoing();
  graph->point();
  return graph;
}

/// The target of edge e by recursive halving: two bits of a draw's 16-bit fields a level.
void draw_rmat(std::uint64_t key, std::int64_t edge, int levels, std::uint64_t& from, std::uint64_t& to) {
  constexpr std::uint64_t kTop = 37355, kRight = kTop + 12452, kBottom = kRight + 12452;  // of 65536
  std::uint64_t bits = 0;
  for (int level = 0; level < levels; ++level) {
    if (level % 4 == 0)
      bits = random_bits(key, static_cast<std::uint64_t>(edge) * 8 + static_cast<std::uint64_t>(level / 4));
    const std::uint64_t field = bits >> (16 * (level % 4)) & 0xFFFF;
    from = from << 1 | (field >= kRight);
    to = to << 1 | ((field >= kTop && field < kRight) || field >= kBottom);
  }
}

std::vector<Edge> draw_edges(std::int64_t nodes, std::int64_t count, GraphData data) {
  std::vector<Edge> edges(static_cast<std::size_t>(count));
  const auto n = static_cast<std::uint64_t>(nodes);
  const std::uint64_t target_key = tensor_key(2), weight_key = tensor_key(3);
  const int levels = static_cast<int>(std::bit_width(n - 1));
  for (std::int64_t e = 0; e < count; ++e) {
    const auto counter = static_cast<std::uint64_t>(e);
    std::uint64_t from = 0, to = 0;
    if (data == GraphData::rmat) {
      draw_rmat(target_key, e, levels, from, to);
      from %= n;
      to %= n;
    } else {
      from = static_cast<std::uint64_t>(static_cast<double>(e) * static_cast<double>(nodes) /
                                        static_cast<double>(count));
      to = nodes > 1 ? random_bits(target_key, counter) % (n - 1) : 0;
      to += to >= from && nodes > 1;
    }
    edges[counter] = Edge{static_cast<std::int32_t>(from), static_cast<std::int32_t>(to),
                          random_uniform(weight_key, counter, 0.1f, 1.0f)};
  }
  return edges;
}

struct GraphKey {
  std::int64_t nodes, edges;
  GraphData data;
  bool operator==(const GraphKey&) const = default;
};

}  // namespace

Result<std::shared_ptr<const SpreadingGraph>> make_graph(std::int64_t nodes,
                                                         std::span<const std::int32_t> begin,
                                                         std::span<const std::int32_t> ends,
                                                         std::span<const float> weights, EdgeLists lists) {
  FULCRUM_CHECK(check(nodes, begin, ends, weights));
  auto graph = std::make_shared<OwnedGraph>();
  graph->nodes = nodes;
  if (lists == EdgeLists::incoming) {
    graph->row_begins.assign(begin.begin(), begin.end());
    graph->sources.assign(ends.begin(), ends.end());
    graph->weights.assign(weights.begin(), weights.end());
    return finish(std::move(graph));
  }
  std::vector<Edge> edges;
  edges.reserve(ends.size());
  for (std::int64_t from = 0; from < nodes; ++from) {
    const auto list = static_cast<std::size_t>(from);
    for (auto e = static_cast<std::size_t>(begin[list]); e < static_cast<std::size_t>(begin[list + 1]); ++e) {
      edges.push_back(Edge{static_cast<std::int32_t>(from), ends[e], weights[e]});
    }
  }
  set_rows(*graph, edges);
  return finish(std::move(graph));
}

Result<std::shared_ptr<const SpreadingGraph>> drawn_graph(std::int64_t nodes, std::int64_t edges,
                                                          GraphData data) {
  static Memo<GraphKey, SpreadingGraph> memo(kMemoBytes);
  const auto make = [&]() -> Result<std::shared_ptr<const SpreadingGraph>> {
    auto graph = std::make_shared<OwnedGraph>();
    graph->nodes = nodes;
    set_rows(*graph, draw_edges(nodes, edges, data));
    return finish(std::move(graph));
  };
  return memo.get(GraphKey{nodes, edges, data}, make,
                  [](const SpreadingGraph& graph) { return 32 * graph.edges + 64 * graph.nodes + 1024; });
}

SpreadingScratch::SpreadingScratch(const SpreadingGraph& graph, void* memory) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t word_bytes = ((graph.nodes + 511) / 512) * kLine;
  auto* at = static_cast<std::byte*>(memory);
  header = reinterpret_cast<Header*>(at);
  active = reinterpret_cast<std::uint64_t*>(at += kLine);
  touched = reinterpret_cast<std::uint64_t*>(at += word_bytes);
  passed[0] = reinterpret_cast<float*>(at += word_bytes);
  passed[1] = reinterpret_cast<float*>(at += (graph.nodes + 15) / 16 * kLine);
}

std::int64_t SpreadingScratch::bytes(const SpreadingGraph& graph) {
  return 64 + 2 * ((graph.nodes + 511) / 512 * 64) + 2 * ((graph.nodes + 15) / 16 * 64);
}

}  // namespace fulcrum::ops
