// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity: products of several rows with several queries at once, so that a loaded vector is used more
// than once; norms of rows are taken in the first query's pass. Each product is two accumulators and one tree,
// whatever the tile it falls into. Norms that fp32 cannot hold safely are redone in fp64, one score at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/cosine_similarity.cpp"
#include <fulcrum/ops/cosine.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/vectors-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// Squares of the norms that are trusted: [2^-50, 2^50].
constexpr float kSmallestSquare = 0x1p-100F;
constexpr float kLargestSquare = 0x1p100F;
constexpr float kSmallestInverse = 0x1p-50F;
constexpr float kLargestInverse = 0x1p50F;

// Accumulators of the widest tile: 4 * 3 * 2 of 32 registers with AVX-512, 2 * 2 * 2 of 16 elsewhere.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr std::size_t kTileQueries = HWY_TARGET <= HWY_AVX3 ? 3 : 2;

/// The four sums over the lanes of four vectors, in order. All take the same tree.
HWY_INLINE void store_sums(Floats a, Floats b, Floats c, Floats e, float* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = hn::GetLane(a);
  to[1] = hn::GetLane(b);
  to[2] = hn::GetLane(c);
  to[3] = hn::GetLane(e);
#else
  const Float d;
  const hn::Repartition<double, Float> pairs;
  // In each block of four lanes: a0+a2 b0+b2 a1+a3 b1+b3, and the same of c and e.
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto high =
      hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto blocks = hn::Add(low, high);
#if HWY_TARGET <= HWY_AVX3
  const hn::Half<Float> half;
  const hn::Half<decltype(half)> quarter;
  const auto two = hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks));
  hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, to);
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<Float> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, blocks), hn::UpperHalf(half, blocks)), half, to);
#else
  hn::StoreU(blocks, d, to);
#endif
#endif
}

struct Whole {
  std::size_t at;
  HWY_INLINE Floats operator()(const float* from) const { return hn::LoadU(Float(), from + at); }
};
struct First {
  std::size_t at, n;
  HWY_INLINE Floats operator()(const float* from) const { return load_first(from + at, n); }
};

/// Room for the sums of a tile, in fours.
template <std::size_t kRows, std::size_t kQueries, bool kSquares>
constexpr std::size_t kSums = (kRows * (kQueries + kSquares) + 3) / 4 * 4;

/// One vector of each row and query: products first, row by row, then the squares of the rows.
template <std::size_t kRows, std::size_t kQueries, bool kSquares, class Load>
HWY_INLINE void add_products(const float* rows, const float* queries, std::size_t n, Load load,
                             Floats (&sum)[kSums<kRows, kQueries, kSquares>]) {
  Floats q[kQueries];
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kQueries; ++j) q[j] = load(queries + j * n);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kRows; ++i) {
    const auto t = load(rows + i * n);
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kQueries; ++j) {
      sum[i * kQueries + j] = hn::MulAdd(t, q[j], sum[i * kQueries + j]);
    }
    if constexpr (kSquares) sum[kRows * kQueries + i] = hn::MulAdd(t, t, sum[kRows * kQueries + i]);
  }
}

/// sums[i * kQueries + j] = row i . query j; with kSquares also sums[kRows * kQueries + i] = row i . row i.
template <std::size_t kRows, std::size_t kQueries, bool kSquares>
HWY_NOINLINE void multiply(const float* rows, const float* queries, std::size_t n, float* sums) {
  constexpr std::size_t kCount = kSums<kRows, kQueries, kSquares>;
  Floats even[kCount];
  Floats odd[kCount];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kCount; ++i) even[i] = odd[i] = hn::Zero(Float());
  std::size_t k = 0;
  for (; k + 2 * kLanes <= n; k += 2 * kLanes) {
    add_products<kRows, kQueries, kSquares>(rows, queries, n, Whole{k}, even);
    add_products<kRows, kQueries, kSquares>(rows, queries, n, Whole{k + kLanes}, odd);
  }
  if (k + kLanes <= n) {
    add_products<kRows, kQueries, kSquares>(rows, queries, n, Whole{k}, even);
    k += kLanes;
    if (k < n) add_products<kRows, kQueries, kSquares>(rows, queries, n, First{k, n - k}, odd);
  } else if (k < n) {
    add_products<kRows, kQueries, kSquares>(rows, queries, n, First{k, n - k}, even);
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kCount; ++i) even[i] = hn::Add(even[i], odd[i]);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kCount; i += 4)
    store_sums(even[i], even[i + 1], even[i + 2], even[i + 3], sums + i);
}

