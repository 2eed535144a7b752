// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of rows with queries and the scores they become, for every kernel that compares vectors by their cosine.
// A tile takes several rows and queries at once, so that a loaded vector is used more than once. Each product is one
// accumulator and one tree over its lanes whatever the tile it falls into, so bits depend on row and query alone.
#include <fulcrum/ops/cosine.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/simd/half-inl.h"
#include "backends/simd/sums-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_COSINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_COSINE_INL_H_
#undef FULCRUM_BACKENDS_SIMD_COSINE_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_COSINE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

// Norms that are trusted, as they are, inverted or squared.
inline constexpr float kSmallestNorm = 0x1p-50F;
inline constexpr float kLargestNorm = 0x1p50F;
inline constexpr float kSmallestSquare = 0x1p-100F;
inline constexpr float kLargestSquare = 0x1p100F;

// Tiles by registers: 24 accumulators of 32, or 8 of 16. One query alone needs more rows to hide the latency of fma.
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr std::size_t kTileQueries = 6;
inline constexpr std::size_t kSquareQueries = 4;
inline constexpr std::size_t kLoneRows = 8;
#else
inline constexpr std::size_t kTileQueries = 2;
inline constexpr std::size_t kSquareQueries = 1;
inline constexpr std::size_t kLoneRows = 4;
#endif
inline constexpr std::size_t kTileRows = 4;
inline constexpr std::size_t kLoneAhead = 32;  // rows
/// Elements of rows whose sums over lanes take as long as their products: several rows share those.
inline constexpr std::size_t kShortRow = 32;

/// Rows that no core can keep in its share of the last cache: measured, fetching ahead costs a fifth below this size
/// and gains a third far above it.
inline constexpr std::int64_t kFarBytes = std::int64_t{16} << 20;

/// The sums of kRows vectors to kRows floats.
template <std::size_t kRows, class D, class T>
HWY_INLINE void store_sums(D d, const hn::Vec<D>* sum, T* to) {
  static_assert(kRows == 1 || kRows % 4 == 0);
  if constexpr (kRows == 1) {
    HWY_ALIGN T four[4];
    store_four_sums(d, sum[0], sum[0], sum[0], sum[0], four);
    to[0] = four[0];
  } else {
    HWY_UNROLL(2)
    for (std::size_t i = 0; i < kRows; i += 4) {
      store_four_sums(d, sum[i], sum[i + 1], sum[i + 2], sum[i + 3], to + i);
    }
  }
}

struct Whole {
  std::size_t at;
  HWY_INLINE Floats operator()(const float* from) const { return hn::LoadU(Float(), from + at); }
  HWY_INLINE Floats operator()(const std::uint16_t* from) const { return load_halves(from + at); }
};
struct First {
  std::size_t at, n;
  HWY_INLINE Floats operator()(const float* from) const { return load_first(from + at, n); }
  HWY_INLINE Floats operator()(const std::uint16_t* from) const { return load_first_halves(from + at, n); }
};

/// Row i . query j in sum[j * kRows + i], then the squares of the rows.
template <std::size_t kRows, std::size_t kQueries, bool kSquares>
constexpr std::size_t kSums = kRows*(kQueries + kSquares);

/// One vector of each row and query; rows lie `pitch` elements apart.
template <std::size_t kRows, std::size_t kQueries, bool kSquares, class Row, class Load>
HWY_INLINE void add_products(const Row* rows, std::size_t pitch, const float* queries, std::size_t n,
                             Load load, Floats (&sum)[kSums<kRows, kQueries, kSquares>]) {
  Floats t[kRows];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i) t[i] = load(rows + i * pitch);
  HWY_UNROLL(6)
  for (std::size_t j = 0; j < kQueries; ++j) {
    const auto q = load(queries + j * n);
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) sum[j * kRows + i] = hn::MulAdd(t[i], q, sum[j * kRows + i]);
  }
  if constexpr (kSquares) {
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) {
      sum[kRows * kQueries + i] = hn::MulAdd(t[i], t[i], sum[kRows * kQueries + i]);
    }
  }
}

/// Rows to fetch into the cache while a tile is computed: `rows` of them from `first` on, or kRows when that is known
/// beforehand.
template <class Row>
struct Ahead {
  const Row* first = nullptr;
  std::size_t rows = 0;
  template <std::size_t kRows>
  HWY_INLINE void fetch(std::size_t k, std::size_t n) const {
    constexpr std::size_t kLine = 64 / sizeof(Row);
    if (kLanes < kLine && k % kLine != 0) return;
    if constexpr (kRows > 0) {
      HWY_UNROLL(8)
      for (std::size_t i = 0; i < kRows; ++i) __builtin_prefetch(first + i * n + k, 0, 2);
    } else {
      for (std::size_t i = 0; i < rows; ++i) __builtin_prefetch(first + i * n + k, 0, 2);
    }
  }
};

