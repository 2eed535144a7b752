// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a tape on the accumulator of a SIMD kernel: four vectors, which stay in registers from step to step, so
// that decoding a step is paid once for all of them. The same functions as in the ops' own kernels, so that an
// expression gives the bits of its ops called one by one.
#include <fulcrum/ops/expression.h>

#include "backends/simd/math-inl.h"
#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_TAPE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_TAPE_INL_H_
#undef FULCRUM_BACKENDS_SIMD_TAPE_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_TAPE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// Elements that go through the tape together.
inline constexpr std::size_t kGroup = 4 * kLanes;

struct Group {
  Floats v0, v1, v2, v3;
};
HWY_INLINE Group load_group(const float* from) {
  const Float d;
  return {hn::LoadU(d, from), hn::LoadU(d, from + kLanes), hn::LoadU(d, from + 2 * kLanes),
          hn::LoadU(d, from + 3 * kLanes)};
}
HWY_INLINE void store_group(const Group& g, float* to) {
  const Float d;
  hn::StoreU(g.v0, d, to);
  hn::StoreU(g.v1, d, to + kLanes);
  hn::StoreU(g.v2, d, to + 2 * kLanes);
  hn::StoreU(g.v3, d, to + 3 * kLanes);
}
/// Past the caches; `to` is aligned.
HWY_INLINE void stream_group(const Group& g, float* to) {
  const Float d;
  hn::Stream(g.v0, d, to);
  hn::Stream(g.v1, d, to + kLanes);
  hn::Stream(g.v2, d, to + 2 * kLanes);
  hn::Stream(g.v3, d, to + 3 * kLanes);
}

struct Add {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Add(r, a); }
};
struct Subtract {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Sub(r, a); }
};
struct TakeFrom {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Sub(a, r); }
};
struct Multiply {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Mul(r, a); }
};
struct Divide {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Div(r, a); }
};
struct DivideBy {
  HWY_INLINE Floats operator()(Floats r, Floats a) const { return hn::Div(a, r); }
};
// Comparisons decide, because what Min and Max do with NaN depends on the target.
struct Minimum {
  HWY_INLINE Floats operator()(Floats r, Floats a) const {
    return hn::IfThenElse(hn::Or(hn::Lt(r, a), hn::IsNaN(r)), r, a);
  }
};
struct Maximum {
  HWY_INLINE Floats operator()(Floats r, Floats a) const {
    return hn::IfThenElse(hn::Or(hn::Gt(r, a), hn::IsNaN(r)), r, a);
  }
};
struct Fma {
  HWY_INLINE Floats operator()(Floats r, Floats a, Floats b) const { return hn::MulAdd(r, a, b); }
};
struct FmaOnto {
  HWY_INLINE Floats operator()(Floats r, Floats a, Floats b) const { return hn::MulAdd(a, b, r); }
};
struct Negate {
  HWY_INLINE Floats operator()(Floats r) const { return hn::Neg(r); }
};
struct Absolute {
  HWY_INLINE Floats operator()(Floats r) const { return hn::Abs(r); }
};
struct Sqrt {
  HWY_INLINE Floats operator()(Floats r) const { return hn::Sqrt(r); }
};
struct Relu {
  HWY_INLINE Floats operator()(Floats r) const { return relu(r); }
};
struct LeakyRelu {
  Floats al, kept;  // `kept`: no bits at all when al is 0, where 0 * -Inf would be NaN
  HWY_INLINE Floats operator()(Floats r) const {
    return hn::IfThenElse(hn::Le(r, hn::Zero(Float())), hn::And(hn::Mul(al, r), kept), r);
  }
};
struct Elu {
  Floats al;
  HWY_INLINE Floats operator()(Floats r) const {
    return hn::IfThenElse(hn::Gt(r, hn::Zero(Float())), r, hn::Mul(al, expm1_of_negative(r)));
  }
};
struct Clip {
  Floats lo, hi;
  HWY_INLINE Floats operator()(Floats r) const {
    const auto raised = hn::IfThenElse(hn::Lt(r, lo), lo, r);
    return hn::IfThenElse(hn::Gt(raised, hi), hi, raised);
  }
};
struct Sigmoid {
  HWY_INLINE Floats operator()(Floats r) const { return sigmoid(r); }
};
struct Tanh {
  HWY_INLINE Floats operator()(Floats r) const { return tanh(r); }
};
struct Swish {
  HWY_INLINE Floats operator()(Floats r) const { return swish(r); }
};
struct Gelu {
  HWY_INLINE Floats operator()(Floats r) const { return gelu(r); }
};

