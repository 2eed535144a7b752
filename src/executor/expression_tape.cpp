// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One pass onto a tape. The machine has one accumulator, so of two operands that both have to be computed one waits in
// a temporary: the one that needs more of them itself goes first. Values with several readers wait until the last one.
#include <algorithm>
#include <functional>

#include "executor/expression_graph.h"

namespace fulcrum::executor {
namespace {

using Kind = Expression::Node::Kind;
using ops::TapeCode;
using ops::TapeStep;

TapeCode reversed(TapeCode code) {
  if (code == TapeCode::subtract) return TapeCode::take_from;
  if (code == TapeCode::divide) return TapeCode::divide_by;
  return code;  // the others do not care which side is which
}

class TapeWriter {
 public:
  explicit TapeWriter(const Graph& graph)
      : graph_(graph),
        uses_(graph.values.size(), 0),
        slot_(graph.values.size(), -1),
        need_(graph.values.size(), 0) {}

  std::optional<Pass> write(int root) {
    count_uses(root);
    if (!failed_) compute(root);
    if (failed_) return std::nullopt;
    pass_.tape.leaves = static_cast<std::int32_t>(pass_.leaves.size());
    pass_.value = root;
    return pass_;
  }

 private:
  const GraphValue& value(int number) const { return graph_.values[static_cast<std::size_t>(number)]; }
  int& uses(int number) { return uses_[static_cast<std::size_t>(number)]; }
  int& slot(int number) { return slot_[static_cast<std::size_t>(number)]; }
  int& need(int number) { return need_[static_cast<std::size_t>(number)]; }
  bool is_constant(int number) const { return value(number).kind == Kind::constant; }

  /// How often each value is read, and a slot for each leaf, in the order in which they are met.
  void count_uses(int number) {
    if (uses(number)++ > 0 || is_constant(number) || failed_) return;
    if (!value(number).is_op()) {
      slot(number) = static_cast<int>(pass_.leaves.size());
      pass_.leaves.push_back(number);
      failed_ |= pass_.leaves.size() > ops::kTapeLeaves;
      return;
    }
    failed_ |= ++ops_ > ops::kTapeLength;
    for (const int in : value(number).in) {
      if (in >= 0) count_uses(in);
    }
    note_need(number);
  }

  /// Temporaries that wait while the value is computed, were it a tree.
  void note_need(int number) {
    std::array<int, 3> needs = {-3, -3, -3};
    std::size_t computed = 0;
    for (const int in : value(number).in) {
      if (in >= 0 && value(in).is_op()) needs[computed++] = need(in);
    }
    std::sort(needs.begin(), needs.end(), std::greater<>());
    for (int k = 0; k < 3; ++k) need(number) = std::max(need(number), needs[static_cast<std::size_t>(k)] + k);
  }

  /// Whether a step may name it as an operand.
  bool at_hand(int number) { return is_constant(number) || slot(number) >= 0; }

  TapeStep* emit(TapeCode code) {
    if (pass_.tape.length == ops::kTapeLength) {
      failed_ = true;
      return nullptr;
    }
    TapeStep* step = &pass_.tape.step[pass_.tape.length++];
    *step = TapeStep{.code = code};
    return step;
  }

  /// A constant of a step: a parameter of the call while there are any, so that the tape stays the same when it changes.
  void put_constant(TapeStep& step, bool second, float constant) {
    if (parameters_ < ops::kTapeParameters) {
      pass_.parameters[static_cast<std::size_t>(parameters_)] = static_cast<double>(constant);
      step.bound = static_cast<std::uint8_t>(step.bound | ++parameters_ << (second ? 4 : 0));
    } else {
      (second ? step.q : step.p) = constant;
    }
  }

  void put_operand(TapeStep& step, bool second, int number) {
    std::uint8_t& to = second ? step.b : step.a;
    to = is_constant(number) ? ops::kTapeConst : static_cast<std::uint8_t>(slot(number));
    if (is_constant(number)) put_constant(step, second, value(number).p);
  }

