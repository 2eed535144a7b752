// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading over a graph of incoming edges. Hop by hop, from what all nodes passed on before: c = lambda *
// sum of w * d, nothing below theta, no activation beyond cap. One hop with lambda 1, theta 0, no cap and no source is
// the product of the graph's matrix with x.
#include <fulcrum/ops/activation_spreading.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "ops/support/elementwise.h"
#include "ops/support/graph.h"

namespace fulcrum::ops {
namespace {

constexpr double kRoundoff = 0x1p-24;
// While active nodes have fewer edges than an eighth of the rows, adding up just the rows those lead to is cheaper
// than reading every edge: rows side by side cost about a fifth of rows found one by one.
constexpr std::int64_t kSparseShare = 8;
constexpr std::int64_t kSmallGraph = 512;

enum Pointer { kX, kOut };
enum Dim { kN, kEdges };
enum Scalar { kHops, kLambda, kTheta, kCap, kIncludeSource, kData };

const SpreadingGraph& graph_of(const Args& args) {
  return *static_cast<const SpreadingGraph*>(args.prepared);
}

Status check_sizes(const Args& args) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t n = args.dim[kN], edges = args.dim[kEdges];
  if (n >= kMost || edges >= kMost || (n == 0 && edges > 0)) {
    return Error{Code::invalid_shape,
                 fmt::format("activation_spreading of n={} nodes and nnz={} edges", n, edges),
                 "both are below 2^31, and edges need nodes"};
  }
  if (args.prepared && (graph_of(args).nodes != n || graph_of(args).edges != edges)) {
    return Error{Code::invalid_shape,
                 fmt::format("n={}, nnz={} of activation_spreading, but its graph has {} nodes and {} edges",
                             n, edges, graph_of(args).nodes, graph_of(args).edges),
                 "pass the sizes of the graph"};
  }
  return {};
}

Status validate(const Args& args) {
  FULCRUM_CHECK(check_sizes(args));
  const auto wrong = [](std::string_view name, double value, std::string_view range) {
    return Error{Code::invalid_argument, fmt::format("{}={} of activation_spreading", name, value),
                 fmt::format("{} is {}", name, range)};
  };
  const double lambda = args.scalar[kLambda].f, theta = args.scalar[kTheta].f, cap = args.scalar[kCap].f;
  if (args.scalar[kHops].i < 0 || args.scalar[kHops].i > 1'000'000) {
    return wrong("hops", static_cast<double>(args.scalar[kHops].i), "from 0 to 1,000,000");
  }
  if (!(lambda > 0 && lambda <= 1)) return wrong("lambda", lambda, "above 0 and at most 1");
  if (!(theta >= 0)) return wrong("theta", theta, "0 or more");
  if (!(cap > 0)) return wrong("cap", cap, "above 0");
  return {};
}

Work work(const Args& args) {
  const auto n = static_cast<double>(args.dim[kN]);
  const auto edges = static_cast<double>(args.dim[kEdges]);
  const auto hops = static_cast<double>(args.scalar[kHops].i);
  return Work{.flops = hops * (2 * edges + 3 * n),
              .issue_slots = hops * (2 * edges + 3 * n),
              .read_bytes = 8 * edges + 4 * (n + 1) + 4 * n,
              .write_bytes = 4 * n,
              .streaming_bytes = hops * (8 * edges + 20 * n),
              .link_in_bytes = 4 * n,
              .link_out_bytes = 4 * n};
}

/// The drawn values are uniform: one node in a hundred starts at 1, the others at 0. Small graphs, where that would be
/// none, keep every fourth value as it was drawn. What is not finite stays.
void make_inputs(const Args& args, std::uint64_t) {
  auto* x = static_cast<float*>(args.ptr[kX]);
  const std::int64_t n = args.dim[kN];
  for (std::int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    if (n >= kSmallGraph) {
      x[i] = x[i] < 0.01f ? 1.0f : 0.0f;
    } else if (i % 4 != 0) {
      x[i] = 0;
    }
  }
}

double prepared_bytes(const Args& args) {
  return 8.0 * static_cast<double>(args.dim[kEdges]) + 4.0 * static_cast<double>(args.dim[kN] + 1);
}

Result<std::shared_ptr<const void>> prepare(const Args& args) {
  FULCRUM_TRY(std::shared_ptr<const void> graph,
              drawn_graph(args.dim[kN], args.dim[kEdges], static_cast<GraphData>(args.scalar[kData].i)));
  return graph;
}

/// The result in fp32 by the definition's order, hop by hop, and how far each node may be from it: every hop is held
/// against fp64 from the same start. Empty: fine; else where the order of addition itself went wrong.
struct Chain {
  const SpreadingGraph& graph;
  SpreadingRule rule;
  std::vector<float> passed, next, activation;
  std::vector<double> allowed;

