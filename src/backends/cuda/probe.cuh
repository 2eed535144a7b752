// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy and probe_triad: the element-wise kernel with next to nothing to compute. One pass takes the very path of
// the ops that are measured against it; several passes stay in one launch and go past L1, which makes them L2's rate
// for what fits there.
#pragma once

#include "backends/cuda/elementwise.cuh"

namespace fulcrum::backends::cuda::streaming {

inline constexpr int kProbeItems = 8;

/// As many CTAs as fit, each with all passes over its own tiles.
template <class Function, class Pack>
__global__ void __launch_bounds__(kMapThreads)
    sweep(Function f, Operands<Function::kInputs> operands, Span span, int64_t passes) {
  constexpr int kInputs = Function::kInputs, kItems = kProbeItems / kInputs, kTile = kMapThreads * kItems;
  constexpr int64_t kWidth = sizeof(Pack) / sizeof(float);
  follow();
  for (int64_t pass = 0; pass < passes; ++pass) {
    for (int64_t tile = blockIdx.x; tile * kTile < span.units; tile += gridDim.x) {
      const int64_t first = span.head + tile * kTile * kWidth;
      const int64_t left = span.units - tile * kTile;
      const Pack* in[kInputs];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) in[k] = reinterpret_cast<const Pack*>(operands.in[k] + first);
      Pack* out = reinterpret_cast<Pack*>(operands.out + first);
      if (left >= kTile) {
        map_tile<Cache::level2, kItems, kMapThreads, true>(f, in, out, kTile);
      } else {
        map_tile<Cache::level2, kItems, kMapThreads, false>(f, in, out, static_cast<int>(left));
      }
    }
  }
  const int thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread < span.odd) {
    const int64_t at = thread < span.head ? thread : thread + kWidth * span.units;
    float odd[kInputs];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) odd[k] = operands.in[k][at];
    operands.out[at] = apply(f, odd, std::make_index_sequence<kInputs>());
  }
}

template <class Function, class Pack>
fulcrum_status launch_sweep(const fulcrum_args& a, const Span& span, void* stream, int64_t count) {
  const auto kernel = sweep<Function, Pack>;
  static const int64_t resident = resident_ctas(kernel, kMapThreads);
  const int64_t tiles = divide_up(span.units, kMapThreads * (kProbeItems / Function::kInputs));
  const Launch shape{std::clamp<int64_t>(tiles, 1, resident), kMapThreads, false};
  return launch(kernel, shape, stream, count, Function::from(a), operands_of<Function>(a), span,
                a.scalar[0].i);
}

template <class Function, Layout kLayout>
fulcrum_status run_probe(const fulcrum_args* a, void* stream, int64_t count) {
  const int64_t n = Function::elements(*a);
  if (n == 0) return done();
  if (a->scalar[0].i == 1) return run_map<Function, kLayout>(a, stream, count);
  const int head = common_head(operands_of<Function>(*a));
  if (head < 0) return launch_sweep<Function, float>(*a, Span{n, 0, 0}, stream, count);
  return launch_sweep<Function, float4>(*a, span_of(n, head), stream, count);
}

template <class Function>
std::span<const fulcrum_kernel> probe_layouts() {
  const auto make = [](const char* variant, decltype(fulcrum_kernel::run) run) {
    return fulcrum_kernel{.variant = variant, .isa = isa, .run = run};
  };
  static const fulcrum_kernel kernels[] = {
      make("default", run_probe<Function, Layout{}>),
      make("tile2", run_probe<Function, Layout{.items = 2}>),
      make("tile4", run_probe<Function, Layout{.items = 4}>),
  };
  return kernels;
}

}  // namespace fulcrum::backends::cuda::streaming
