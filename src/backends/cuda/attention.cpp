// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h: the slots of the op, and which tiling serves which shape.
#include "backends/cuda/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::attention {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };
enum Dim { kB, kH, kSq, kSkv, kD };
enum Scalar { kCausal, kScale, kLayout };

Strides strides_of(bool heads_first, int64_t heads, int64_t length, int64_t d) {
  return heads_first ? Strides{heads * length * d, length * d, d} : Strides{length * heads * d, d, heads * d};
}

}  // namespace

Call call_of(const fulcrum_args& args) {
  const int64_t heads = args.dim[kH], queries = args.dim[kSq], keys = args.dim[kSkv], d = args.dim[kD];
  const double given = args.scalar[kScale].f;
  const double scale = given > 0 ? given : 1 / std::sqrt(static_cast<double>(d));
  const bool heads_first = args.scalar[kLayout].i == 0;
  return Call{
      .q = args.in<uint16_t>(kQ),
      .k = args.in<uint16_t>(kK),
      .v = args.in<uint16_t>(kV),
      .o = args.out<uint16_t>(kO),
      .lse = args.out<float>(kLse),
      .batches = args.dim[kB],
      .heads = heads,
      .queries = queries,
      .keys = keys,
      .d = static_cast<int>(d),
      .causal = args.scalar[kCausal].i == 1,
      // Not 0, which would make NaN of a masked score.
      .scale = std::max(static_cast<float>(scale * 1.4426950408889634), std::numeric_limits<float>::min()),
      .of_queries = strides_of(heads_first, heads, queries, d),
      .of_keys = strides_of(heads_first, heads, keys, d)};
}

bool split_takes(const Call& call) {
  constexpr int64_t kMostRows = int64_t{1} << 26, kMostHeads = 65535;
  const auto bits = reinterpret_cast<uintptr_t>(call.q) | reinterpret_cast<uintptr_t>(call.k) |
                    reinterpret_cast<uintptr_t>(call.v) | reinterpret_cast<uintptr_t>(call.o);
  return bits % 16 == 0 && (call.d == 64 || call.d == 128) && call.queries <= kMostRows &&
         call.keys <= kMostRows && call.heads <= kMostHeads && call.batches <= kMostHeads;
}

Tiling tiling_for(const Call& call) {
  const int64_t heads = call.batches * call.heads;
  const bool clusters = available() && device().major == 9 && device().clusters;
  Tiling tiling{.tiles = 1, .step = 16, .row_warps = 1, .key_warps = 1, .cluster = 1};
  const int64_t steps = (call.keys + 15) / 16;
  while (tiling.key_warps < 8 && tiling.key_warps < steps) tiling.key_warps *= 2;
  if (call.d == 64 && heads * call.queries >= 2048) {
    tiling.tiles = 2;
    if (clusters && call.keys > 256) {
      tiling.row_warps = 2;
      tiling.key_warps = 4;
      tiling.cluster = 2;
    }
  } else if (clusters && call.keys > 128) {
    tiling.key_warps = 4;
    tiling.cluster = 4;
  }
  return tiling;
}

}  // namespace fulcrum::backends::cuda::attention