/// out[j * stride + i] = row i . query j, and squares[i] = row i . row i where wanted.
template <std::size_t kRows, std::size_t kQueries, bool kSquares, bool kFetchAll = false, class Row>
HWY_NOINLINE void multiply(const Row* rows, const float* queries, std::size_t n, float* out,
                           std::size_t stride, float* squares, Ahead<Row> ahead) {
  Floats sum[kSums<kRows, kQueries, kSquares>];
  HWY_UNROLL(24)
  for (auto& s : sum) s = hn::Zero(Float());
  std::size_t k = 0;
  if (ahead.rows > 0) {
    for (; k + kLanes <= n; k += kLanes) {
      ahead.template fetch<kFetchAll ? kRows : 0>(k, n);
      add_products<kRows, kQueries, kSquares>(rows, n, queries, n, Whole{k}, sum);
    }
  }
  for (; k + kLanes <= n; k += kLanes)
    add_products<kRows, kQueries, kSquares>(rows, n, queries, n, Whole{k}, sum);
  if (k < n) add_products<kRows, kQueries, kSquares>(rows, n, queries, n, First{k, n - k}, sum);
  HWY_UNROLL(6)
  for (std::size_t j = 0; j < kQueries; ++j) store_sums<kRows>(Float(), sum + j * kRows, out + j * stride);
  if constexpr (kSquares) store_sums<kRows>(Float(), sum + kRows * kQueries, squares);
}

/// Rows that lie far apart, for one query: out[i * stride] = row i . query, and squares alike where wanted. Each row is
/// read four vectors at a time, which memory answers 2 to 3 % faster than one of each in turn.
template <std::size_t kRows, bool kSquares>
HWY_NOINLINE void multiply_apart(const float* rows, std::size_t pitch, const float* query, std::size_t n,
                                 float* out, std::size_t stride, float* squares, std::size_t squares_stride) {
  constexpr std::size_t kBurst = 4;
  Floats sum[kSums<kRows, 1, kSquares>];
  HWY_UNROLL(8)
  for (auto& s : sum) s = hn::Zero(Float());
  std::size_t k = 0;
  for (; k + kBurst * kLanes <= n; k += kBurst * kLanes) {
    Floats q[kBurst];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kBurst; ++v) q[v] = Whole{k + v * kLanes}(query);
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kBurst; ++v) {
        const auto t = Whole{k + v * kLanes}(rows + i * pitch);
        sum[i] = hn::MulAdd(t, q[v], sum[i]);
        if constexpr (kSquares) sum[kRows + i] = hn::MulAdd(t, t, sum[kRows + i]);
      }
    }
  }
  for (; k + kLanes <= n; k += kLanes) add_products<kRows, 1, kSquares>(rows, pitch, query, n, Whole{k}, sum);
  if (k < n) add_products<kRows, 1, kSquares>(rows, pitch, query, n, First{k, n - k}, sum);
  HWY_ALIGN float together[2 * kRows];
  store_sums<kRows>(Float(), sum, together);
  if constexpr (kSquares) store_sums<kRows>(Float(), sum + kRows, together + kRows);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < kRows; ++i) {
    out[i * stride] = together[i];
    if (kSquares) squares[i * squares_stride] = together[kRows + i];
  }
}

/// A block of rows against some queries: out[j * stride + i] = row i . query j.
template <class Row>
struct Products {
  const Row* rows;
  std::size_t row_count;
  const float* queries;
  std::size_t query_count;
  std::size_t n;  // elements of each
  float* out;
  std::size_t stride;
  float* squares;         // of the rows, which are f32 then; null: not wanted
  std::size_t next_rows;  // rows after this block that will be wanted next
  bool far;               // the rows lie in memory, beyond all caches

  /// Queries [q, q + kQueries) with all rows. Tile number `share` of `shares` fetches its part of the next block.
  template <std::size_t kRows, std::size_t kQueries, bool kSquares, bool kLone = false>
  void tile_column(std::size_t q, std::size_t share, std::size_t shares) const {
    const std::size_t from = std::min(share, shares) * kRows / shares;
    const std::size_t to = std::min(share + 1, shares) * kRows / shares;
    // Several queries leave time to fetch the whole next block. One query is as fast as memory: it fetches only what
    // no cache holds, and not far ahead.
    const std::size_t distance = kLone ? kLoneAhead : row_count;
    const std::size_t end = next_rows == 0 || (kLone && !far) ? 0 : row_count + next_rows;
    float* const target = out + q * stride;
    std::size_t at = 0;
    for (; at + kRows <= row_count; at += kRows) {
      Ahead<Row> ahead;
      if (n < kLanes) {
        fetch_short_rows(rows + at * n, q == 0 ? kRows * n : 0);
      } else if (at + distance + kRows <= end) {
        ahead = {rows + (at + distance + from) * n, to - from};
      }
      multiply<kRows, kQueries, kSquares, kLone>(rows + at * n, queries + q * n, n, target + at, stride,
                                                 kSquares ? squares + at : nullptr, ahead);
    }
    for (; at < row_count; ++at) {
      multiply<1, kQueries, kSquares>(rows + at * n, queries + q * n, n, target + at, stride,
                                      kSquares ? squares + at : nullptr, Ahead<Row>{});
    }
  }