/// q . q in as many accumulators as hide the latency of an fma: a single query has no others to overlap with.
float square_of(const float* q, std::size_t n) {
  constexpr std::size_t kParts = 8;
  Floats sum[kParts];
  HWY_UNROLL(8)
  for (auto& part : sum) part = hn::Zero(Float());
  std::size_t k = 0;
  for (; k + kParts * kLanes <= n; k += kParts * kLanes) {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kParts; ++i) {
      const auto v = Whole{k + i * kLanes}(q);
      sum[i] = hn::MulAdd(v, v, sum[i]);
    }
  }
  for (; k < n; k += kLanes) {
    const auto v = k + kLanes <= n ? Whole{k}(q) : First{k, n - k}(q);
    sum[0] = hn::MulAdd(v, v, sum[0]);
  }
  const auto low = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  const auto high = hn::Add(hn::Add(sum[4], sum[5]), hn::Add(sum[6], sum[7]));
  return hn::GetLane(hn::SumOfLanes(Float(), hn::Add(low, high)));
}

/// The arguments by name. Rows are scored in blocks, whose products wait in `out` for the norms.
struct Problem {
  const float* queries;
  const float* rows;
  const float* inverse;  // 1 / |row|, or null
  float* out;
  std::size_t count, n;  // rows, and elements of each
  bool squares;          // norms of rows are wanted
};

struct Block {
  std::size_t row, rows;
  HWY_ALIGN float square[ops::kCosineRows];
};

/// Products of kRows rows of the block from `at` on with the queries [first, last).
template <std::size_t kRows>
void score_rows(const Problem& p, Block& block, std::size_t at, std::size_t first, std::size_t last) {
  HWY_ALIGN float sums[kSums<kRows, kTileQueries, true>];
  const float* rows = p.rows + (block.row + at) * p.n;
  const auto keep = [&](std::size_t query, std::size_t queries) {
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < queries; ++j) {
        p.out[(query + j) * p.count + block.row + at + i] = sums[i * queries + j];
      }
    }
  };
  std::size_t query = first;
  if (p.squares) {
    multiply<kRows, 1, true>(rows, p.queries + query * p.n, p.n, sums);
    keep(query++, 1);
    for (std::size_t i = 0; i < kRows; ++i) block.square[at + i] = sums[kRows + i];
  }
  for (; query + kTileQueries <= last; query += kTileQueries) {
    multiply<kRows, kTileQueries, false>(rows, p.queries + query * p.n, p.n, sums);
    keep(query, kTileQueries);
  }
  for (; query < last; ++query) {
    multiply<kRows, 1, false>(rows, p.queries + query * p.n, p.n, sums);
    keep(query, 1);
  }
}

