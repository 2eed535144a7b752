// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tape of an expression on the device. It travels as a kernel parameter, so all threads of a warp take the same
// branch and the step comes from the constant cache. A thread carries several elements through each step, which shares
// the cost of decoding it; its accumulator lives in registers, leaves and temporaries in its own column of shared
// memory, which no other thread reads and which can be numbered at run time. Functions are those of the ops' kernels.
#pragma once

#include <fulcrum/ops/expression.h>

#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::streaming {

using ops::TapeCode;
using ops::TapeStep;

/// A call: its tape with parameters in place and slots of shared memory for operands, and its arrays.
struct TapeCall {
  ops::Tape tape;
  Operands<ops::kTapeLeaves> operands;
};

template <int kCount>
struct Lanes {
  float v[kCount];
};

template <int kCount, class Function>
__device__ __forceinline__ void each(Lanes<kCount>& r, const Function& f) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) r.v[i] = f(r.v[i]);
}

/// One step on the accumulator. The operands were fetched; those that the code does not take hold anything.
template <int kCount>
__device__ __forceinline__ void act(const TapeStep& step, Lanes<kCount>& r, const Lanes<kCount>& a,
                                    const Lanes<kCount>& b) {
#define FULCRUM_LANES(expression)                        \
  {                                                      \
    _Pragma("unroll") for (int i = 0; i < kCount; ++i) { \
      const float x = r.v[i], y = a.v[i];                \
      r.v[i] = expression;                               \
    }                                                    \
    return;                                              \
  }
  switch (step.code) {
    case TapeCode::load:
      r = a;
      return;
    case TapeCode::add:
      FULCRUM_LANES(x + y)
    case TapeCode::subtract:
      FULCRUM_LANES(x - y)
    case TapeCode::take_from:
      FULCRUM_LANES(y - x)
    case TapeCode::multiply:
      FULCRUM_LANES(x * y)
    case TapeCode::divide:
      FULCRUM_LANES(x / y)
    case TapeCode::divide_by:
      FULCRUM_LANES(y / x)
    case TapeCode::minimum:
      FULCRUM_LANES(x < y || x != x ? x : y)
    case TapeCode::maximum:
      FULCRUM_LANES(x > y || x != x ? x : y)
    case TapeCode::fma:
#pragma unroll
      for (int i = 0; i < kCount; ++i) r.v[i] = ::fmaf(r.v[i], a.v[i], b.v[i]);
      return;
    case TapeCode::fma_onto:
#pragma unroll
      for (int i = 0; i < kCount; ++i) r.v[i] = ::fmaf(a.v[i], b.v[i], r.v[i]);
      return;
    case TapeCode::negate:
      FULCRUM_LANES((static_cast<void>(y), -x))
    case TapeCode::absolute:
      FULCRUM_LANES((static_cast<void>(y), ::fabsf(x)))
    case TapeCode::sqrt:
      FULCRUM_LANES((static_cast<void>(y), ::sqrtf(x)))
    case TapeCode::relu:
      return each(r, Relu{});
    case TapeCode::leaky_relu:
      return each(r, LeakyRelu{{}, step.p});
    case TapeCode::elu:
      return each(r, Elu{{}, step.p});
    case TapeCode::clip:
      return each(r, Clip{{}, step.p, step.q});
    case TapeCode::sigmoid:
      return each(r, Sigmoid{});
    case TapeCode::tanh:
      return each(r, Tanh{});
    case TapeCode::swish:
      return each(r, Swish{});
    case TapeCode::gelu:
      return each(r, Gelu{});
    default:
      return;
  }
#undef FULCRUM_LANES
}

/// From global to shared memory without a register on the way; complete for this thread after finish_copies().
template <class Pack>
__device__ __forceinline__ void copy_async(Pack* to, const Pack* from) {
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (sizeof(Pack) == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared), "l"(from) : "memory");
  }
}
__device__ __forceinline__ void finish_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// A thread's values: kItems packs, kThreads apart.
template <class Pack, int kItems, int kThreads>
struct Column {
  static constexpr int kWidth = sizeof(Pack) / sizeof(float), kCount = kItems * kWidth;
  Pack* first;  // of this thread in slot 0

  __device__ __forceinline__ Pack* at(int slot, int item) const {
    return first + (slot * kItems + item) * kThreads;
  }
  static __device__ __forceinline__ void unpack(const Pack& pack, int item, Lanes<kCount>& lanes) {
    if constexpr (kWidth == 1) {
      lanes.v[item] = pack;
    } else {
      lanes.v[4 * item] = pack.x, lanes.v[4 * item + 1] = pack.y;
      lanes.v[4 * item + 2] = pack.z, lanes.v[4 * item + 3] = pack.w;
    }
  }
  __device__ __forceinline__ void get(int slot, Lanes<kCount>& lanes) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) unpack(*at(slot, i), i, lanes);
  }
  static __device__ __forceinline__ Pack pack_of(const Lanes<kCount>& lanes, int item) {
    if constexpr (kWidth == 1) {
      return lanes.v[item];
    } else {
      return make_float4(lanes.v[4 * item], lanes.v[4 * item + 1], lanes.v[4 * item + 2],
                         lanes.v[4 * item + 3]);
    }
  }
  __device__ __forceinline__ void put(int slot, const Lanes<kCount>& lanes) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) *at(slot, i) = pack_of(lanes, i);
  }
};