  /// One reader less; a temporary that nobody reads any more is free.
  void done_with(int number) {
    if (--uses(number) > 0 || is_constant(number) || !ops::is_temporary(slot(number))) return;
    taken_ &= ~(1U << slot(number));
    slot(number) = -1;
  }

  /// The accumulator's value goes to a temporary.
  void keep(int number) {
    int free = ops::kTapeLeaves;
    while ((taken_ >> free & 1U) != 0) ++free;
    if (!ops::is_temporary(free)) {
      failed_ = true;
      return;
    }
    taken_ |= 1U << free;
    slot(number) = free;
    pass_.tape.temporaries = std::max(pass_.tape.temporaries, free - ops::kTapeLeaves + 1);
    if (TapeStep* step = emit(TapeCode::store)) step->a = static_cast<std::uint8_t>(free);
  }

  void load(int number) {
    if (TapeStep* step = emit(TapeCode::load)) put_operand(*step, false, number);
  }

  /// Computes all but the last of the operands that are not at hand into temporaries and that one into the accumulator.
  /// Returns which one is there, or -1 when all are at hand.
  int prepare_operands(const GraphValue& v) {
    std::vector<int> missing;
    for (const int in : v.in) {
      if (in >= 0 && !at_hand(in) && std::find(missing.begin(), missing.end(), in) == missing.end())
        missing.push_back(in);
    }
    std::stable_sort(missing.begin(), missing.end(), [&](int a, int b) { return need(a) > need(b); });
    for (std::size_t k = 0; k < missing.size() && !failed_; ++k) {
      // A value that was a part of the one before may be at hand by now.
      if (at_hand(missing[k])) continue;
      compute(missing[k]);
      const bool last = k + 1 == missing.size();
      const auto readers = std::count(v.in.begin(), v.in.end(), missing[k]);
      if (last && readers == 1) return missing[k];
      if (!at_hand(missing[k]) && !failed_) keep(missing[k]);
      if (last) return missing[k];
    }
    return -1;
  }

  /// Leaves the value in the accumulator, and in a temporary too when it has further readers.
  void compute(int number) {
    if (failed_) return;
    if (at_hand(number)) return load(number);
    const GraphValue& v = value(number);
    int in_accumulator = prepare_operands(v);
    if (failed_) return;
    // Which operand is the accumulator: the one that was just computed, else the first that is no constant.
    if (in_accumulator < 0) {
      in_accumulator = v.in[0];
      for (const int in : v.in) {
        if (in >= 0 && !is_constant(in)) {
          in_accumulator = in;
          break;
        }
      }
      load(in_accumulator);
    }
    apply(v, in_accumulator);
    for (const int in : v.in) {
      if (in >= 0) done_with(in);
    }
    if (uses(number) > 1 && !failed_) keep(number);
  }

  void apply(const GraphValue& v, int in_accumulator) {
    if (failed_) return;
    const bool first = v.in[0] == in_accumulator;
    if (v.code == TapeCode::fma) {
      const bool onto = !first && v.in[1] != in_accumulator;
      TapeStep* step = emit(onto ? TapeCode::fma_onto : TapeCode::fma);
      if (!step) return;
      put_operand(*step, false, onto || !first ? v.in[0] : v.in[1]);
      put_operand(*step, true, onto ? v.in[1] : v.in[2]);
      return;
    }
    TapeStep* step = emit(first ? v.code : reversed(v.code));
    if (!step) return;
    if (v.in[1] >= 0) put_operand(*step, false, first ? v.in[1] : v.in[0]);
    if (ops::parameters_of(v.code) > 0) put_constant(*step, false, v.p);
    if (ops::parameters_of(v.code) > 1) put_constant(*step, true, v.q);
  }

  const Graph& graph_;
  std::vector<int> uses_, slot_, need_;
  std::uint32_t taken_ = 0;
  int ops_ = 0, parameters_ = 0;
  bool failed_ = false;
  Pass pass_{};
};

}  // namespace

std::optional<Pass> pass_of(const Graph& graph, int value) { return TapeWriter(graph).write(value); }

}  // namespace fulcrum::executor
