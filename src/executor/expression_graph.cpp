// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From nodes to numbered values, and how many passes they take. See expression_graph.h.
#include "executor/expression_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <unordered_map>

namespace fulcrum::executor {
namespace {

using Kind = Expression::Node::Kind;

// A loop that grows an expression would otherwise be found out by its run time alone.
constexpr std::size_t kMostValues = 4096;
constexpr std::size_t kMostTapes = 65536;

/// What makes two values the same. Constants by their bits, so that NaN equals itself and 0 is not -0.
using Key = std::array<std::uint64_t, 5>;

Key value_key(const GraphValue& value) {
  const auto bits = [](float f) {
    std::uint32_t result = 0;
    std::memcpy(&result, &f, sizeof(f));
    return std::uint64_t{result};
  };
  const auto home = value.leaf ? reinterpret_cast<std::uintptr_t>(value.leaf->home().get()) : 0;
  return {static_cast<std::uint64_t>(value.kind) << 8 | static_cast<std::uint64_t>(value.code), home,
          bits(value.p) << 32 | bits(value.q),
          static_cast<std::uint64_t>(value.in[0]) << 32 | static_cast<std::uint32_t>(value.in[1]),
          static_cast<std::uint64_t>(value.in[2])};
}

/// Numbers by key. Most expressions have few values, for which looking at all of them is faster than any table.
template <class Key, class Table>
class Numbers {
 public:
  const int* find(const Key& key) const {
    if (few_.size() == kFew) {
      const auto found = table_.find(key);
      if (found != table_.end()) return &found->second;
    }
    for (const auto& [known, number] : few_) {
      if (known == key) return &number;
    }
    return nullptr;
  }
  void add(const Key& key, int number) {
    if (few_.size() < kFew) {
      few_.emplace_back(key, number);
    } else {
      table_.emplace(key, number);
    }
  }