/// `values` has the operands: get() of a slot, put() into one.
template <class Values>
__device__ __forceinline__ void run_tape(const ops::Tape& tape, const Values& values,
                                         Lanes<Values::kCount>& r) {
  constexpr int kCount = Values::kCount;
  Lanes<kCount> a, b;
#pragma unroll
  for (int i = 0; i < kCount; ++i) r.v[i] = a.v[i] = b.v[i] = 0;
#pragma unroll 1
  for (int s = 0; s < tape.length; ++s) {
    const TapeStep step = tape.step[s];
    if (step.code == TapeCode::store) {
      values.put(step.a, r);
      continue;
    }
    if (step.code <= TapeCode::fma_onto) {
      if (step.a == ops::kTapeConst) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) a.v[i] = step.p;
      } else {
        values.get(step.a, a);
      }
    }
    if (step.code == TapeCode::fma || step.code == TapeCode::fma_onto) {
      if (step.b == ops::kTapeConst) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) b.v[i] = step.q;
      } else {
        values.get(step.b, b);
      }
    }
    act(step, r, a, b);
  }
}

/// What a thread of a CTA works on: kItems packs of a tile, or one odd element.
template <class Pack, int kItems, int kThreads>
struct Work : Column<Pack, kItems, kThreads> {
  using Base = Column<Pack, kItems, kThreads>;
  using Base::kCount;
  static constexpr int64_t kTile = kThreads * kItems;
  const TapeCall& call;
  int64_t first, left, odd_at;  // element of the first pack, units from it on, the odd element
  bool is_odd, has_odd;

  __device__ __forceinline__ Work(const TapeCall& whole, const Span& span, Pack* shared)
      : Base{shared + threadIdx.x}, call(whole) {
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t done_before = static_cast<int64_t>(blockIdx.x) * kTile;
    is_odd = done_before >= span.units && span.odd > 0;
    has_odd = is_odd && thread < span.odd;
    odd_at = thread < span.head ? thread : thread + Base::kWidth * span.units;
    first = span.head + done_before * Base::kWidth;
    left = span.units - done_before - thread;
  }
  __device__ __forceinline__ const Pack* from(int leaf) const {
    return reinterpret_cast<const Pack*>(call.operands.in[leaf] + first) + threadIdx.x;
  }
  /// All leaves of this thread on their way to its column.
  __device__ __forceinline__ void fetch_all() const {
    for (int leaf = 0; leaf < call.tape.leaves; ++leaf) {
      if (has_odd) *reinterpret_cast<float*>(this->at(leaf, 0)) = call.operands.in[leaf][odd_at];
#pragma unroll
      for (int i = 0; i < kItems; ++i) {
        if (i * kThreads < left) copy_async(this->at(leaf, i), from(leaf) + i * kThreads);
      }
    }
    finish_copies();
  }
  __device__ __forceinline__ void store_result(const Lanes<kCount>& r) const {
    if (has_odd) call.operands.out[odd_at] = r.v[0];
    Pack* to = reinterpret_cast<Pack*>(call.operands.out + first) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (i * kThreads < left) store<Cache::kept>(to + i * kThreads, Base::pack_of(r, i));
    }
  }
};

/// The same, but a leaf is read when a step asks for it: without the way through shared memory, and later.
template <class Pack, int kItems, int kThreads>
struct LateWork : Work<Pack, kItems, kThreads> {
  using Base = Work<Pack, kItems, kThreads>;
  using Base::Base;
  using Base::kCount;

  __device__ __forceinline__ void fetch_all() const {}
  __device__ __forceinline__ void get(int slot, Lanes<kCount>& lanes) const {
    if (slot >= this->call.tape.leaves) return Base::get(slot, lanes);
    if (this->has_odd) lanes.v[0] = this->call.operands.in[slot][this->odd_at];
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (i * kThreads < this->left)
        Base::unpack(load<Cache::kept>(this->from(slot) + i * kThreads), i, lanes);
    }
  }
};

/// A tile a CTA; where there are odd elements, one CTA more takes them, one a thread.
template <template <class, int, int> class Kind, class Pack, int kItems, int kThreads, int kCtasPerSm>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    interpret(const __grid_constant__ TapeCall call, Span span, Signal signal) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  follow();
  const Kind<Pack, kItems, kThreads> work(call, span, reinterpret_cast<Pack*>(shared_bytes));
  work.fetch_all();
  Lanes<Kind<Pack, kItems, kThreads>::kCount> r;
  run_tape(call.tape, work, r);
  work.store_result(r);
  raise_when_last(signal);
}

}  // namespace fulcrum::backends::cuda::streaming
