// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See attention.h: the slots of the op, and which tiling serves which shape.
#include "backends/cuda/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/attention_layout.h"
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

bool split_fits(const Call& call, const Tiling& tiling) {
  const bool once = int64_t{tiling.parts()} * tiling.step >= call.keys;
  const int finished = tiling.rows() / tiling.cluster;
  return tiling.threads(call.d) <= most_threads(call.d, tiling.tiles, tiling.step, once) &&
         tiling.parts() <= kMostParts && finished >= 1 &&
         tiling.parts() * part_floats(call.d, finished) * 4 <= kMostInboxBytes;
}

Tiling tiling_for(const Call& call) {
  const bool clusters = available() && device().major == 9 && device().clusters;
  const int64_t steps = (call.keys + 15) / 16, tiles = (call.queries + 15) / 16 * call.batches * call.heads;
  const auto warps = [](int64_t wanted, int most) {
    int count = 1;
    while (count < most && count < wanted) count *= 2;
    return count;
  };
  if (call.d == 128) {
    Tiling tiling{.tiles = 1, .step = 16, .row_warps = 1, .key_warps = warps(steps, 8), .cluster = 1};
    if (!clusters || steps <= 8 || tiles > 32) return tiling;
    tiling.key_warps = 4;
    tiling.cluster = 4;
    return tiling;
  }
  if (steps <= 4)
    return Tiling{.tiles = 1, .step = 16, .row_warps = 1, .key_warps = warps(steps, 4), .cluster = 1};
  if (clusters && tiles <= 32) {
    if (steps <= 8) return Tiling{.tiles = 1, .step = 16, .row_warps = 1, .key_warps = 2, .cluster = 4};
    return Tiling{.tiles = 1, .step = 32, .row_warps = 1, .key_warps = 2, .cluster = steps <= 16 ? 4 : 8};
  }
  if (steps <= 8) return Tiling{.tiles = 1, .step = 32, .row_warps = 1, .key_warps = 4, .cluster = 1};
  Tiling tiling{.tiles = 2, .step = 32, .row_warps = 1, .key_warps = 8, .cluster = 1, .staged = true};
  if (staged_takes(call, tiling)) return tiling;
  tiling.step = 16;
  tiling.staged = false;
  return tiling;
}

Tiling grouped_tiling(const Call& call, int step) {
  Tiling tiling{.tiles = kGroupRows / 16, .step = step, .row_warps = 1, .key_warps = 2, .cluster = 1};
  tiling.grouped = true;
  while (tiling.cluster < 8 && tiling.parts() * step < call.keys) tiling.cluster *= 2;
  return tiling;
}

bool groups_takes(const Call& call, const Tiling& tiling) {
  const bool has_products = available() && device().major == 9 && device().minor == 0 && device().clusters;
  const bool is_built = call.d == 128 ? tiling.step == 64 : call.d == 64;
  return has_products && is_built && split_takes(call) && tiling.cluster <= kMostGroupCtas &&
         int64_t{tiling.parts()} * tiling.step >= call.keys;
}

std::vector<Tiling> other_tilings(const Call& call) {
  const bool clusters = available() && device().major == 9 && device().clusters;
  const int64_t heads = call.batches * call.heads;
  std::vector<Tiling> result;
  const auto add = [&](const Tiling& tiling) {
    const bool fits = tiling.grouped  ? groups_takes(call, tiling)
                      : tiling.staged ? staged_takes(call, tiling)
                                      : split_fits(call, tiling);
    const int64_t ctas = (call.queries + tiling.rows() - 1) / tiling.rows() * heads * tiling.cluster;
    if (fits && ctas <= int64_t{4} * device().sms) result.push_back(tiling);
  };
  // All keys at once, by as many warps as that takes, in CTAs of many or few.
  for (const int step : {16, 32, 64}) {
    if (call.d == 128 && step != 16) continue;
    int parts = 1;
    while (parts < kMostParts && parts * step < call.keys) parts *= 2;
    for (int cluster = 1; cluster <= std::min(parts, clusters ? 8 : 1); cluster *= 2)
      add({.tiles = 1, .step = step, .row_warps = 1, .key_warps = parts / cluster, .cluster = cluster});
  }
  add({.tiles = 1, .step = 32, .row_warps = 1, .key_warps = 8, .cluster = 1, .staged = true});
  if (call.keys > 64) {
    add(grouped_tiling(call, 64));
    if (call.d == 64) add(grouped_tiling(call, 128));
  }
  if (call.d == 128) return result;
  // Keys that serve more queries.
  add({.tiles = 1, .step = 16, .row_warps = 2, .key_warps = 8, .cluster = 1});
  add({.tiles = 1, .step = 32, .row_warps = 2, .key_warps = 4, .cluster = 1});
  add({.tiles = 2, .step = 16, .row_warps = 1, .key_warps = 8, .cluster = 1});
  add({.tiles = 2, .step = 32, .row_warps = 1, .key_warps = 8, .cluster = 1, .staged = true});
  return result;
}

}  // namespace fulcrum::backends::cuda::attention
