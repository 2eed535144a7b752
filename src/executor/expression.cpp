// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Building expressions, and running them as calls of the op `expression`.
#include <fulcrum/executor/expression.h>

#include <fmt/format.h>

#include "executor/expression_graph.h"

namespace fulcrum::executor {

using ops::TapeCode;

/// Makes nodes; the executor is that of the first operand that has one.
struct Compose {
  static Expression of(TapeCode code, std::initializer_list<const Expression*> operands, double p = 0,
                       double q = 0) {
    auto node = std::make_shared<Expression::Node>();
    node->code = code;
    node->p = static_cast<float>(p);
    node->q = static_cast<float>(q);
    std::shared_ptr<const Executor> executor;
    std::size_t k = 0;
    for (const Expression* operand : operands) {
      node->in[k++] = operand->node_;
      if (!executor) executor = operand->executor_;
    }
    return Expression(std::move(node), std::move(executor));
  }
};

namespace {

/// One pass as a call: arguments and operands. `kept` holds the results of earlier passes by value.
struct PassCall {
  Args args{};
  std::array<Operand, ops::kTapeLeaves + 1> operands{};
};

const ops::Op& the_op() {
  static const auto op = ops::find("expression");
  return (FULCRUM_ASSERT(op.ok()), **op);
}

PassCall call_of(const ExpressionPlan& plan, std::size_t number, std::span<const Buffer<float>> kept,
                 const Buffer<float>& result) {
  const Pass& pass = plan.passes[number];
  PassCall call;
  call.args.dim[0] = plan.n;
  call.args.prepared = plan.tapes[number].tape;
  call.args.scalar[0].i = static_cast<std::int64_t>(ops::Program::custom);
  call.args.scalar[1].i = plan.tapes[number].number;
  for (std::size_t k = 0; k < pass.parameters.size(); ++k) {
    call.args.scalar[ops::kTapeFirstParameter + k].f = pass.parameters[k];
  }
  for (std::size_t leaf = 0; leaf < pass.leaves.size(); ++leaf) {
    const auto value = static_cast<std::size_t>(pass.leaves[leaf]);
    const Buffer<float>* buffer = plan.graph.values[value].leaf;
    call.operands[leaf] = Operand(buffer ? *buffer : kept[value]);
  }
  call.operands[ops::kTapeResult] = Operand(result);
  return call;
}

Status run(const Executor& executor, const ExpressionPlan& plan, const Buffer<float>& result) {
  if (result.size() != plan.n) {
    return Error{Code::invalid_shape,
                 fmt::format("a result of {} elements for an expression of {}", result.size(), plan.n),
                 "they have the same size"};
  }
  const std::size_t last = plan.passes.size() - 1;
  std::vector<Buffer<float>> kept(last > 0 ? plan.graph.values.size() : 0);
  for (std::size_t number = 0; number < last; ++number) {
    Buffer<float>& between = kept[static_cast<std::size_t>(plan.passes[number].value)];
    FULCRUM_TRY(between, executor.buffer<float>(plan.n));
    between.stay_on_device();  // nobody but the passes behind it reads it
    const PassCall call = call_of(plan, number, kept, between);
    FULCRUM_CHECK(executor.run(the_op(), call.args, call.operands));
  }
  const PassCall call = call_of(plan, last, kept, result);
  return executor.run(the_op(), call.args, call.operands);
}

}  // namespace

Expression::Expression(const Buffer<float>& leaf) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::leaf;
  node->buffer = leaf;
  node_ = std::move(node);
}

Expression::Expression(ConstantTag, float constant) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::constant;
  node->p = constant;
  node_ = std::move(node);
}

Expression lazy(const Executor& executor, const Buffer<float>& leaf) {
  Expression expression(leaf);
  expression.executor_ = std::make_shared<Executor>(executor);
  return expression;
}

Status Expression::eval_into(const Executor& executor, Buffer<float>& result) const {
  FULCRUM_TRY(const auto plan, plan_of(*this));
  return run(executor, *plan, result);
}

