// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One kernel for every element-wise op: tiles of 16-byte vectors, several loads of a thread in flight before the first
// is used. Each element is read and written by one thread, the read first, so out may be one of the inputs. Layouts
// differ in how many vectors a thread takes and in the grid; every layout gives the same bits.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "backends/cuda/bulk.cuh"
#include "backends/cuda/functors.h"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kThreads = 256;

/// `automatic` chooses by size, and each call comes up while the one before it drains. tileN: one tile of N vectors a
/// thread in each CTA. `stride`: as many CTAs as fit, which go on from tile to tile. `plain`, `kept` and `ahead` are
/// automatic but for one thing: calls do not overlap; data larger than L2 is not marked as used once; the first CTAs
/// fetch their inputs into L2 while the call before drains. aheadN: the same with N vectors a thread.
enum class Layout {
  automatic,
  tile1,
  tile2,
  tile4,
  tile8,
  stride,
  plain,
  kept,
  ahead,
  ahead1,
  ahead2,
  ahead4
};

constexpr bool is_ahead(Layout layout) { return layout >= Layout::ahead; }
constexpr bool is_programmatic(Layout layout) {
  return layout == Layout::automatic || layout == Layout::kept || is_ahead(layout);
}

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
  int ahead = 0;  // CTAs that fetch their inputs before the call before is finished
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
template <Cache kCache, int kItems, bool kFull, class Function, class Pack>
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

/// CTAs that an SM should have room for, by the vectors that a thread has in flight.
constexpr int room_for(int vectors) { return vectors <= 2 ? 8 : vectors <= 4 ? 6 : vectors <= 8 ? 4 : 2; }

template <class Function, class Pack, int kItems, Cache kCache>
__global__ void __launch_bounds__(kThreads, room_for(kItems* Function::kInputs))
    map(Function f, Operands<Function::kInputs> operands, Span span, Signal signal) {
  constexpr int kInputs = Function::kInputs, kTile = kThreads * kItems;
  constexpr int64_t kWidth = sizeof(Pack) / sizeof(float);
  const int thread = static_cast<int>(threadIdx.x);
  if constexpr (kWidth == 4) {
    // As far as the first tiles are full: sizes of fetches are fixed.
    const int64_t first = static_cast<int64_t>(blockIdx.x) * kTile;
    if (thread == 0 && blockIdx.x < span.ahead && first + kTile <= span.units) {
#pragma unroll
      for (int k = 0; k < kInputs; ++k)
        fetch_ahead(operands.in[k] + span.head + first * kWidth, kTile * sizeof(Pack));
    }
  }
  follow();

  // The odd elements travel together with the first tile, a thread each, so that they cost no second round trip.
  const bool has_odd = blockIdx.x == 0 && thread < span.odd;
  const int64_t odd_at = thread < span.head ? thread : thread + kWidth * span.units;
  float odd[kInputs] = {};
  if (has_odd) {
#pragma unroll
    for (int k = 0; k < kInputs; ++k) odd[k] = operands.in[k][odd_at];
  }

  for (int64_t tile = blockIdx.x; tile * kTile < span.units; tile += gridDim.x) {
    const int64_t first = span.head + tile * kTile * kWidth;
    const int64_t left = span.units - tile * kTile;
    const Pack* in[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) in[k] = reinterpret_cast<const Pack*>(operands.in[k] + first);
    Pack* out = reinterpret_cast<Pack*>(operands.out + first);
    if (left >= kTile) {
      map_tile<kCache, kItems, true>(f, in, out, kTile);
    } else {
      map_tile<kCache, kItems, false>(f, in, out, static_cast<int>(left));
    }
  }
  if (has_odd) operands.out[odd_at] = apply(f, odd, std::make_index_sequence<kInputs>());
  raise_when_last(signal);
}

/// How many vectors a thread takes. One while the whole call fits on the device at once, so that the round trip to
/// memory is paid once by everybody at the same time; more in long calls, where fewer CTAs come and go.
inline int items_of(Layout layout, int64_t units, int inputs) {
  switch (layout) {
    case Layout::tile1:
    case Layout::ahead1:
      return 1;
    case Layout::tile2:
    case Layout::ahead2:
      return 2;
    case Layout::tile8:
      return 8;
    case Layout::tile4:
    case Layout::ahead4:
    case Layout::stride:
      return 4;
    case Layout::automatic:
    case Layout::plain:
    case Layout::kept:
    case Layout::ahead:
      break;
  }
  const int64_t threads = static_cast<int64_t>(device().sms) * device().threads_per_sm;
  return units <= threads ? 1 : units <= 2 * threads || inputs == 1 ? 2 : 4;
}

template <class Function, class Pack, int kItems, Cache kCache>
fulcrum_status launch_map(const Function& f, const Operands<Function::kInputs>& operands, const Span& span,
                          Layout layout, void* stream, int64_t count) {
  const auto kernel = map<Function, Pack, kItems, kCache>;
  int64_t ctas = std::max<int64_t>(1, divide_up(span.units, kThreads * kItems));
  if (layout == Layout::stride) {
    static const int64_t resident = resident_ctas(kernel, kThreads);
    ctas = std::min(ctas, resident);
  }
  const bool programmatic = is_programmatic(layout) && can_follow(nullptr);
  Span ready = span;
  if (programmatic && is_ahead(layout)) ready.ahead = device().sms * (device().threads_per_sm / kThreads);
  const Signal signal = count == 1 ? take_signal() : Signal{};
  return launch(kernel, Launch{ctas, kThreads, programmatic}, stream, count, f, operands, ready, signal);
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

template <class Function>
fulcrum_status map_elements(const Function& f, const Operands<Function::kInputs>& operands, int64_t n,
                            Layout layout, void* stream, int64_t count) {
  if (n == 0) return done();
  const int common = common_head(operands);
  if (common < 0) {
    const Span span{n, 0, 0};
    return launch_map<Function, float, 8, Cache::kept>(f, operands, span, layout, stream, count);
  }
  const Span span = span_of(n, common);
  const bool once = layout != Layout::kept && n * 4 * (Function::kInputs + 1) > device().l2_bytes;
  const auto go = [&](auto launcher) { return launcher(f, operands, span, layout, stream, count); };
  switch (items_of(layout, span.units, Function::kInputs)) {
    case 1:
      return go(launch_map<Function, float4, 1, Cache::kept>);
    case 2:
      return once ? go(launch_map<Function, float4, 2, Cache::once>)
                  : go(launch_map<Function, float4, 2, Cache::kept>);
    case 8:
      return once ? go(launch_map<Function, float4, 8, Cache::once>)
                  : go(launch_map<Function, float4, 8, Cache::kept>);
    default:
      return once ? go(launch_map<Function, float4, 4, Cache::once>)
                  : go(launch_map<Function, float4, 4, Cache::kept>);
  }
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
  return map_elements(Function::from(*a), operands_of<Function>(*a), Function::elements(*a), kLayout, stream,
                      count);
}

template <class Function>
fulcrum_kernel map_kernel(int32_t level) {
  return fulcrum_kernel{
      .variant = "default", .level = level, .isa = isa, .run = run_map<Function, Layout::automatic>};
}

}  // namespace fulcrum::backends::cuda::streaming