/// Products to scores: out[i] /= |query| |row|, within -1 and 1. NaN compares false and stays.
void finish(const Problem& p, const Block& block, std::size_t query, float query_square) {
  const Float d;
  const float* q = p.queries + query * p.n;
  float* out = p.out + query * p.count + block.row;
  const bool good_query = query_square >= kSmallestSquare && query_square <= kLargestSquare;
  const auto one = hn::Set(d, 1.0F);
  const auto norm = hn::Set(d, std::sqrt(query_square));
  for (std::size_t at = 0; at < block.rows; at += kLanes) {
    const std::size_t lanes = std::min(kLanes, block.rows - at);
    const auto load = [&](const float* from)
                          HWY_ATTR { return lanes == kLanes ? hn::LoadU(d, from) : load_first(from, lanes); };
    const auto product = load(out + at);
    auto score = hn::Div(product, norm);
    auto good = hn::Le(hn::Abs(product), hn::Set(d, kLargestSquare));
    if (p.squares) {
      const auto square = load(block.square + at);
      score = hn::Div(product, hn::Mul(norm, hn::Sqrt(square)));
      good = hn::And(good, hn::And(hn::Ge(square, hn::Set(d, kSmallestSquare)),
                                   hn::Le(square, hn::Set(d, kLargestSquare))));
    } else if (p.inverse) {
      const auto inverse = load(p.inverse + block.row + at);
      score = hn::Mul(score, inverse);
      good = hn::And(good, hn::And(hn::Ge(inverse, hn::Set(d, kSmallestInverse)),
                                   hn::Le(inverse, hn::Set(d, kLargestInverse))));
    }
    score = hn::IfThenElse(hn::Gt(score, one), one, score);
    score = hn::IfThenElse(hn::Lt(score, hn::Neg(one)), hn::Neg(one), score);
    lanes == kLanes ? hn::StoreU(score, d, out + at) : store_first(score, out + at, lanes);
    if (good_query && hn::AllTrue(d, good)) continue;
    HWY_ALIGN float flag[kLanes];
    hn::Store(hn::IfThenElseZero(good, one), d, flag);
    for (std::size_t i = 0; i < lanes; ++i) {
      if (good_query && flag[i] != 0) continue;
      out[at + i] = ops::cosine_score(q, p.rows + (block.row + at + i) * p.n, static_cast<std::int64_t>(p.n));
    }
  }
}

/// Queries [first, last) against the rows [row, row + rows), at most a piece of each.
void score_block(const Problem& p, std::size_t first, std::size_t last, const float* query_squares,
                 Block& block) {
  std::size_t at = 0;
  for (; at + kTileRows <= block.rows; at += kTileRows) score_rows<kTileRows>(p, block, at, first, last);
  if (kTileRows > 2 && at + 2 <= block.rows) {
    score_rows<2>(p, block, at, first, last);
    at += 2;
  }
  if (at < block.rows) score_rows<1>(p, block, at, first, last);
  for (std::size_t query = first; query < last; ++query)
    finish(p, block, query, query_squares[query - first]);
}

/// Pieces [begin, end): queries in groups of kCosineQueries, and for each group rows in groups of kCosineRows.
void score_pieces(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const Problem p{.queries = a.in<float>(0),
                  .rows = a.in<float>(1),
                  .inverse = a.in<float>(2),
                  .out = a.out<float>(3),
                  .count = static_cast<std::size_t>(a.dim[1]),
                  .n = static_cast<std::size_t>(a.dim[2]),
                  .squares = a.ptr[2] == nullptr && a.scalar[0].i == 0};
  const std::int64_t across = (a.dim[1] + ops::kCosineRows - 1) / ops::kCosineRows;
  float query_squares[ops::kCosineQueries];
  Block block;
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = piece / across * ops::kCosineQueries;
    const std::int64_t last = std::min(a.dim[0], first + ops::kCosineQueries);
    if (piece == begin || piece % across == 0) {
      for (std::int64_t query = first; query < last; ++query) {
        query_squares[query - first] = square_of(p.queries + static_cast<std::size_t>(query) * p.n, p.n);
      }
    }
    block.row = static_cast<std::size_t>(piece % across * ops::kCosineRows);
    block.rows = std::min(static_cast<std::size_t>(ops::kCosineRows), p.count - block.row);
    score_block(p, static_cast<std::size_t>(first), static_cast<std::size_t>(last), query_squares, block);
  }
}

void run_cosine(const fulcrum_args& a, std::int64_t pieces, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) {
    score_pieces(a, 0, pieces);
    end_of_call();
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_cosine);
HWY_EXPORT(score_pieces);

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces =
      divide_up(a->dim[0], ops::kCosineQueries) * divide_up(a->dim[1], ops::kCosineRows);
  (HWY_DYNAMIC_DISPATCH(run_cosine))(*a, pieces, count);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(score_pieces))(*a, begin, end);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> cosine_similarity() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
