// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// An expression as numbered values, equal ones once, and its way onto tapes: which values a pass computes, and in which
// order, so that few of them wait in temporaries.
#pragma once

#include <fulcrum/executor/expression.h>
#include <fulcrum/ops/expression.h>

#include <array>
#include <atomic>
#include <optional>
#include <vector>

namespace fulcrum::executor {

struct ExpressionPlan;

struct Expression::Node {
  enum class Kind : std::uint8_t { leaf, constant, op } kind = Kind::op;
  ops::TapeCode code = ops::TapeCode::load;
  float p = 0, q = 0;  // a constant's value; parameters of a function
  std::array<NodePointer, 3> in;
  Buffer<float> buffer;
  mutable std::atomic<std::shared_ptr<const ExpressionPlan>> plan;  // once it was the root of an eval()

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // without recursion: a chain may be long
};

/// What one value is made of. Operands come before it.
struct GraphValue {
  Expression::Node::Kind kind = Expression::Node::Kind::op;
  ops::TapeCode code = ops::TapeCode::load;
  float p = 0, q = 0;
  std::array<int, 3> in = {-1, -1, -1};
  const Buffer<float>* leaf = nullptr;  // of a node, which outlives the graph
  bool kept = false;                    // computed by a pass of its own, so that others read it as a leaf
  bool reads_leaf = false;              // itself or through its operands

  bool is_op() const { return kind == Expression::Node::Kind::op && !kept; }
};

/// The values of an expression, the root last.
struct Graph {
  std::vector<GraphValue> values;
};
Result<Graph> graph_of(const Expression::NodePointer& root);

/// The one copy of a tape in this process, and its number; tapes stay, since recorded work may name them by address.
struct KnownTape {
  const ops::Tape* tape = nullptr;
  std::int64_t number = 0;  // by content, the same in every process
};
Result<KnownTape> known_tape(const ops::Tape& tape);

/// One run of the op: its tape, what its leaves are (values of the graph), what it computes.
struct Pass {
  ops::Tape tape;
  std::vector<int> leaves;
  int value = 0;
  std::array<double, ops::kTapeParameters> parameters{};
};

/// Passes in the order in which they run, the root's last. Marks values that pass from one to the next as kept.
Result<std::vector<Pass>> passes_of(Graph& graph);
/// One pass for the value, or nothing where it takes more leaves, steps or temporaries than a tape has.
std::optional<Pass> pass_of(const Graph& graph, int value);

/// What eval() works on. Its leaves are buffers of the nodes, which outlive it.
struct ExpressionPlan {
  Graph graph;
  std::vector<Pass> passes;
  std::vector<KnownTape> tapes;  // of the passes
  std::int64_t n = 0;            // elements of all leaves
};
/// The expression's plan, made once.
Result<std::shared_ptr<const ExpressionPlan>> plan_of(const Expression& expression);

}  // namespace fulcrum::executor
