// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// attention with the queries of a block side by side in the lanes: Q is transposed once, keys and values are widened
// tile by tile, and both products are sums of broadcast elements times vectors. The softmax then runs across
// registers, without a sum over lanes, and is rescaled from tile to tile. A key that is not finite gets the score
// NaN where it is seen and leaves the values at 0 where it is not.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/attention.cpp"
#include <fulcrum/ops/attention.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <limits>
#include <span>

#include "backends/simd/attention_row-inl.h"
#include "backends/simd/half-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/transpose-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

enum Pointer { kQ, kK, kV, kO, kLse };

constexpr std::size_t kVectors = 2;
constexpr std::size_t kBlock = kVectors * kLanes;  // queries at once
// So few are faster one by one, whatever the keys: a block takes as long as a whole one.
constexpr std::size_t kFew = 3 * kBlock / 8;
constexpr std::size_t kKeys = 64;  // of a tile
// Accumulators of a tile: 12 * 2 of 32 registers, 6 * 2 of 16.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 12 : 6;
constexpr std::size_t kMostD = ops::kAttentionMostD;
constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
static_assert(ops::kAttentionRows % kBlock == 0 && kBlock <= kKeys);

/// Working memory of a block, on the stack: 200 KB for the largest D and the widest vectors.
struct Room {
  HWY_ALIGN float q[kMostD * kBlock];  // Q^T times scale
  HWY_ALIGN float o[kMostD * kBlock];  // O^T, not yet divided by the sum
  HWY_ALIGN float p[kKeys * kBlock];   // scores of a tile, then their exp
  HWY_ALIGN float k[kKeys * kMostD];   // also the queries, and the results, row by row
  HWY_ALIGN float v[kKeys * kMostD];
  bool bad[kKeys];
  Floats max[kVectors], sum[kVectors];
};

/// c[i, lane] = factor[lane] * c[i, lane] + sum over j of a[i * row + j * step] * b[j, lane], i < kRows. Without
/// factors c starts at 0.
template <std::size_t kRows, bool kKeep>
HWY_NOINLINE void multiply_rows(const float* a, std::size_t row, std::size_t step, const float* b,
                                std::size_t depth, const Floats* factor, float* c) {
  const Float d;
  Floats sum[kRows][kVectors];
  HWY_UNROLL(12)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < kVectors; ++v) {
      sum[i][v] = kKeep ? hn::Mul(factor[v], hn::Load(d, c + i * kBlock + v * kLanes)) : hn::Zero(d);
    }
  }
  for (std::size_t j = 0; j < depth; ++j) {
    Floats right[kVectors];
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = hn::Load(d, b + j * kBlock + v * kLanes);
    HWY_UNROLL(12)
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto left = set(a[i * row + j * step]);
      HWY_UNROLL(2)
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  }
  HWY_UNROLL(12)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sum[i][v], d, c + i * kBlock + v * kLanes);
  }
}

template <bool kKeep>
void multiply(const float* a, std::size_t row, std::size_t step, const float* b, std::size_t rows,
              std::size_t depth, const Floats* factor, float* c) {
  std::size_t i = 0;
  for (; i + kTileRows <= rows; i += kTileRows)
    multiply_rows<kTileRows, kKeep>(a + i * row, row, step, b, depth, factor, c + i * kBlock);
  for (; i + 4 <= rows; i += 4)
    multiply_rows<4, kKeep>(a + i * row, row, step, b, depth, factor, c + i * kBlock);
  for (; i < rows; ++i) multiply_rows<1, kKeep>(a + i * row, row, step, b, depth, factor, c + i * kBlock);
}

/// n halves as floats; true when one of them is NaN or Inf.
HWY_INLINE bool widen(const std::uint16_t* from, std::size_t n, float* to) {
  const Float d;
  auto bad = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto x = load_halves(from + i);
    bad = hn::Add(bad, hn::Sub(x, x));
    hn::StoreU(x, d, to + i);
  }
  if (i < n) {
    const auto x = load_first_halves(from + i, n - i);
    bad = hn::Add(bad, hn::Sub(x, x));
    store_first(x, to + i, n - i);
  }
  return !hn::AllFalse(d, hn::IsNaN(bad));
}

/// A block of queries of one head: `first` is the first of them, `count` how many there are.
struct Block {
  const ops::Attention& a;
  const fulcrum_args& args;
  std::int64_t pair, first;
  std::size_t count, n;  // n = D