/// Where operands lie: a leaf moves on with the element, a temporary stays.
struct TapeOperands {
  const float* from[ops::kTapeConst + 1];
  std::size_t moving[ops::kTapeConst + 1];  // all bits, or none
  HWY_INLINE Group get(int operand, std::size_t i) const {
    return load_group(from[operand] + (i & moving[operand]));
  }
};

template <class Function>
HWY_INLINE Group unary(const Group& r, const Function& f) {
  return {f(r.v0), f(r.v1), f(r.v2), f(r.v3)};
}

template <class Function>
HWY_INLINE Group binary(const ops::TapeStep& s, const TapeOperands& operands, std::size_t i, const Group& r) {
  const Function f;
  if (s.a == ops::kTapeConst) {
    const Floats a = set(s.p);
    return {f(r.v0, a), f(r.v1, a), f(r.v2, a), f(r.v3, a)};
  }
  const Group a = operands.get(s.a, i);
  return {f(r.v0, a.v0), f(r.v1, a.v1), f(r.v2, a.v2), f(r.v3, a.v3)};
}

template <class Function>
HWY_INLINE Group ternary(const ops::TapeStep& s, const TapeOperands& operands, std::size_t i,
                         const Group& r) {
  const Function f;
  const Floats p = set(s.p), q = set(s.q);
  const Group a = s.a == ops::kTapeConst ? Group{p, p, p, p} : operands.get(s.a, i);
  const Group b = s.b == ops::kTapeConst ? Group{q, q, q, q} : operands.get(s.b, i);
  return {f(r.v0, a.v0, b.v0), f(r.v1, a.v1, b.v1), f(r.v2, a.v2, b.v2), f(r.v3, a.v3, b.v3)};
}

HWY_INLINE Group loaded(const ops::TapeStep& s, const TapeOperands& operands, std::size_t i) {
  if (s.a != ops::kTapeConst) return operands.get(s.a, i);
  const Floats p = set(s.p);
  return {p, p, p, p};
}

HWY_INLINE LeakyRelu leaky_relu_of(float al) {
  return LeakyRelu{set(al), hn::VecFromMask(Float(), hn::Ne(set(al), hn::Zero(Float())))};
}

/// The elements [i, i + kGroup) through the whole tape, whose first step is a load.
HWY_INLINE Group run_tape(const ops::Tape& tape, const TapeOperands& operands, std::size_t i) {
  using ops::TapeCode;
  Group r = loaded(tape.step[0], operands, i);
  const ops::TapeStep* const end = tape.step + tape.length;
  for (const ops::TapeStep* step = tape.step + 1; step != end; ++step) {
    const ops::TapeStep& s = *step;
    switch (s.code) {
      case TapeCode::load:
        r = loaded(s, operands, i);
        break;
      case TapeCode::store:
        store_group(r, const_cast<float*>(operands.from[s.a]));
        break;
      case TapeCode::add:
        r = binary<Add>(s, operands, i, r);
        break;
      case TapeCode::subtract:
        r = binary<Subtract>(s, operands, i, r);
        break;
      case TapeCode::take_from:
        r = binary<TakeFrom>(s, operands, i, r);
        break;
      case TapeCode::multiply:
        r = binary<Multiply>(s, operands, i, r);
        break;
      case TapeCode::divide:
        r = binary<Divide>(s, operands, i, r);
        break;
      case TapeCode::divide_by:
        r = binary<DivideBy>(s, operands, i, r);
        break;
      case TapeCode::minimum:
        r = binary<Minimum>(s, operands, i, r);
        break;
      case TapeCode::maximum:
        r = binary<Maximum>(s, operands, i, r);
        break;
      case TapeCode::fma:
        r = ternary<Fma>(s, operands, i, r);
        break;
      case TapeCode::fma_onto:
        r = ternary<FmaOnto>(s, operands, i, r);
        break;
      case TapeCode::negate:
        r = unary(r, Negate());
        break;
      case TapeCode::absolute:
        r = unary(r, Absolute());
        break;
      case TapeCode::sqrt:
        r = unary(r, Sqrt());
        break;
      case TapeCode::relu:
        r = unary(r, Relu());
        break;
      case TapeCode::leaky_relu:
        r = unary(r, leaky_relu_of(s.p));
        break;
      case TapeCode::elu:
        r = unary(r, Elu{set(s.p)});
        break;
      case TapeCode::clip:
        r = unary(r, Clip{set(s.p), set(s.q)});
        break;
      case TapeCode::sigmoid:
        r = unary(r, Sigmoid());
        break;
      case TapeCode::tanh:
        r = unary(r, Tanh());
        break;
      case TapeCode::swish:
        r = unary(r, Swish());
        break;
      case TapeCode::gelu:
        r = unary(r, Gelu());
        break;
    }
  }
  return r;
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
