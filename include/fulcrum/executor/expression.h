// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Lazy expressions of Buffers: ((a + b) * c).eval(exec) is one decision and one pass over memory. Operators only build
// a graph; eval() finds what is common, puts the rest in order and runs it as the op `expression`. See
// docs/expressions.md.
#pragma once

#include <fulcrum/executor.h>

#include <type_traits>

namespace fulcrum::executor {

/// A value for every element, not computed yet. Cheap to copy; holds on to the buffers it reads, whose contents count
/// when eval() is called, not before.
class Expression {
 public:
  /// An element of the buffer.
  Expression(const Buffer<float>& leaf);
  /// The same for all.
  template <class Number>
  requires std::is_arithmetic_v<Number> Expression(Number constant)
      : Expression(ConstantTag{}, static_cast<float>(constant)) {}

  /// One launch, each leaf read once; several passes where it has more than 7 leaves or does not fit a tape.
  Result<Buffer<float>> eval(const Executor& executor) const;
  /// The result may be one of the leaves.
  Status eval_into(const Executor& executor, Buffer<float>& result) const;
  /// Where the first pass would run, and why.
  Result<Explanation> explain(const Executor& executor) const;
  /// Passes over memory that eval() takes.
  Result<int> passes() const;

  /// The same on the executor of its first leaf that has one: lazy().
  Result<Buffer<float>> eval() const;
  Status eval_into(Buffer<float>& result) const;
  Result<Explanation> explain() const;

  struct Node;
  using NodePointer = std::shared_ptr<const Node>;
  const NodePointer& node() const { return node_; }

 private:
  friend Expression lazy(const Executor& executor, const Buffer<float>& leaf);
  friend struct Compose;
  struct ConstantTag {};
  Expression(ConstantTag, float constant);
  Expression(NodePointer node, std::shared_ptr<const Executor> executor)
      : node_(std::move(node)), executor_(std::move(executor)) {}
  Result<const Executor*> bound() const;

  NodePointer node_;
  std::shared_ptr<const Executor> executor_;  // of lazy(); null: none
};

/// A leaf that knows its executor: ((lazy(exec, a) + b) * c).eval().
Expression lazy(const Executor& executor, const Buffer<float>& leaf);

Expression operator+(const Expression& a, const Expression& b);
Expression operator-(const Expression& a, const Expression& b);
Expression operator*(const Expression& a, const Expression& b);
Expression operator/(const Expression& a, const Expression& b);
Expression operator-(const Expression& a);
Expression min(const Expression& a, const Expression& b);  // NaN if either is
Expression max(const Expression& a, const Expression& b);
Expression fma(const Expression& a, const Expression& b, const Expression& c);  // a * b + c, rounded once
Expression abs(const Expression& a);
Expression sqrt(const Expression& a);
Expression relu(const Expression& x);
Expression leaky_relu(const Expression& x, double al = 0.01);
Expression elu(const Expression& x, double al = 1);
Expression clip(const Expression& x, double lo, double hi);
Expression sigmoid(const Expression& x);
Expression tanh(const Expression& x);
Expression swish(const Expression& x);
Expression gelu(const Expression& x);

}  // namespace fulcrum::executor

namespace fulcrum {
using executor::Expression;
using executor::lazy;
}  // namespace fulcrum
