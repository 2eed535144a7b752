// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A tape as the device reads it: operands are slots of shared memory, whether an operand is a constant is part of the
// code, and pairs of steps that often come together are one. Decoding a step costs as much as computing some elements,
// so fewer and simpler steps are what the translation is for; results keep their bits. Compiles for the host too, so
// that a test without a device sees every translation.
#pragma once

#include <fulcrum/ops/expression.h>

#include "backends/cuda/functors.h"

namespace fulcrum::backends::cuda::streaming {

/// r is the accumulator, a and b are operands in slots, p, q and s constants.
enum class StepCode : std::uint8_t {
  load,                // a
  store,               // r, and a becomes r too
  add,                 // r + a
  add_constant,        // r + p
  subtract,            // r - a
  take_from,           // a - r
  take_from_constant,  // p - r
  multiply,            // r * a
  multiply_constant,   // r * p
  affine,              // (r * p) + q, rounded twice
  minimum,
  minimum_constant,
  maximum,
  maximum_constant,
  fma,       // r * a + b, either of them a constant where its slot says so
  fma_onto,  // a * b + r
  negate,
  absolute,
  bend,          // leaky_relu, al = p > 0
  bend_flat,     // relu, and leaky_relu with al = 0
  clip,          // lo = p, hi = q, neither of them 0
  clip_at_zero,  // the same where one is, and the sign of zeros decides
  bend_clip,     // bend with al = s, then clip
  sigmoid,
  swish,
  gelu,
  // What follows is rare, or takes many instructions and with them registers: tapes without it have a kernel without it.
  load_constant,  // p
  divide,         // r / a or r / p
  divide_by,      // a / r or p / r
  sqrt,
  elu,  // al = p
  tanh,
};
inline constexpr StepCode kFirstHeavy = StepCode::load_constant;
inline constexpr std::uint8_t kConstantSlot = 255;

/// 16 bytes, in whole words: what is packed from bytes is unpacked again in every step.
struct alignas(16) DeviceStep {
  std::uint32_t word = 0;  // code, a, b, from the lowest byte on
  float p = 0, q = 0, s = 0;

  FULCRUM_EVERYWHERE StepCode code() const { return static_cast<StepCode>(word & 255); }
  FULCRUM_EVERYWHERE int a() const { return static_cast<int>(word >> 8 & 255); }
  FULCRUM_EVERYWHERE int b() const { return static_cast<int>(word >> 16); }
};

struct DeviceTape {
  std::int32_t length = 0, leaves = 0, slots = 0;
  std::int32_t heavy = 0;
  std::int32_t instructions = 0;          // of one element, about
  DeviceStep step[ops::kTapeLength + 1];  // one more than there are, to be fetched ahead and never used
};

constexpr std::uint32_t word_of(StepCode code, std::uint8_t a = 0, std::uint8_t b = 0) {
  return static_cast<std::uint32_t>(code) | std::uint32_t{a} << 8 | std::uint32_t{b} << 16;
}

/// The code of a step without regard to its neighbours.
inline DeviceStep translated(const ops::TapeStep& from, std::int32_t leaves) {
  using ops::TapeCode;
  const auto slot = [&](std::uint8_t operand) {
    if (operand == ops::kTapeConst) return kConstantSlot;
    return static_cast<std::uint8_t>(ops::is_leaf(operand) ? operand : operand - ops::kTapeLeaves + leaves);
  };
  StepCode code = StepCode::load;
  float p = from.p;
  const bool constant = from.a == ops::kTapeConst;
  const auto either = [&](StepCode with_slot, StepCode with_constant) {
    code = constant ? with_constant : with_slot;
  };
  switch (from.code) {
    case TapeCode::load:
      either(StepCode::load, StepCode::load_constant);
      break;
    case TapeCode::store:
      code = StepCode::store;
      break;
    case TapeCode::add:
      either(StepCode::add, StepCode::add_constant);
      break;
    case TapeCode::subtract:
      either(StepCode::subtract, StepCode::add_constant);
      if (constant) p = -from.p;  // the same for every r, zeros and infinities too
      break;
    case TapeCode::take_from:
      either(StepCode::take_from, StepCode::take_from_constant);
      break;
    case TapeCode::multiply:
      either(StepCode::multiply, StepCode::multiply_constant);
      break;
    case TapeCode::divide:
      code = StepCode::divide;
      break;
    case TapeCode::divide_by:
      code = StepCode::divide_by;
      break;
    case TapeCode::minimum:
      either(StepCode::minimum, StepCode::minimum_constant);
      break;
    case TapeCode::maximum:
      either(StepCode::maximum, StepCode::maximum_constant);
      break;
    case TapeCode::fma:
      code = StepCode::fma;
      break;
    case TapeCode::fma_onto:
      code = StepCode::fma_onto;
      break;
    case TapeCode::negate:
      code = StepCode::negate;
      break;
    case TapeCode::absolute:
      code = StepCode::absolute;
      break;
    case TapeCode::sqrt:
      code = StepCode::sqrt;
      break;
    case TapeCode::relu:
      code = StepCode::bend_flat;
      break;
    case TapeCode::leaky_relu:
      code = from.p == 0 ? StepCode::bend_flat : StepCode::bend;
      break;
    case TapeCode::elu:
      code = StepCode::elu;
      break;
    case TapeCode::clip:
      code = from.p == 0 || from.q == 0 ? StepCode::clip_at_zero : StepCode::clip;
      break;
    case TapeCode::sigmoid:
      code = StepCode::sigmoid;
      break;
    case TapeCode::tanh:
      code = StepCode::tanh;
      break;
    case TapeCode::swish:
      code = StepCode::swish;
      break;
    case TapeCode::gelu:
      code = StepCode::gelu;
      break;
  }
  return DeviceStep{.word = word_of(code, slot(from.a), slot(from.b)), .p = p, .q = from.q};
}

/// Instructions that a step takes for one element, about.
constexpr std::int32_t instructions_of(StepCode code) {
  if (code >= StepCode::divide) return 20;
  if (code >= StepCode::sigmoid && code <= StepCode::gelu) return 12;
  return code >= StepCode::bend && code <= StepCode::bend_clip ? 3 : 2;
}

/// `second` becomes a part of `first` where the two have a code of their own.
inline bool merged(DeviceStep& first, const DeviceStep& second) {
  if (first.code() == StepCode::multiply_constant && second.code() == StepCode::add_constant) {
    first.word = word_of(StepCode::affine);
    first.q = second.p;
    return true;
  }
  if (first.code() == StepCode::bend && second.code() == StepCode::clip) {
    first = DeviceStep{.word = word_of(StepCode::bend_clip), .p = second.p, .q = second.q, .s = first.p};
    return true;
  }
  return false;
}

/// `bound`: parameters are in place.
inline void translate(const ops::Tape& bound, DeviceTape& tape) {
  tape.leaves = bound.leaves;
  tape.slots = bound.leaves + bound.temporaries;
  tape.length = 0;
  tape.heavy = tape.instructions = 0;
  for (std::int32_t i = 0; i < bound.length; ++i) {
    const DeviceStep step = translated(bound.step[i], bound.leaves);
    tape.heavy |= step.code() >= kFirstHeavy;
    tape.instructions += instructions_of(step.code());
    if (tape.length > 0 && merged(tape.step[tape.length - 1], step)) continue;
    tape.step[tape.length++] = step;
  }
}

}  // namespace fulcrum::backends::cuda::streaming
