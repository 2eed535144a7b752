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
  __device__ __forceinline__ void get(int slot, Lanes<kCount>& lanes) const {
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const Pack pack = *at(slot, i);
      if constexpr (kWidth == 1) {
        lanes.v[i] = pack;
      } else {
        lanes.v[4 * i] = pack.x, lanes.v[4 * i + 1] = pack.y;
        lanes.v[4 * i + 2] = pack.z, lanes.v[4 * i + 3] = pack.w;
      }
    }
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

template <class Column>
__device__ __forceinline__ void run_tape(const ops::Tape& tape, const Column& column,
                                         Lanes<Column::kCount>& r) {
  constexpr int kCount = Column::kCount;
  Lanes<kCount> a, b;
#pragma unroll
  for (int i = 0; i < kCount; ++i) r.v[i] = a.v[i] = b.v[i] = 0;
#pragma unroll 1
  for (int s = 0; s < tape.length; ++s) {
    const TapeStep step = tape.step[s];
    if (step.code == TapeCode::store) {
      column.put(step.a, r);
      continue;
    }
    if (step.code <= TapeCode::fma_onto) {
      if (step.a == ops::kTapeConst) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) a.v[i] = step.p;
      } else {
        column.get(step.a, a);
      }
    }
    if (step.code == TapeCode::fma || step.code == TapeCode::fma_onto) {
      if (step.b == ops::kTapeConst) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) b.v[i] = step.q;
      } else {
        column.get(step.b, b);
      }
    }
    act(step, r, a, b);
  }
}

/// A tile a CTA; where there are odd elements, one CTA more takes them, one a thread.
template <class Pack, int kItems, int kThreads, int kCtasPerSm>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    interpret(const __grid_constant__ TapeCall call, Span span, Signal signal) {
  using Values = Column<Pack, kItems, kThreads>;
  constexpr int64_t kTile = kThreads * kItems;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  const int thread = static_cast<int>(threadIdx.x);
  const Values column{reinterpret_cast<Pack*>(shared_bytes) + thread};
  follow();

  const int64_t done_before = static_cast<int64_t>(blockIdx.x) * kTile;
  const bool is_odd = done_before >= span.units && span.odd > 0;
  const int64_t odd_at = thread < span.head ? thread : thread + Values::kWidth * span.units;
  const int64_t first = span.head + done_before * Values::kWidth;
  const int64_t left = span.units - done_before;
  for (int leaf = 0; leaf < call.tape.leaves; ++leaf) {
    if (is_odd) {
      if (thread < span.odd) *reinterpret_cast<float*>(column.at(leaf, 0)) = call.operands.in[leaf][odd_at];
      continue;
    }
    const Pack* from = reinterpret_cast<const Pack*>(call.operands.in[leaf] + first) + thread;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (thread + i * kThreads < left) copy_async(column.at(leaf, i), from + i * kThreads);
    }
  }
  finish_copies();
  Lanes<Values::kCount> r;
  run_tape(call.tape, column, r);
  if (is_odd) {
    if (thread < span.odd) call.operands.out[odd_at] = r.v[0];
  } else {
    Pack* to = reinterpret_cast<Pack*>(call.operands.out + first) + thread;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      if (thread + i * kThreads < left) store<Cache::kept>(to + i * kThreads, Values::pack_of(r, i));
    }
  }
  raise_when_last(signal);
}

}  // namespace fulcrum::backends::cuda::streaming
