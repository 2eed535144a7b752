// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See tape_truth.h. A value stands for the interval value +- error that a kernel's may lie in. As long as every step so
// far rounds once, the f32 bits are known and the error is 0; after that errors grow by what each step does with them.
#include "ops/support/tape_truth.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fulcrum::ops {
namespace {

constexpr double kHalfUlp = 0x1p-24;  // of one rounding, relative
constexpr double kSmallest = 0x1p-149;
constexpr double kLargestInput = std::numeric_limits<float>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Value {
  double value = 0;
  double error = 0;
  bool doubtful = false;  // the error may have crossed an overflow, a pole or a zero: anything may follow

  double low() const { return value - error; }
  double high() const { return value + error; }
  bool may_be_zero() const { return low() <= 0 && high() >= 0; }
  double largest() const { return std::abs(value) + error; }
};

Value exact(double value) { return Value{.value = value}; }
Value doubt() { return Value{.doubtful = true}; }

/// A step that rounds once: of operands that are known exactly the result is, else half an ulp is added.
Value rounded(double value, double carried) {
  if (carried == 0) return exact(static_cast<float>(value));
  const double error = carried + std::max(kHalfUlp * (std::abs(value) + carried), kSmallest);
  if (!std::isfinite(value)) return exact(value);
  if (std::abs(value) - error > kLargestInput) return exact(std::copysign(kInfinity, value));
  if (std::abs(value) + error > kLargestInput) return doubt();
  return Value{value, error};
}

Value sum(const Value& a, const Value& b) { return rounded(a.value + b.value, a.error + b.error); }
Value negated(Value a) {
  a.value = -a.value;
  return a;
}

Value product(const Value& a, const Value& b) {
  const bool pole = (std::isinf(a.value) && b.error > 0 && b.may_be_zero()) ||
                    (std::isinf(b.value) && a.error > 0 && a.may_be_zero());
  if (pole) return doubt();
  double carried = 0;
  if (a.error > 0) carried += a.error * b.largest();
  if (b.error > 0) carried += b.error * std::abs(a.value);
  return rounded(a.value * b.value, std::isfinite(carried) ? carried : 0);
}

Value quotient(const Value& a, const Value& b) {
  if (b.error > 0 && b.may_be_zero()) return doubt();
  if (a.error == 0 && b.error == 0) return exact(static_cast<float>(a.value / b.value));
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return exact(a.value / b.value);
  if (b.value == 0) return a.may_be_zero() ? doubt() : exact(a.value / b.value);
  const double value = a.value / b.value;
  return rounded(value, (a.error + std::abs(value) * b.error) / (std::abs(b.value) - b.error));
}

Value root(const Value& a) {
  if (a.error == 0) return exact(static_cast<float>(std::sqrt(a.value)));
  if (a.low() < 0) return a.high() < 0 ? exact(std::nan("")) : doubt();
  const double value = std::sqrt(a.value);
  return rounded(value, std::max(std::sqrt(a.high()) - value, value - std::sqrt(a.low())));
}

/// Rounded twice where an instruction set has no fused multiply-add: the product may be off by half an ulp of its own.
Value fused(const Value& a, const Value& b, const Value& c) {
  const Value ab = product(a, b);
  if (ab.doubtful) return ab;
  const double sum = a.value * b.value + c.value;
  // A product that leaves the range of f32 on its own does no harm when fused.
  const double magnitude = std::abs(a.value * b.value);
  if (std::isfinite(magnitude) && magnitude * (1 + kHalfUlp) + ab.error > kLargestInput) return doubt();
  if (!std::isfinite(sum)) return exact(sum);
  const double product_error = std::max(kHalfUlp * magnitude, kSmallest);
  return rounded(sum, ab.error + c.error + product_error);
}

/// The smaller or the larger of two; of equal ones the second, since kernels tell 0 from -0 that way and a division may
/// show it.
Value chosen(const Value& r, const Value& a, bool smaller) {
  if (std::isnan(r.value) || std::isnan(a.value)) return exact(std::nan(""));
  const bool first = smaller ? r.value < a.value : r.value > a.value;
  return Value{first ? r.value : a.value, std::max(r.error, a.error)};
}

/// A continuous function of one value: its own bound, and how far it moves over the interval. Monotone but for one
/// place (the minimum of swish and of gelu), where no function here is steeper than 1.13.
template <class Function, class Allowed>
Value applied(const Value& a, const Function& f, const Allowed& allowed, double turning = kInfinity) {
  const double value = f(a.value);
  if (!std::isfinite(value)) return exact(value);
  double moved = 0, largest = std::abs(value);
  if (a.error > 0 && std::isfinite(a.value)) {
    const double low = f(a.low()), high = f(a.high());
    moved = std::max(std::abs(low - value), std::abs(high - value));
    if (a.low() <= turning && a.high() >= turning) moved = std::max(moved, 1.13 * a.error);
    largest = std::max({largest, std::abs(low), std::abs(high)});
  }
  const double error = moved + allowed(largest);
  return std::abs(value) + error > kLargestInput ? doubt() : Value{value, error};
}

double sigmoid_of(double x) {
  const double t = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : t) / (1 + t);
}
double swish_of(double x) { return x == -kInfinity ? 0 : x * sigmoid_of(x); }
double gelu_of(double x) {
  return x == -kInfinity ? 0 : x * sigmoid_of(2 * 0.7978845608028654 * (x + 0.044715 * x * x * x));
}
double within_8_ulps(double value) { return ulps(8, value); }
double of_swish(double value) { return ulps(8, value, 0x1p-119); }
double of_gelu(double value) { return std::max(ulps(64, value), 1e-12); }
constexpr double kTurnOfSwish = -1.2784645427610738, kTurnOfGelu = -0.7524614220710162;

