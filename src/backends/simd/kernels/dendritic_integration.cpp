// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dendritic_integration in blocks of dendrites: their sums first, then half the states and the function of a branch on
// whole vectors, whatever the number of dendrites a neuron has, then the means. The order of every sum depends on D
// and S alone.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/dendritic_integration.cpp"
#include <fulcrum/ops/dendritic_integration.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/sums-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

/// Dendrites of a block: neurons that have no more are taken whole, several at a time. Memory rests while a block goes
/// through its function, so that a larger one is slower where memory is all.
constexpr std::size_t kBlock = 128;
/// Synapses from which one chain of fmas would wait for itself. Below, the chains of the next dendrites overlap, and
/// memory is read strictly in order, which its prefetchers reward.
constexpr std::size_t kLongSum = 16 * kLanes;

/// Buffers of a block; vectors may write past its end.
struct Block {
  HWY_ALIGN float x[kBlock + kLanes];
  HWY_ALIGN float half_state[kBlock + kLanes];
};

/// Products of one dendrite, lane by lane.
HWY_INLINE Floats products(const float* in, const float* w, std::size_t n) {
  const Float d;
  Floats sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t s = 0;
  for (; n >= kLongSum && s + 4 * kLanes <= n; s += 4 * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < 4; ++p) {
      const std::size_t at = s + p * kLanes;
      sum[p] = hn::MulAdd(hn::LoadU(d, in + at), hn::LoadU(d, w + at), sum[p]);
    }
  }
  for (; s + kLanes <= n; s += kLanes) sum[0] = hn::MulAdd(hn::LoadU(d, in + s), hn::LoadU(d, w + s), sum[0]);
  if (s < n) sum[1] = hn::MulAdd(load_first(in + s, n - s), load_first(w + s, n - s), sum[1]);
  return hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
}

/// x[i] = sum over s of in[i, s] * w[i, s] for `count` dendrites; writes up to three more.
void sum_dendrites(const float* in, const float* w, std::size_t synapses, std::size_t count, float* x) {
  const Floats zero = hn::Zero(Float());
  for (std::size_t i = 0; i < count; i += 4, in += 4 * synapses, w += 4 * synapses) {
    Floats sum[4] = {zero, zero, zero, zero};
    const std::size_t rows = std::min<std::size_t>(4, count - i);
    if (synapses < kLanes) {
      fetch_short_rows(in, rows * synapses);
      fetch_short_rows(w, rows * synapses);
    }
    if (rows == 4) {
      HWY_UNROLL(4)
      for (std::size_t r = 0; r < 4; ++r) sum[r] = products(in + r * synapses, w + r * synapses, synapses);
    } else {
      for (std::size_t r = 0; r < rows; ++r) sum[r] = products(in + r * synapses, w + r * synapses, synapses);
    }
    store_four_sums(Float(), sum[0], sum[1], sum[2], sum[3], x + i);
  }
}

struct Sigmoid {
  HWY_INLINE Floats operator()(Floats x) const { return sigmoid(hn::MulAdd(x, set(10.0F), set(-5.0F))); }
};
struct Nmda {
  HWY_INLINE Floats operator()(Floats x) const {
    const auto y = hn::Mul(hn::Neg(x), sigmoid(hn::Mul(x, set(0.062F))));
    // Far below zero the product has long vanished, and at -Inf it would be Inf * 0.
    return hn::IfThenElse(hn::Lt(x, set(-3000.0F)), hn::Zero(Float()), y);
  }
};
struct Active {
  HWY_INLINE Floats operator()(Floats x) const {
    const auto rise =
        hn::Mul(hn::Mul(set(2.0F), hn::Sub(x, set(0.3F))), exp_of_negative(hn::Mul(set(-0.5F), hn::Abs(x))));
    const auto above = hn::IfThenElse(hn::Gt(x, set(400.0F)), hn::Zero(Float()), rise);
    return hn::IfThenElse(hn::Gt(x, set(0.3F)), above, hn::Mul(set(0.1F), x));
  }
};
struct Multiplicative {
  HWY_INLINE Floats operator()(Floats x) const { return tanh(x); }
};