  explicit Chain(const Args& args)
      : graph(graph_of(args)), rule(args), passed(args.in<float>(kX), args.in<float>(kX) + graph.nodes) {
    next.resize(passed.size());
    allowed.assign(passed.size(), 0);
    activation = rule.include_source ? passed : std::vector<float>(passed.size(), 0.0f);
  }

  std::string hop() {
    for (std::size_t i = 0; i < passed.size(); ++i) {
      double sum = 0, absolute = 0;
      const std::int32_t begin = graph.row_begin[i], end = graph.row_begin[i + 1];
      for (std::int32_t e = begin; e < end; ++e) {
        const double term =
            static_cast<double>(graph.weight[e]) * passed[static_cast<std::size_t>(graph.source[e])];
        sum += term;
        absolute += std::abs(term);
      }
      const float rounded = sum_of_row(graph, passed.data(), static_cast<std::int64_t>(i));
      const double bound = (end - begin + 4) * kRoundoff * rule.lambda * absolute + 0x1p-126;
      const double c = rule.lambda * sum;
      if (std::isfinite(rounded) && !(std::abs(static_cast<double>(rule.lambda) * rounded - c) <= bound)) {
        return fmt::format("row {} adds up to {:.9g}, not {:.9g} (allowed error {:.3g})", i, rounded, sum,
                           bound);
      }
      next[i] = spread_to(rounded, rule, activation[i]);
      allowed[i] += bound + std::abs(activation[i]) * 2 * kRoundoff;
      if (std::abs(std::abs(c) - rule.theta) <= bound) allowed[i] += std::abs(c);  // either side of the cliff
    }
    passed.swap(next);
    return {};
  }
};

std::string verify(const Args& args, Oracle& oracle) {
  Chain chain(args);
  for (std::int64_t hop = 0; hop < chain.rule.hops; ++hop) {
    if (std::string wrong = chain.hop(); !wrong.empty()) return fmt::format("hop {}: {}", hop + 1, wrong);
  }
  std::string first_wrong;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < args.dim[kN]; ++i) {
    const double got = args.in<float>(kOut)[i], expected = chain.activation[static_cast<std::size_t>(i)];
    const double allowed = chain.allowed[static_cast<std::size_t>(i)];
    const double error = std::abs(got - expected);
    const bool right = std::isfinite(expected) ? error <= allowed
                                               : got == expected || (std::isnan(expected) && std::isnan(got));
    ++oracle.checked;
    if (right && std::isfinite(expected)) {
      oracle.max_error_ulp = std::max(oracle.max_error_ulp, error / ulp_of(expected));
      if (allowed > 0) oracle.max_error_share = std::max(oracle.max_error_share, error / allowed);
    }
    if (!right && wrong++ == 0) {
      first_wrong =
          fmt::format("out[{}] is {:.9g}, not {:.9g} (allowed error {:.3g})", i, got, expected, allowed);
    }
  }
  return wrong == 0 ? "" : fmt::format("{}; {} of {} outputs are wrong", first_wrong, wrong, oracle.checked);
}

std::int64_t pieces(const Args& args, int) { return static_cast<std::int64_t>(graph_of(args).pieces.size()); }

std::int64_t scratch_bytes(const Args& args) { return SpreadingScratch::bytes(graph_of(args)); }

}  // namespace

