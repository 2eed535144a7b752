// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel for every element-wise op: tiles of 16-byte vectors, several loads of a thread in flight before the first
// is used. Each element is read and written by one thread, the read first, so out may be one of the inputs. Layouts
// differ in how many vectors a thread takes, in the CTAs and in hints to the caches; every layout gives the same bits.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "backends/cuda/functors.h"
#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kMapThreads = 256;

struct Layout {
  int items = 1;         // vectors of a thread
  bool overlaps = true;  // a call comes up while the one before it drains
};

template <int kInputs>
struct Operands {
  const float* in[kInputs];
  float* out;
};

/// How elements fall into units (vectors, or single elements where the operands are misaligned against each other) and
/// up to 6 odd ones: `head` of them before the first unit, the others behind the last.
struct Span {
  int64_t units;
  int head, odd;
};

template <class Function, class Pack, size_t... kInput>
__device__ __forceinline__ Pack apply(const Function& f, const Pack (&x)[sizeof...(kInput)],
                                      std::index_sequence<kInput...>) {
  if constexpr (sizeof(Pack) == sizeof(float)) {
    return f(x[kInput]...);
  } else {
    return make_float4(f(x[kInput].x...), f(x[kInput].y...), f(x[kInput].z...), f(x[kInput].w...));
  }
}

/// One tile: all loads, then the function and the stores. A full tile asks nothing in between; in the last one only the
/// first `end` units are there.
template <Cache kCache, int kItems, int kThreads, bool kFull, class Function, class Pack>
__device__ __forceinline__ void map_tile(const Function& f, const Pack* const (&in)[Function::kInputs],
                                         Pack* out, int end) {
  const int thread = static_cast<int>(threadIdx.x);
  Pack x[kItems][Function::kInputs];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (kFull || thread + i * kThreads < end) {
#pragma unroll
      for (int k = 0; k < Function::kInputs; ++k) x[i][k] = load<kCache>(in[k] + thread + i * kThreads);
    }
  }
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    if (kFull || thread + i * kThreads < end) {
      store<kCache>(out + thread + i * kThreads,
                    apply(f, x[i], std::make_index_sequence<Function::kInputs>()));
    }
  }
}

/// Threads that an SM should have room for, by the loads that each has in flight.
constexpr int room_for(int loads) { return loads <= 2 ? 2048 : loads <= 4 ? 1536 : 1024; }

template <class Function, class Pack, int kItems, int kThreads, Cache kCache>
__global__ void __launch_bounds__(kThreads, room_for(kItems* Function::kInputs) / kThreads)
    map(Function f, Operands<Function::kInputs> operands, Span span, Signal signal) {
  constexpr int kInputs = Function::kInputs, kTile = kThreads * kItems;
  constexpr int64_t kWidth = sizeof(Pack) / sizeof(float);
  const int thread = static_cast<int>(threadIdx.x);
  follow();

  // The odd elements travel together with the first tile, a thread each, so that they cost no second round trip.
  const bool has_odd = blockIdx.x == 0 && thread < span.odd;
  const int64_t odd_at = thread < span.head ? thread : thread + kWidth * span.units;
  float odd[kInputs] = {};
  if (has_odd) {
#pragma unroll
    for (int k = 0; k < kInputs; ++k) odd[k] = operands.in[k][odd_at];
  }

  const int64_t done_before = static_cast<int64_t>(blockIdx.x) * kTile;
  const int64_t first = span.head + done_before * kWidth, left = span.units - done_before;
  const Pack* in[kInputs];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) in[k] = reinterpret_cast<const Pack*>(operands.in[k] + first);
  Pack* out = reinterpret_cast<Pack*>(operands.out + first);
  if (left >= kTile) {
    map_tile<kCache, kItems, kThreads, true>(f, in, out, kTile);
  } else {
    map_tile<kCache, kItems, kThreads, false>(f, in, out, static_cast<int>(left));
  }
  if (has_odd) operands.out[odd_at] = apply(f, odd, std::make_index_sequence<kInputs>());
  raise_when_last(signal);
}

template <class Function, class Pack, int kItems, int kThreads, Cache kCache>
fulcrum_status launch_map(const Function& f, const Operands<Function::kInputs>& operands, const Span& span,
                          bool overlaps, void* stream, int64_t count) {
  const int64_t ctas = std::max<int64_t>(1, divide_up(span.units, kThreads * kItems));
  const Launch shape{ctas, kThreads, overlaps && can_follow(nullptr) != 0};
  const Signal signal = count == 1 ? take_signal() : Signal{};
  return launch(map<Function, Pack, kItems, kThreads, kCache>, shape, stream, count, f, operands, span,
                signal);
}

/// Elements before the first that lies on a 16-byte boundary in every operand; -1: there is none.
template <int kInputs>
int common_head(const Operands<kInputs>& operands) {
  const auto phase = [](const float* p) { return static_cast<int>(reinterpret_cast<uintptr_t>(p) / 4 % 4); };
  for (const float* in : operands.in) {
    if (phase(in) != phase(operands.out)) return -1;
  }
  return (4 - phase(operands.out)) % 4;
}

/// n elements, `head` of them before the first vector.
inline Span span_of(int64_t n, int head) {
  const int before = static_cast<int>(std::min<int64_t>(head, n));
  const int64_t units = (n - before) / 4;
  return Span{units, before, static_cast<int>(n - 4 * units)};
}

template <Layout kLayout, class Function>
fulcrum_status map_elements(const Function& f, const Operands<Function::kInputs>& operands, int64_t n,
                            void* stream, int64_t count) {
  if (n == 0) return done();
  const int common = common_head(operands);
  const Span span = common < 0 ? Span{n, 0, 0} : span_of(n, common);
  const auto go = [&](auto launcher) { return launcher(f, operands, span, kLayout.overlaps, stream, count); };
  if (common < 0) return go(launch_map<Function, float, 8, kMapThreads, Cache::kept>);
  return go(launch_map<Function, float4, kLayout.items, kMapThreads, Cache::kept>);
}

template <class Function>
Operands<Function::kInputs> operands_of(const fulcrum_args& a) {
  Operands<Function::kInputs> operands;
  for (int k = 0; k < Function::kInputs; ++k) operands.in[k] = a.in<float>(k);
  operands.out = a.out<float>(Function::kOut);
  return operands;
}

template <class Function, Layout kLayout>
fulcrum_status run_map(const fulcrum_args* a, void* stream, int64_t count) {
  return map_elements<kLayout>(Function::from(*a), operands_of<Function>(*a), Function::elements(*a), stream,
                               count);
}

template <class Function>
fulcrum_kernel map_kernel(int32_t level) {
  return fulcrum_kernel{.variant = "default", .level = level, .isa = isa, .run = run_map<Function, Layout{}>};
}

}  // namespace fulcrum::backends::cuda::streaming