  /// Long rows that come from memory, one after the other: as one stream, and the additions of a row are done before the
  /// next has arrived.
  template <bool kSquares>
  void one_by_one() const {
    for (std::size_t at = 0; at < row_count; ++at) {
      multiply<1, 1, kSquares>(rows + at * n, queries, n, out + at, stride, kSquares ? squares + at : nullptr,
                               Ahead<Row>{});
    }
  }

  void run() const {
    if constexpr (std::is_same_v<Row, float>) {
      if (query_count == 1 && far && n > kShortRow) return squares ? one_by_one<true>() : one_by_one<false>();
    }
    if (query_count == 1 && !squares) return tile_column<kLoneRows, 1, false, true>(0, 0, 1);
    const std::size_t shares = (query_count + kTileQueries - 1) / kTileQueries;
    std::size_t q = 0, share = 0;
    if constexpr (std::is_same_v<Row, float>) {
      if (query_count == 1) return tile_column<kLoneRows, 1, true, true>(0, 0, 1);
      if (squares && query_count >= kSquareQueries) {
        tile_column<kTileRows, kSquareQueries, true>(q, share++, shares);
        q += kSquareQueries;
      } else if (squares) {
        tile_column<kTileRows, 1, true>(q++, share++, shares);
      }
    }
    for (; q + kTileQueries <= query_count; q += kTileQueries)
      tile_column<kTileRows, kTileQueries, false>(q, share++, shares);
    if constexpr (kTileQueries > 4) {
      if (q + 4 <= query_count) tile_column<kTileRows, 4, false>(q, share++, shares), q += 4;
      if (q + 2 <= query_count) tile_column<kTileRows, 2, false>(q, share++, shares), q += 2;
    }
    for (; q < query_count; ++q) tile_column<kTileRows, 1, false>(q, share++, shares);
  }
};

/// q . q in as many accumulators as hide the latency of an fma: a single query has no others to overlap with.
HWY_INLINE float square_of(const float* q, std::size_t n) {
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

/// Squares to norms, in place; `values` has room for whole vectors.
HWY_INLINE void take_roots(float* values, std::size_t count) {
  const Float d;
  for (std::size_t at = 0; at < count; at += kLanes) {
    hn::StoreU(hn::Sqrt(hn::LoadU(d, values + at)), d, values + at);
  }
}

HWY_INLINE bool is_safe_square(float square) { return square >= kSmallestSquare && square <= kLargestSquare; }

/// Where the scores of one query with consecutive rows come from.
struct Scores {
  const float* query;
  float query_square;
  const float* rows;
  std::size_t n;
  const float* norms;    // |row|; or null, then
  const float* inverse;  // 1 / |row|; or null: rows have length 1
  float* values;         // products on entry, scores on return
  std::size_t count;

  /// values[i] /= |query| |row|, within -1 and 1. NaN compares false and stays. What fp32 cannot carry is redone.
  void finish() const {
    const Float d;
    const auto one = hn::Set(d, 1.0F);
    const bool good_query = is_safe_square(query_square);
    for (std::size_t at = 0; at < count; at += kLanes) {
      const std::size_t lanes = std::min(kLanes, count - at);
      auto good = hn::FirstN(d, kLanes);
      auto score = scaled(at, lanes, good);
      score = hn::IfThenElse(hn::Gt(score, one), one, score);
      score = hn::IfThenElse(hn::Lt(score, hn::Neg(one)), hn::Neg(one), score);
      lanes == kLanes ? hn::StoreU(score, d, values + at) : store_first(score, values + at, lanes);
      if (good_query && hn::AllTrue(d, good)) continue;
      HWY_ALIGN float flag[kLanes];
      hn::Store(hn::IfThenElseZero(good, one), d, flag);
      for (std::size_t i = 0; i < lanes; ++i) {
        if (good_query && flag[i] != 0) continue;
        values[at + i] = ops::cosine_score(query, rows + (at + i) * n, static_cast<std::int64_t>(n));
      }
    }
  }

 private:
  static HWY_INLINE Floats load(const float* from, std::size_t lanes) {
    return lanes == kLanes ? hn::LoadU(Float(), from) : load_first(from, lanes);
  }
  static HWY_INLINE hn::Mask<Float> within(Floats value, float low, float high) {
    return hn::And(hn::Ge(value, set_all(low)), hn::Le(value, set_all(high)));
  }
  static HWY_INLINE Floats set_all(float value) { return hn::Set(Float(), value); }

  HWY_INLINE Floats scaled(std::size_t at, std::size_t lanes, hn::Mask<Float>& good) const {
    const auto product = load(values + at, lanes);
    const auto norm = set_all(std::sqrt(query_square));
    good = hn::Le(hn::Abs(product), set_all(kLargestSquare));
    if (norms) {
      const auto row = load(norms + at, lanes);
      good = hn::And(good, within(row, kSmallestNorm, kLargestNorm));
      return hn::Div(product, hn::Mul(norm, row));
    }
    const auto score = hn::Div(product, norm);
    if (!inverse) return score;
    const auto known = load(inverse + at, lanes);
    good = hn::And(good, within(known, kSmallestNorm, kLargestNorm));
    return hn::Mul(score, known);
  }
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