 private:
  static constexpr std::size_t kFew = 32;
  std::vector<std::pair<Key, int>> few_;
  Table table_;
};

const GraphValue& at(const Graph& graph, int number) {
  return graph.values[static_cast<std::size_t>(number)];
}

/// Values that a pass for this one computes, each counted once.
int size_of(const Graph& graph, int number, std::vector<bool>& seen) {
  if (number < 0 || !at(graph, number).is_op() || seen[static_cast<std::size_t>(number)]) return 0;
  seen[static_cast<std::size_t>(number)] = true;
  int size = 1;
  for (const int in : at(graph, number).in) size += size_of(graph, in, seen);
  return size;
}

/// Gives operands of the value passes of their own, the largest first, until it fits one.
Result<Pass> fit(Graph& graph, int number, std::vector<Pass>& passes) {
  while (true) {
    if (auto pass = pass_of(graph, number)) return *pass;
    int largest = -1, most = 0;
    for (const int in : at(graph, number).in) {
      std::vector<bool> seen(graph.values.size());
      const int size = in >= 0 && at(graph, in).reads_leaf ? size_of(graph, in, seen) : 0;
      if (size > most) most = size, largest = in;
    }
    if (largest < 0) {
      return Error{Code::invalid_argument, "an expression of too many constants alone",
                   "compute them before, as one number"};
    }
    // It fitted when it was looked at, but what was kept since are leaves to it now.
    FULCRUM_TRY(Pass pass, fit(graph, largest, passes));
    passes.push_back(std::move(pass));
    graph.values[static_cast<std::size_t>(largest)].kept = true;
  }
}

}  // namespace

Expression::Node::~Node() {
  std::vector<NodePointer> left;
  const auto take = [&](std::array<NodePointer, 3>& from) {
    for (NodePointer& node : from) {
      if (node && node.use_count() == 1) left.push_back(std::move(node));
    }
  };
  take(in);
  while (!left.empty()) {
    const NodePointer last = std::move(left.back());
    left.pop_back();
    take(const_cast<Node&>(*last).in);
  }
}

Result<Graph> graph_of(const Expression::NodePointer& root) {
  Graph graph;
  Numbers<const Expression::Node*, std::unordered_map<const Expression::Node*, int>> numbers;
  Numbers<Key, std::map<Key, int>> known;
  std::vector<const Expression::Node*> todo = {root.get()};
  while (!todo.empty()) {
    const Expression::Node* node = todo.back();
    if (numbers.find(node)) {
      todo.pop_back();
      continue;
    }
    const std::size_t before = todo.size();
    for (const auto& in : node->in) {
      if (in && !numbers.find(in.get())) todo.push_back(in.get());
    }
    if (todo.size() > before) continue;
    todo.pop_back();
    GraphValue value{.kind = node->kind, .code = node->code, .p = node->p, .q = node->q};
    value.reads_leaf = node->kind == Kind::leaf;
    if (value.reads_leaf) value.leaf = &node->buffer;
    for (std::size_t k = 0; k < node->in.size(); ++k) {
      if (!node->in[k]) continue;
      value.in[k] = *numbers.find(node->in[k].get());
      value.reads_leaf |= at(graph, value.in[k]).reads_leaf;
    }
    const Key key = value_key(value);
    const int* equal = known.find(key);
    const int number = equal ? *equal : static_cast<int>(graph.values.size());
    numbers.add(node, number);
    if (equal) continue;
    known.add(key, number);
    graph.values.push_back(value);
    if (graph.values.size() > kMostValues) {
      return Error{Code::invalid_argument, fmt::format("an expression of more than {} values", kMostValues),
                   "evaluate parts of it: a loop may be growing it"};
    }
  }
  // The root was numbered last, and no value before it can equal it: that one would be a part of itself.
  return graph;
}

Result<std::shared_ptr<const ExpressionPlan>> plan_of(const Expression& expression) {
  const Expression::Node& root = *expression.node();
  if (auto made = root.plan.load(std::memory_order_acquire)) return made;
  auto plan = std::make_shared<ExpressionPlan>();
  FULCRUM_TRY(plan->graph, graph_of(expression.node()));
  FULCRUM_TRY(plan->passes, passes_of(plan->graph));
  for (const Pass& pass : plan->passes) {
    FULCRUM_TRY(plan->tapes.emplace_back(), known_tape(pass.tape));
  }
  const Buffer<float>* first = nullptr;
  for (const GraphValue& value : plan->graph.values) {
    if (!value.leaf) continue;
    if (!first) first = value.leaf;
    if (value.leaf->size() != first->size()) {
      return Error{Code::invalid_shape,
                   fmt::format("buffers of {} and of {} elements in one expression", first->size(),
                               value.leaf->size()),
                   "all buffers of an expression have the same size"};
    }
  }
  plan->n = first->size();
  root.plan.store(plan, std::memory_order_release);
  return std::shared_ptr<const ExpressionPlan>(std::move(plan));
}

/// Values are made to fit in their order, so that a value that does not fit has operands that do.
Result<std::vector<Pass>> passes_of(Graph& graph) {
  const int root = static_cast<int>(graph.values.size()) - 1;
  if (!at(graph, root).reads_leaf) {
    return Error{Code::invalid_argument, "an expression of constants alone has no size",
                 "begin with a buffer"};
  }
  std::vector<Pass> passes;
  if (auto pass = pass_of(graph, root)) {
    passes.push_back(*pass);
    return passes;
  }
  for (int number = 0; number <= root; ++number) {
    if (!at(graph, number).is_op()) continue;
    FULCRUM_TRY(Pass pass, fit(graph, number, passes));
    if (number == root) passes.push_back(std::move(pass));
  }
  return passes;
}

Result<KnownTape> known_tape(const ops::Tape& tape) {
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<std::string, std::unique_ptr<ops::Tape>>();
  std::string content;
  const auto add = [&](const auto& field) {
    content.append(reinterpret_cast<const char*>(&field), sizeof(field));
  };
  add(tape.leaves);
  add(tape.temporaries);
  for (int i = 0; i < tape.length; ++i) {
    const ops::TapeStep& step = tape.step[i];
    add(step.code), add(step.a), add(step.b), add(step.bound), add(step.p), add(step.q);
  }
  std::uint64_t number = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : content) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  const std::lock_guard lock(mutex);
  auto found = known.find(content);
  if (found == known.end()) {
    if (known.size() >= kMostTapes) {
      return Error{Code::out_of_memory, fmt::format("{} different expressions in one process", kMostTapes),
                   "numbers that change from call to call belong into a buffer when there are more than 6"};
    }
    found = known.emplace(std::move(content), std::make_unique<ops::Tape>(tape)).first;
  }
  return KnownTape{found->second.get(), static_cast<std::int64_t>(number >> 1)};
}

}  // namespace fulcrum::executor