Result<Buffer<float>> Expression::eval(const Executor& executor) const {
  FULCRUM_TRY(const auto plan, plan_of(*this));
  FULCRUM_TRY(Buffer<float> result, executor.buffer<float>(plan->n));
  FULCRUM_CHECK(run(executor, *plan, result));
  return result;
}

Result<Explanation> Expression::explain(const Executor& executor) const {
  FULCRUM_TRY(const auto plan, plan_of(*this));
  FULCRUM_TRY(const Buffer<float> result, executor.buffer<float>(plan->n));
  const PassCall call = call_of(*plan, 0, {}, result);
  FULCRUM_TRY(Explanation explanation, executor.explain(the_op(), call.args, call.operands));
  if (plan->passes.size() > 1) {
    explanation.notes.push_back(
        fmt::format("the first of {} passes: the expression does not fit one tape", plan->passes.size()));
  }
  return explanation;
}

Result<int> Expression::passes() const {
  FULCRUM_TRY(const auto plan, plan_of(*this));
  return static_cast<int>(plan->passes.size());
}

Result<const Executor*> Expression::bound() const {
  if (executor_) return executor_.get();
  return Error{Code::invalid_argument, "no leaf of the expression knows an executor",
               "begin with lazy(exec, a), or call eval(exec)"};
}
Result<Buffer<float>> Expression::eval() const {
  FULCRUM_TRY(const Executor* executor, bound());
  return eval(*executor);
}
Status Expression::eval_into(Buffer<float>& result) const {
  FULCRUM_TRY(const Executor* executor, bound());
  return eval_into(*executor, result);
}
Result<Explanation> Expression::explain() const {
  FULCRUM_TRY(const Executor* executor, bound());
  return explain(*executor);
}

Expression operator+(const Expression& a, const Expression& b) {
  return Compose::of(TapeCode::add, {&a, &b});
}
Expression operator-(const Expression& a, const Expression& b) {
  return Compose::of(TapeCode::subtract, {&a, &b});
}
Expression operator*(const Expression& a, const Expression& b) {
  return Compose::of(TapeCode::multiply, {&a, &b});
}
Expression operator/(const Expression& a, const Expression& b) {
  return Compose::of(TapeCode::divide, {&a, &b});
}
Expression operator-(const Expression& a) { return Compose::of(TapeCode::negate, {&a}); }
Expression min(const Expression& a, const Expression& b) { return Compose::of(TapeCode::minimum, {&a, &b}); }
Expression max(const Expression& a, const Expression& b) { return Compose::of(TapeCode::maximum, {&a, &b}); }
Expression fma(const Expression& a, const Expression& b, const Expression& c) {
  return Compose::of(TapeCode::fma, {&a, &b, &c});
}
Expression abs(const Expression& a) { return Compose::of(TapeCode::absolute, {&a}); }
Expression sqrt(const Expression& a) { return Compose::of(TapeCode::sqrt, {&a}); }
Expression relu(const Expression& x) { return Compose::of(TapeCode::relu, {&x}); }
Expression leaky_relu(const Expression& x, double al) { return Compose::of(TapeCode::leaky_relu, {&x}, al); }
Expression elu(const Expression& x, double al) { return Compose::of(TapeCode::elu, {&x}, al); }
Expression clip(const Expression& x, double lo, double hi) {
  return Compose::of(TapeCode::clip, {&x}, lo, hi);
}
Expression sigmoid(const Expression& x) { return Compose::of(TapeCode::sigmoid, {&x}); }
Expression tanh(const Expression& x) { return Compose::of(TapeCode::tanh, {&x}); }
Expression swish(const Expression& x) { return Compose::of(TapeCode::swish, {&x}); }
Expression gelu(const Expression& x) { return Compose::of(TapeCode::gelu, {&x}); }

}  // namespace fulcrum::executor