void combine_spreading(const Args& args, int phase, void* memory) {
  const SpreadingGraph& graph = graph_of(args);
  if (graph.nodes == 0 || phase >= args.scalar[kHops].i) return;
  const SpreadingScratch scratch(graph, memory);
  const auto words = static_cast<std::size_t>(divide_up(graph.nodes, kSpreadingWord));
  scratch.header->sparse = 0;
  std::int64_t edges = 0;
  const auto for_each_active = [&](const auto& visit) {
    for (std::size_t word = 0; word < words; ++word) {
      for (std::uint64_t bits = scratch.active[word]; bits != 0; bits &= bits - 1) {
        if (!visit(word * kSpreadingWord + static_cast<std::size_t>(std::countr_zero(bits)))) return;
      }
    }
  };
  for_each_active([&](std::size_t node) {
    edges += graph.out_begin[node + 1] - graph.out_begin[node];
    return edges * kSparseShare <= graph.nodes;
  });
  if (edges * kSparseShare > graph.nodes) return;
  scratch.header->sparse = 1;
  std::fill_n(scratch.touched, words, 0);
  for_each_active([&](std::size_t node) {
    for (std::int32_t e = graph.out_begin[node]; e < graph.out_begin[node + 1]; ++e) {
      const auto row = static_cast<std::size_t>(graph.out_row[e]);
      scratch.touched[row / kSpreadingWord] |= std::uint64_t{1} << (row % kSpreadingWord);
    }
    return true;
  });
}

Op activation_spreading() {
  return Op{
      .name = "activation_spreading",
      .summary =
          "hops times: d[i] = lambda * sum of w[e] d[source[e]] into i, none below theta; out[i] += d[i], "
          "within cap",
      .category = "graph",
      .slots = {in("x", uniform(0, 1)), out("out"), dim("n"), dim("nnz"), integer("hops", 4),
                real("lambda", 0.4965853), real("theta", 0.01), real("cap", 1),
                choice("include_source", {"yes", "no"}), choice("data", {"engram", "rmat"})},
      .extent = [](const Args& args, int) { return args.dim[kN]; },
      .validate = validate,
      .work = work,
      .verify = verify,
      .prepare = prepare,
      .needs_prepared = true,
      .prepared_id = [](const void* graph) { return static_cast<const SpreadingGraph*>(graph)->id; },
      .prepared_bytes = prepared_bytes,
      .make_inputs = make_inputs,
      .split =
          Split{.phases = 1,
                .pieces = pieces,
                .scratch_bytes = scratch_bytes,
                .combine = combine_spreading,
                .phases_for = [](const Args& args) { return static_cast<int>(args.scalar[kHops].i) + 1; }},
      .symbols = {"*activation_spread*", "*spread_activation*", "*Spreading*"},
      .default_sizes = {"n=512,nnz=2560,hops=1", "n=512,nnz=2560,hops=3", "n=1000,nnz=5000,hops=1",
                        "n=1000,nnz=5000,hops=3", "n=10000,nnz=50000,hops=1", "n=10000,nnz=50000,hops=3",
                        "n=100000,nnz=500000,hops=1", "n=100000,nnz=500000,hops=3",
                        "n=1000000,nnz=5000000,hops=1", "n=1000000,nnz=5000000,hops=3",
                        "n=1048576,nnz=16777216,hops=1,data=rmat", "n=1048576,nnz=16777216,hops=3,data=rmat"},
      .edge_shapes = {"n=1,nnz=5000,hops=2,cap=1e18,theta=0", "n=7,nnz=700,hops=3,theta=0",
                      "n=3,nnz=20000,hops=1,theta=0,cap=1e18,lambda=1,include_source=no",
                      "n=700,nnz=30000,hops=2,data=rmat", "n=1100,nnz=5500,hops=3", "n=1100,nnz=5500,hops=0",
                      "n=2000,nnz=2000,hops=5,lambda=1,theta=0,cap=0.5"},
  };
}

}  // namespace fulcrum::ops
