// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The tape of an expression on the device. It travels as a kernel parameter, so all threads of a warp take the same
// branch and the step comes from the constant cache. A thread carries several elements through each step, which shares
// the cost of decoding it; its accumulator lives in registers, leaves and temporaries in its own column of shared
// memory, which no other thread reads and which can be numbered at run time. Functions are those of the ops' kernels.
#pragma once

#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/tape_steps.h"

namespace fulcrum::backends::cuda::streaming {

/// A call: its tape and its arrays.
struct TapeCall {
  DeviceTape tape;
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
template <int kCount, class Function>
__device__ __forceinline__ void each(Lanes<kCount>& r, const Lanes<kCount>& a, const Function& f) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) r.v[i] = f(r.v[i], a.v[i]);
}

struct Add {
  __device__ __forceinline__ float operator()(float r, float a) const { return r + a; }
};
struct TakeFrom {
  __device__ __forceinline__ float operator()(float r, float a) const { return a - r; }
};
struct Subtract {
  __device__ __forceinline__ float operator()(float r, float a) const { return r - a; }
};
struct Multiply {
  __device__ __forceinline__ float operator()(float r, float a) const { return r * a; }
};
struct Minimum {  // NaN where either is
  __device__ __forceinline__ float operator()(float r, float a) const { return r < a || r != r ? r : a; }
};
struct Maximum {
  __device__ __forceinline__ float operator()(float r, float a) const { return r > a || r != r ? r : a; }
};
struct Divide {
  __device__ __forceinline__ float operator()(float r, float a) const { return r / a; }
};
struct DivideBy {
  __device__ __forceinline__ float operator()(float r, float a) const { return a / r; }
};
struct Affine {
  float p, q;
  __device__ __forceinline__ float operator()(float r) const { return r * p + q; }
};
/// One instruction each, NaN where either is NaN; +0 is larger than -0.
__device__ __forceinline__ float larger(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ float smaller(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
/// For 0 < al < 1 the larger of x and al x is x above zero and al x below it, the zeros' signs included: the bits of
/// leaky_relu in half its instructions. The same holds for the two below.
struct Bend {
  float al;
  __device__ __forceinline__ float operator()(float x) const { return larger(x, al * x); }
};
struct BendFlat {
  __device__ __forceinline__ float operator()(float x) const { return larger(x, 0); }
};
struct ClipApart {
  float lo, hi;
  __device__ __forceinline__ float operator()(float x) const { return smaller(larger(x, lo), hi); }
};
struct BendClip {
  Bend bend;
  ClipApart clip;
  __device__ __forceinline__ float operator()(float x) const { return clip(bend(x)); }
};
struct Negate {
  __device__ __forceinline__ float operator()(float r) const { return -r; }
};
struct Absolute {
  __device__ __forceinline__ float operator()(float r) const { return ::fabsf(r); }
};
struct Sqrt {
  __device__ __forceinline__ float operator()(float r) const { return ::sqrtf(r); }
};
template <class Function>
struct WithConstant {
  float p;
  __device__ __forceinline__ float operator()(float r) const { return Function()(r, p); }
};

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

template <class Function, class Values>
__device__ __forceinline__ void with_slot(const DeviceStep& step, const Values& values,
                                          Lanes<Values::kCount>& r) {
  Lanes<Values::kCount> a;
  values.get(step.a(), a);
  each(r, a, Function());
}

template <class Values>
__device__ __forceinline__ void get_either(const Values& values, int slot, float constant,
                                           Lanes<Values::kCount>& lanes) {
  if (slot != kConstantSlot) return values.get(slot, lanes);
#pragma unroll
  for (int i = 0; i < Values::kCount; ++i) lanes.v[i] = constant;
}

template <class Values>
__device__ __forceinline__ void multiply_add(const DeviceStep& step, const Values& values,
                                             Lanes<Values::kCount>& r) {
  Lanes<Values::kCount> a, b;
  get_either(values, step.a(), step.p, a);
  get_either(values, step.b(), step.q, b);
#pragma unroll
  for (int i = 0; i < Values::kCount; ++i) {
    r.v[i] = step.code() == StepCode::fma ? ::fmaf(r.v[i], a.v[i], b.v[i]) : ::fmaf(a.v[i], b.v[i], r.v[i]);
  }
}

/// Steps of the heavy kind.
template <class Values>
__device__ __forceinline__ void act_heavily(const DeviceStep& step, const Values& values,
                                            Lanes<Values::kCount>& r) {
  Lanes<Values::kCount> a;
  switch (step.code()) {
    case StepCode::load_constant:
      return get_either(values, kConstantSlot, step.p, r);
    case StepCode::divide:
      get_either(values, step.a(), step.p, a);
      return each(r, a, Divide());
    case StepCode::divide_by:
      get_either(values, step.a(), step.p, a);
      return each(r, a, DivideBy());
    case StepCode::sqrt:
      return each(r, Sqrt());
    case StepCode::elu:
      return each(r, Elu{{}, step.p});
    default:
      return each(r, Tanh{});
  }
}

/// One step. `values` has the operands: get() of a slot, put() into one.
template <bool kHeavy, class Values>
__device__ __forceinline__ void act(const DeviceStep& step, const Values& values, Lanes<Values::kCount>& r) {
  switch (step.code()) {
    case StepCode::load:
      return values.get(step.a(), r);
    case StepCode::store:
      return values.put(step.a(), r);
    case StepCode::add:
      return with_slot<Add>(step, values, r);
    case StepCode::add_constant:
      return each(r, WithConstant<Add>{step.p});
    case StepCode::subtract:
      return with_slot<Subtract>(step, values, r);
    case StepCode::take_from:
      return with_slot<TakeFrom>(step, values, r);
    case StepCode::take_from_constant:
      return each(r, WithConstant<TakeFrom>{step.p});
    case StepCode::multiply:
      return with_slot<Multiply>(step, values, r);
    case StepCode::multiply_constant:
      return each(r, WithConstant<Multiply>{step.p});
    case StepCode::affine:
      return each(r, Affine{step.p, step.q});
    case StepCode::minimum:
      return with_slot<Minimum>(step, values, r);
    case StepCode::minimum_constant:
      return each(r, WithConstant<Minimum>{step.p});
    case StepCode::maximum:
      return with_slot<Maximum>(step, values, r);
    case StepCode::maximum_constant:
      return each(r, WithConstant<Maximum>{step.p});
    case StepCode::fma:
    case StepCode::fma_onto:
      return multiply_add(step, values, r);
    case StepCode::negate:
      return each(r, Negate());
    case StepCode::absolute:
      return each(r, Absolute());
    case StepCode::bend:
      return each(r, Bend{step.p});
    case StepCode::bend_flat:
      return each(r, BendFlat());
    case StepCode::clip:
      return each(r, ClipApart{step.p, step.q});
    case StepCode::clip_at_zero:
      return each(r, Clip{{}, step.p, step.q});
    case StepCode::bend_clip:
      return each(r, BendClip{{step.s}, {step.p, step.q}});
    case StepCode::sigmoid:
      return each(r, Sigmoid{});
    case StepCode::swish:
      return each(r, Swish{});
    case StepCode::gelu:
      return each(r, Gelu{});
    default:
      if constexpr (kHeavy) return act_heavily(step, values, r);
      __builtin_unreachable();
  }
}

/// The step after the current one is fetched while that one is computed.
template <bool kHeavy, class Values>
__device__ __forceinline__ void run_tape(const DeviceTape& tape, const Values& values,
                                         Lanes<Values::kCount>& r) {
  get_either(values, tape.step[0].a(), tape.step[0].p, r);
  DeviceStep next = tape.step[1];
#pragma unroll 1
  for (int s = 1; s < tape.length; ++s) {
    const DeviceStep step = next;
    next = tape.step[s + 1];
    act<kHeavy>(step, values, r);
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
#pragma unroll 1
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

/// A tile a CTA; where there are odd elements, one CTA more takes them, one a thread.
template <bool kHeavy, class Pack, int kItems, int kThreads, int kCtasPerSm>
__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    interpret(const __grid_constant__ TapeCall call, Span span, Signal signal) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  follow();
  const Work<Pack, kItems, kThreads> work(call, span, reinterpret_cast<Pack*>(shared_bytes));
  work.fetch_all();
  Lanes<Work<Pack, kItems, kThreads>::kCount> r;
  run_tape<kHeavy>(call.tape, work, r);
  work.store_result(r);
  raise_when_last(signal);
}

}  // namespace fulcrum::backends::cuda::streaming