Value clipped(const Value& a, double lo, double hi) {
  if (std::isnan(a.value)) return a;
  const auto clip = [&](double x) { return x < lo ? lo : x > hi ? hi : x; };
  const double value = clip(a.value);
  return Value{value, a.error == 0 ? 0 : std::max(clip(a.high()) - value, value - clip(a.low()))};
}

Value leaky(const Value& a, float al) {
  if (!(a.low() <= 0)) return a;                                  // NaN too
  if (al == 0) return Value{a.value > 0 ? a.value : 0, a.error};  // never -0
  if (a.error == 0) return exact(static_cast<float>(al * a.value));
  return rounded(a.value > 0 ? a.value : al * a.value, a.error);
}

Value function(TapeCode code, const Value& r, float p, float q) {
  switch (code) {
    case TapeCode::relu:
      return leaky(r, 0);
    case TapeCode::leaky_relu:
      return leaky(r, p);
    case TapeCode::elu:
      return applied(
          r, [p](double x) { return x > 0 ? x : p * std::expm1(x); }, within_8_ulps);
    case TapeCode::clip:
      return clipped(r, p, q);
    case TapeCode::sigmoid:
      return applied(r, sigmoid_of, within_8_ulps);
    case TapeCode::tanh:
      return applied(
          r, [](double x) { return std::tanh(x); }, within_8_ulps);
    case TapeCode::swish:
      return applied(r, swish_of, of_swish, kTurnOfSwish);
    default:
      return applied(r, gelu_of, of_gelu, kTurnOfGelu);
  }
}

Value stepped(TapeCode code, const Value& r, const Value& a, const Value& b, float p, float q) {
  switch (code) {
    case TapeCode::load:
      return a;
    case TapeCode::store:
      return r;
    case TapeCode::add:
      return sum(r, a);
    case TapeCode::subtract:
      return sum(r, negated(a));
    case TapeCode::take_from:
      return sum(a, negated(r));
    case TapeCode::multiply:
      return product(r, a);
    case TapeCode::divide:
      return quotient(r, a);
    case TapeCode::divide_by:
      return quotient(a, r);
    case TapeCode::minimum:
      return chosen(r, a, true);
    case TapeCode::maximum:
      return chosen(r, a, false);
    case TapeCode::fma:
      return fused(r, a, b);
    case TapeCode::fma_onto:
      return fused(a, b, r);
    case TapeCode::negate:
      return negated(r);
    case TapeCode::absolute:
      return Value{std::abs(r.value), r.error};
    case TapeCode::sqrt:
      return root(r);
    default:
      return function(code, r, p, q);
  }
}

}  // namespace

Truth truth_of(const Tape& bound, const float* leaves) {
  Value known[kTapeConst + 1];
  for (int leaf = 0; leaf < bound.leaves; ++leaf) known[leaf] = exact(leaves[leaf]);
  Value r;
  for (int i = 0; i < bound.length; ++i) {
    const TapeStep& step = bound.step[i];
    const auto operand = [&](int number, float constant) {
      return number == kTapeConst ? exact(constant) : known[number];
    };
    const int taken = step.code == TapeCode::store ? 0 : operands_of(step.code);
    const Value a = taken > 0 ? operand(step.a, step.p) : Value{};
    const Value b = taken > 1 ? operand(step.b, step.q) : Value{};
    const bool reads = step.code != TapeCode::load;
    const bool doubtful = (reads && r.doubtful) || a.doubtful || b.doubtful;
    r = doubtful ? doubt() : stepped(step.code, r, a, b, step.p, step.q);
    if (step.code == TapeCode::store) known[step.a] = r;
  }
  if (r.doubtful) return Truth{.allowed = kInfinity, .any_non_finite = true};
  return Truth{.value = r.value, .allowed = r.error};
}

TapeCost cost_of(const Tape& tape) {
  TapeCost cost;
  for (int i = 0; i < tape.length; ++i) {
    switch (tape.step[i].code) {
      case TapeCode::load:
      case TapeCode::store:
        break;
      case TapeCode::divide:
      case TapeCode::divide_by:
      case TapeCode::sqrt:
        cost.flops += 1, cost.slots += 4;
        break;
      case TapeCode::fma:
      case TapeCode::fma_onto:
        cost.flops += 2, cost.slots += 1;
        break;
      case TapeCode::leaky_relu:
      case TapeCode::clip:
        cost.flops += 2, cost.slots += 2;
        break;
      case TapeCode::elu:
        cost.flops += 3, cost.slots += 17;
        break;
      case TapeCode::sigmoid:
        cost.flops += 4, cost.slots += 19;
        break;
      case TapeCode::tanh:
        cost.flops += 6, cost.slots += 16;
        break;
      case TapeCode::swish:
        cost.flops += 5, cost.slots += 20;
        break;
      case TapeCode::gelu:
        cost.flops += 9, cost.slots += 23;
        break;
      default:
        cost.flops += 1, cost.slots += 1;
    }
  }
  return cost;
}

}  // namespace fulcrum::ops