/// x[i] = f(x[i] + half_state[i]).
template <class Branch>
HWY_INLINE void apply(Block& block, std::size_t count, Branch branch) {
  const Float d;
  for (std::size_t i = 0; i < count; i += kLanes) {
    hn::Store(branch(hn::Add(hn::Load(d, block.x + i), hn::Load(d, block.half_state + i))), d, block.x + i);
  }
}

/// Sum of n values in four running sums: a chain of n additions would wait for each one.
HWY_INLINE float sum_of(const float* x, std::size_t n) {
  float sum[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t p = 0; p < 4; ++p) sum[p] += x[i + p];
  }
  for (; i < n; ++i) sum[0] += x[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// The same value for `count` dendrites, in whole vectors: what lies behind is written by the next neuron.
HWY_INLINE void fill(float value, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; i += kLanes) hn::StoreU(set(value), Float(), to + i);
}

template <class Branch>
HWY_NOINLINE void integrate(const fulcrum_args& a, std::size_t first, std::size_t last, Branch branch) {
  const auto dendrites = static_cast<std::size_t>(a.dim[1]), synapses = static_cast<std::size_t>(a.dim[2]);
  const auto scale = static_cast<float>(dendrites);
  const auto* in = a.in<float>(0);
  const auto* w = a.in<float>(1);
  const auto* state = a.in<float>(2);
  auto* out = a.out<float>(3);
  Block block = {};  // the last vector is done as a whole, and f of what lay there may take long
  const std::size_t step = std::max<std::size_t>(1, kBlock / dendrites);
  for (std::size_t n = first; n < last; n += step) {
    const std::size_t neurons = std::min(step, last - n);
    if (dendrites > kBlock) {
      double sum = 0;  // of blocks
      fill(0.5F * state[n], kBlock, block.half_state);
      for (std::size_t at = 0; at < dendrites; at += kBlock) {
        const std::size_t count = std::min(kBlock, dendrites - at), from = (n * dendrites + at) * synapses;
        sum_dendrites(in + from, w + from, synapses, count, block.x);
        apply(block, count, branch);
        sum += static_cast<double>(sum_of(block.x, count));
      }
      out[n] = static_cast<float>(sum / static_cast<double>(dendrites));
      continue;
    }
    const std::size_t from = n * dendrites * synapses;
    sum_dendrites(in + from, w + from, synapses, neurons * dendrites, block.x);
    for (std::size_t i = 0; i < neurons; ++i) {
      fill(0.5F * state[n + i], dendrites, block.half_state + i * dendrites);
    }
    apply(block, neurons * dendrites, branch);
    for (std::size_t i = 0; i < neurons; ++i) {
      out[n + i] = sum_of(block.x + i * dendrites, dendrites) / scale;
    }
  }
}

void integrate_neurons(const fulcrum_args& a, std::int64_t first, std::int64_t last) {
  const auto from = static_cast<std::size_t>(first), to = static_cast<std::size_t>(last);
  switch (a.scalar[0].i) {
    case ops::kDendriteSigmoid:
      return integrate(a, from, to, Sigmoid());
    case ops::kDendriteNmda:
      return integrate(a, from, to, Nmda());
    case ops::kDendriteActive:
      return integrate(a, from, to, Active());
    default:
      return integrate(a, from, to, Multiplicative());
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(integrate_neurons);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto all = &(HWY_DYNAMIC_DISPATCH(integrate_neurons));
  for (std::int64_t call = 0; call < count; ++call) all(*a, 0, a->dim[0]);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(integrate_neurons))(*a, begin * ops::kDendriticNeurons,
                                            std::min(end * ops::kDendriticNeurons, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> dendritic_integration() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