  void load_queries(Room& room) const {
    if (count < kBlock) std::fill_n(room.q, n * kBlock, 0.0F);
    std::fill_n(room.o, n * kBlock, 0.0F);
    const auto scale = static_cast<float>(a.scale);
    for (std::size_t s = 0; s < count; ++s) {
      const std::int64_t at = a.row(pair, a.queries, first + static_cast<std::int64_t>(s));
      float* row = room.k + s * n;
      const bool bad = widen(args.in<std::uint16_t>(kQ) + at, n, row);
      for (std::size_t i = 0; i < n; ++i) row[i] = bad ? kNan : row[i] * scale;
    }
    transpose(room.k, n, count, n, room.q, kBlock);
    for (std::size_t v = 0; v < kVectors; ++v) {
      room.max[v] = set(kLowest);
      room.sum[v] = hn::Zero(Float());
    }
  }

  /// True when a key of the tile is not finite.
  bool load_keys(Room& room, std::int64_t key, std::size_t keys) const {
    bool any = false;
    for (std::size_t j = 0; j < keys; ++j) {
      const std::int64_t at = a.row(pair, a.keys, key + static_cast<std::int64_t>(j));
      const bool bad_key = widen(args.in<std::uint16_t>(kK) + at, n, room.k + j * n);
      const bool bad_value = widen(args.in<std::uint16_t>(kV) + at, n, room.v + j * n);
      room.bad[j] = bad_key || bad_value;
      any |= room.bad[j];
      if (!room.bad[j]) continue;
      std::fill_n(room.k + j * n, n, 0.0F);
      std::fill_n(room.v + j * n, n, 0.0F);
    }
    return any;
  }

  /// NaN for keys that are not finite, -Inf for those that a query does not see.
  void mask(Room& room, std::int64_t key, std::size_t keys) const {
    const Float d;
    for (std::size_t j = 0; j < keys; ++j) {
      // The lane of the first query that sees key j; small enough to be exact where it matters.
      const std::int64_t from =
          a.causal ? key + static_cast<std::int64_t>(j) - (a.keys - a.queries) - first : 0;
      const auto lane = set(static_cast<float>(from));
      for (std::size_t v = 0; v < kVectors; ++v) {
        float* at = room.p + j * kBlock + v * kLanes;
        const auto score = room.bad[j] ? set(kNan) : hn::Load(d, at);
        const auto seen = hn::Ge(hn::Iota(d, static_cast<float>(v * kLanes)), lane);
        hn::Store(hn::IfThenElse(seen, score, set(kLowest)), d, at);
      }
    }
  }

  /// Scores to exp(score - max), and the factor that earlier tiles get.
  static void weigh(Room& room, std::size_t keys, Floats* factor) {
    const Float d;
    for (std::size_t v = 0; v < kVectors; ++v) {
      float* p = room.p + v * kLanes;
      auto max = room.max[v];
      for (std::size_t j = 0; j < keys; ++j) max = hn::Max(max, hn::Load(d, p + j * kBlock));
      factor[v] = exp_of_negative(hn::Sub(room.max[v], max));
      auto sum = hn::Mul(room.sum[v], factor[v]);
      for (std::size_t j = 0; j < keys; ++j) {
        const auto weight = exp_of_negative(hn::Sub(hn::Load(d, p + j * kBlock), max));
        hn::Store(weight, d, p + j * kBlock);
        sum = hn::Add(sum, weight);
      }
      room.max[v] = max;
      room.sum[v] = sum;
    }
  }

  void store(Room& room) const {
    HWY_ALIGN float max[kBlock], sum[kBlock];
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::Store(room.max[v], Float(), max + v * kLanes);
      hn::Store(room.sum[v], Float(), sum + v * kLanes);
    }
    transpose(room.o, kBlock, n, count, room.k, n);
    for (std::size_t s = 0; s < count; ++s) {
      const std::int64_t query = first + static_cast<std::int64_t>(s);
      std::uint16_t* out = args.out<std::uint16_t>(kO) + a.row(pair, a.queries, query);
      const float* row = room.k + s * n;
      const auto share = set(1 / sum[s]);
      std::size_t i = 0;
      for (; i + kLanes <= n; i += kLanes) store_halves(hn::Mul(hn::LoadU(Float(), row + i), share), out + i);
      if (i < n) store_first_halves(hn::Mul(load_first(row + i, n - i), share), out + i, n - i);
      if (args.ptr[kLse]) args.out<float>(kLse)[pair * a.queries + query] = max[s] + std::log(sum[s]);
    }
  }

  void run(Room& room) const {
    load_queries(room);
    const std::int64_t visible = a.visible(first + static_cast<std::int64_t>(count) - 1);
    for (std::int64_t key = 0; key < visible; key += kKeys) {
      const auto keys = static_cast<std::size_t>(std::min<std::int64_t>(kKeys, visible - key));
      const bool bad = load_keys(room, key, keys);
      multiply<false>(room.k, n, 1, room.q, keys, n, nullptr, room.p);
      if (bad || key + static_cast<std::int64_t>(keys) > a.visible(first)) mask(room, key, keys);
      Floats factor[kVectors];
      weigh(room, keys, factor);
      multiply<true>(room.v, 1, n, room.p, n, keys, factor, room.o);
    }
    store(room);
  }
};

