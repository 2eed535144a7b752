// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tape of an expression: what the op `expression` does to each element, as steps of a machine with one accumulator.
// Steps read the accumulator, at most two further operands (a leaf, a temporary, a constant) and leave their result in
// the accumulator; the result of the last one is the element's. Chains and left-deep trees need no temporary at all.
#pragma once

#include <fulcrum/abi.h>

#include <array>
#include <cstdint>

namespace fulcrum::ops {

inline constexpr int kTapeLeaves = 7;       // x0 .. x6, in pointer slots 0 to 6
inline constexpr int kTapeResult = 7;       // pointer slot of the result
inline constexpr int kTapeTemporaries = 8;  // alive at once
inline constexpr int kTapeLength = 64;
inline constexpr int kTapeParameters = 6;       // constants that a call passes beside its tape
inline constexpr int kTapeFirstParameter = 2;   // scalar slot of the first; before it: program, tape
inline constexpr std::uint8_t kTapeConst = 15;  // operand: the step's own constant, p for `a` and q for `b`

/// What a step leaves in the accumulator r. Functions mean what the op of the same name means, to the bit on the same
/// backend; + - * / and sqrt round once, fma rounds once where the instruction set has it.
enum class TapeCode : std::uint8_t {
  load,        // a
  store,       // r, and temporary a becomes r too
  add,         // r + a
  subtract,    // r - a
  take_from,   // a - r
  multiply,    // r * a
  divide,      // r / a
  divide_by,   // a / r
  minimum,     // the smaller of r and a; NaN if either is NaN
  maximum,     // the larger
  fma,         // r * a + b
  fma_onto,    // a * b + r
  negate,      // -r
  absolute,    // |r|
  sqrt,        // square root of r
  relu,        // of r
  leaky_relu,  // al = p
  elu,         // al = p
  clip,        // lo = p, hi = q
  sigmoid,     // of r
  tanh,
  swish,
  gelu,
};
inline constexpr int kTapeCodes = static_cast<int>(TapeCode::gelu) + 1;

/// Operands a step takes beside the accumulator.
constexpr int operands_of(TapeCode code) {
  if (code == TapeCode::fma || code == TapeCode::fma_onto) return 2;
  return code <= TapeCode::maximum ? 1 : 0;
}
/// Constants of a function: al; lo and hi.
constexpr int parameters_of(TapeCode code) {
  if (code == TapeCode::clip) return 2;
  return code == TapeCode::leaky_relu || code == TapeCode::elu ? 1 : 0;
}

/// Operands: 0 .. 6 a leaf, 7 .. 14 a temporary, kTapeConst the step's constant.
struct TapeStep {
  TapeCode code = TapeCode::load;
  std::uint8_t a = 0, b = 0;
  std::uint8_t bound =
      0;  // low half: 1 + number of the parameter that replaces p; high half: the same for q; 0: none
  float p = 0, q = 0;
};

struct Tape {
  std::int32_t length = 0;
  std::int32_t leaves = 0;       // x0 .. x(leaves-1); each is read
  std::int32_t temporaries = 0;  // 7 .. 6+temporaries
  TapeStep step[kTapeLength];
};

constexpr bool is_leaf(int operand) { return operand < kTapeLeaves; }
constexpr bool is_temporary(int operand) {
  return operand >= kTapeLeaves && operand < kTapeLeaves + kTapeTemporaries;
}

/// What a tape is refused for, or null: it would read what nothing wrote, or leave a leaf unread.
constexpr const char* fault_of(const Tape& tape) {
  if (tape.length < 1 || tape.length > kTapeLength) return "it has no steps or more than 64";
  if (tape.leaves < 1 || tape.leaves > kTapeLeaves) return "it has no leaf or more than 7";
  if (tape.temporaries < 0 || tape.temporaries > kTapeTemporaries) return "it has more than 8 temporaries";
  if (tape.step[0].code != TapeCode::load) return "its first step is not a load";
  std::uint32_t known = (1U << tape.leaves) - 1, read = 0;
  for (int i = 0; i < tape.length; ++i) {
    const TapeStep& step = tape.step[i];
    if (static_cast<int>(step.code) >= kTapeCodes) return "it has a step of no known code";
    if (step.code == TapeCode::store) {
      if (!is_temporary(step.a) || step.a >= kTapeLeaves + tape.temporaries)
        return "it stores into no temporary";
      known |= 1U << step.a;
      continue;
    }
    for (int k = 0; k < operands_of(step.code); ++k) {
      const int operand = k == 0 ? step.a : step.b;
      if (operand == kTapeConst) continue;
      if (operand > kTapeConst || (known >> operand & 1U) == 0) return "it reads what nothing wrote";
      read |= 1U << operand;
    }
    if ((step.bound & 15) > kTapeParameters || step.bound >> 4 > kTapeParameters)
      return "it has no such parameter";
  }
  const std::uint32_t leaves = (1U << tape.leaves) - 1;
  return (read & leaves) == leaves ? nullptr : "it leaves a leaf unread";
}

/// Programs that have a name, in the order of the op's choice; the last stands for a tape of the caller's.
enum class Program : std::uint8_t {
  unary4,
  activation4,
  add_multiply,
  chain4,
  chain8,
  functions,
  arithmetic,
  leaves7,
  custom
};
inline constexpr int kPrograms = static_cast<int>(Program::custom);

namespace tape_detail {
constexpr TapeStep step(TapeCode code, int a = 0, int b = 0, float p = 0, float q = 0) {
  return TapeStep{code, static_cast<std::uint8_t>(a), static_cast<std::uint8_t>(b), 0, p, q};
}
template <std::size_t kCount>
constexpr Tape tape(int leaves, int temporaries, const TapeStep (&steps)[kCount]) {
  static_assert(kCount <= kTapeLength);
  Tape result{};
  result.length = kCount;
  result.leaves = leaves;
  result.temporaries = temporaries;
  for (std::size_t i = 0; i < kCount; ++i) result.step[i] = steps[i];
  return result;
}

constexpr std::array<Tape, kPrograms> make_programs() {
  using enum TapeCode;
  constexpr int kT0 = kTapeLeaves, kT1 = kTapeLeaves + 1, kT2 = kTapeLeaves + 2, kC = kTapeConst;
  return {
      // clip(leaky_relu(x0 * 1.5 + 0.25, 0.1), -0.25, 4), the product and the sum rounded one by one
      tape(1, 0,
           {step(load, 0), step(multiply, kC, 0, 1.5F), step(add, kC, 0, 0.25F), step(leaky_relu, 0, 0, 0.1F),
            step(clip, 0, 0, -0.25F, 4)}),
      // clip(gelu(leaky_relu(clip(x0, -3, 3), 0.1)), -0.1, 2.5): each step is an op of the suite
      tape(1, 0,
           {step(load, 0), step(clip, 0, 0, -3, 3), step(leaky_relu, 0, 0, 0.1F), step(gelu),
            step(clip, 0, 0, -0.1F, 2.5F)}),
      // (x0 + x1) * x2
      tape(3, 0, {step(load, 0), step(add, 1), step(multiply, 2)}),
      // gelu(clip((x0 + x1) * x2, -2, 2))
      tape(3, 0, {step(load, 0), step(add, 1), step(multiply, 2), step(clip, 0, 0, -2, 2), step(gelu)}),
      // s = sigmoid(x0 * x1 + x2); swish(s * x0 + (1 - s) * x3) / 2 + 0.5
      tape(4, 2,
           {step(load, 0), step(fma, 1, 2), step(sigmoid), step(store, kT0), step(multiply, 0),
            step(store, kT1), step(load, kT0), step(take_from, kC, 0, 1), step(fma, 3, kT1), step(swish),
            step(fma, kC, kC, 0.5F, 0.5F)}),
      // every function, each of moderate inputs
      tape(2, 1,
           {step(load, 0), step(elu, 0, 0, 0.5F), step(store, kT0), step(load, 1), step(tanh), step(add, kT0),
            step(leaky_relu, 0, 0, 0.2F), step(swish), step(sigmoid), step(relu), step(multiply, 1),
            step(gelu)}),
      // r = sqrt(x0^2 + x1^2) / (1 + |x0|); d = r - min(x0, x1); max(-x1, x0) / (1 + |x0|) - d
      tape(2, 3, {step(load, 0),        step(absolute),    step(add, kC, 0, 1),  step(store, kT0),
                  step(load, 1),        step(multiply, 1), step(fma_onto, 0, 0), step(sqrt),
                  step(divide, kT0),    step(store, kT1),  step(load, 0),        step(minimum, 1),
                  step(take_from, kT1), step(store, kT1),  step(load, 1),        step(negate),
                  step(maximum, 0),     step(store, kT2),  step(load, kT0),      step(divide_by, kT2),
                  step(subtract, kT1)}),
      // x0 x1 + x2 x3 + x4 x5 + x6
      tape(7, 0, {step(load, 6), step(fma_onto, 4, 5), step(fma_onto, 2, 3), step(fma_onto, 0, 1)}),
  };
}
inline constexpr std::array<Tape, kPrograms> kStandard = make_programs();
}  // namespace tape_detail

/// The tape of a call: the caller's, or that of the program it names. Null: it names none and brings none.
inline const Tape* tape_of(const fulcrum_args& args) {
  if (args.prepared) return static_cast<const Tape*>(args.prepared);
  const std::int64_t program = args.scalar[0].i;
  return program >= 0 && program < kPrograms ? &tape_detail::kStandard[static_cast<std::size_t>(program)]
                                             : nullptr;
}

/// The tape with the call's parameters in place; only the steps that there are.
inline void bind_tape(const Tape& tape, const fulcrum_args& args, Tape& bound) {
  bound.length = tape.length;
  bound.leaves = tape.leaves;
  bound.temporaries = tape.temporaries;
  const auto parameter = [&](int number) {
    return static_cast<float>(args.scalar[kTapeFirstParameter + number - 1].f);
  };
  for (std::int32_t i = 0; i < tape.length; ++i) {
    bound.step[i] = tape.step[i];
    if (const int p = tape.step[i].bound & 15) bound.step[i].p = parameter(p);
    if (const int q = tape.step[i].bound >> 4) bound.step[i].q = parameter(q);
  }
}

}  // namespace fulcrum::ops