/// One of a block of queries.
void attend_row(const Block& block, std::int64_t query) {
  const ops::Attention& a = block.a;
  const std::int64_t row = a.row(block.pair, a.queries, query), head = a.row(block.pair, a.keys, 0);
  AttentionRow{
      .query = block.args.in<std::uint16_t>(kQ) + row,
      .keys = block.args.in<std::uint16_t>(kK) + head,
      .values = block.args.in<std::uint16_t>(kV) + head,
      .count = static_cast<std::size_t>(a.visible(query)),
      .pitch = static_cast<std::size_t>(a.row(block.pair, a.keys, 1) - head),
      .n = block.n,
      .scale = static_cast<float>(a.scale),
      .out = block.args.out<std::uint16_t>(kO) + row,
      .lse = block.args.ptr[kLse] ? block.args.out<float>(kLse) + block.pair * a.queries + query : nullptr}
      .run();
}

/// In keys of a block, times D: what a block takes beside its keys, a query by itself with its keys, and every query for its
/// result, by times of a Xeon and a Zen 5 with AVX-512 and blocks of 32.
double attention_effort(const fulcrum_args& args) {
  constexpr double kBlockKeys = 6, kLoneKeys = 0.7, kLoneKey = 0.075, kResultKeys = 45;
  const ops::Attention a(args);
  constexpr auto kRows = static_cast<std::int64_t>(kBlock);
  const std::int64_t blocks = a.queries / kRows, rest = a.queries % kRows;
  const auto seen = [&a](std::int64_t query) {
    return static_cast<double>(std::max<std::int64_t>(0, a.visible(query)));
  };
  double sum = 0;
  if (blocks > 0) {
    const double keys = (seen(kRows - 1) + seen(blocks * kRows - 1)) / 2;
    sum += static_cast<double>(blocks) * (kBlockKeys + keys);
  }
  const double last = seen(a.queries - 1);
  if (rest > static_cast<std::int64_t>(kFew)) {
    sum += kBlockKeys + last;
  } else {
    sum += static_cast<double>(rest) * (kLoneKeys + kLoneKey * last);
  }
  return static_cast<double>(a.batches * a.heads) *
         (static_cast<double>(a.d) * sum + kResultKeys * static_cast<double>(a.queries));
}

void attend_pieces(const fulcrum_args& args, std::int64_t begin, std::int64_t end) {
  const ops::Attention a(args);
  Room room;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t from = piece % a.blocks() * ops::kAttentionRows;
    const std::int64_t to = std::min(from + ops::kAttentionRows, a.queries);
    for (std::int64_t first = from; first < to; first += kBlock) {
      const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kBlock, to - first));
      const Block block{a, args, piece / a.blocks(), first, count, static_cast<std::size_t>(a.d)};
      if (count > kFew) {
        block.run(room);
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) attend_row(block, first + static_cast<std::int64_t>(i));
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(attend_pieces);
HWY_EXPORT(attention_effort);

double effort(const fulcrum_args* a) { return (HWY_DYNAMIC_DISPATCH(attention_effort))(*a); }

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces = ops::Attention(*a).pieces();
  for (std::int64_t call = 0; call < count; ++call) (HWY_DYNAMIC_DISPATCH(attend_pieces))(*a, 0, pieces);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(attend_pieces))(*a, begin, end);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> attention() {
  static const fulcrum_kernel kernels[] = {{.variant = "default",
                                            .dtype = "f16",
                                            .level = 1,
                                            .isa = isa_name,
                                            .run = run,
                                            .partial = partial,
                                            .effort = effort}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
