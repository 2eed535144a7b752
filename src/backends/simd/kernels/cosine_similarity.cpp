// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity: products of a block of rows with a group of queries go straight to the output, norms of rows
// being taken in the first queries' pass; then a pass over the block, still in the L1 cache, makes them scores. A single
// query reads rows that are not in its core's cache at several places at once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/cosine_similarity.cpp"
#include <hwy/foreach_target.h>

#include <span>

#include "backends/simd/cosine-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/streaming-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

/// Queries [first, last) against the rows [row, row + rows), at most a piece of each.
void score_block(const fulcrum_args& a, std::int64_t first, std::int64_t last, const float* query_squares,
                 std::int64_t row, std::int64_t rows) {
  HWY_ALIGN float squares[ops::kCosineRows] = {};
  const auto n = static_cast<std::size_t>(a.dim[kD]);
  const auto count = static_cast<std::size_t>(rows);
  const auto* inverse = a.in<float>(kInverseNorm);
  const bool wants_squares = !inverse && a.scalar[0].i == 0;
  const float* t = a.in<float>(kRows) + row * a.dim[kD];
  const float* q = a.in<float>(kQuery) + first * a.dim[kD];
  float* out = a.out<float>(kOut) + first * a.dim[kN] + row;
  const Products<float> products{.rows = t,
                                 .row_count = count,
                                 .queries = q,
                                 .query_count = static_cast<std::size_t>(last - first),
                                 .n = n,
                                 .out = out,
                                 .stride = static_cast<std::size_t>(a.dim[kN]),
                                 .squares = wants_squares ? squares : nullptr,
                                 .next_rows = static_cast<std::size_t>(a.dim[kN] - row - rows),
                                 .far = false};
  products.run();
  if (wants_squares) take_roots(squares, count);
  for (std::int64_t query = first; query < last; ++query) {
    const Scores scores{.query = q + (query - first) * a.dim[kD],
                        .query_square = query_squares[query - first],
                        .rows = t,
                        .n = n,
                        .norms = wants_squares ? squares : nullptr,
                        .inverse = inverse ? inverse + row : nullptr,
                        .values = out + (query - first) * a.dim[kN],
                        .count = count};
    scores.finish();
  }
}

/// Rows of more bytes fill a core's own cache; of still more, little is found there in the next call.
constexpr std::int64_t kNearBytes = std::int64_t{1} << 20;
constexpr std::int64_t kApartBytes = std::int64_t{4} << 20;

/// One query against rows from afar: whole pieces of [begin, end) at kPlaces places at once, each a stream of its own
/// to the prefetchers. One stream is as fast where pages are huge, and takes half as long again where they are small.
/// Returns the first piece that is left.
std::int64_t score_apart(const fulcrum_args& a, float query_square, std::int64_t begin, std::int64_t end) {
  const std::int64_t length = (std::min(end, a.dim[kN] / ops::kCosineRows) - begin) / kPlaces;
  if (length <= 0) return begin;
  const auto n = static_cast<std::size_t>(a.dim[kD]),
             apart = static_cast<std::size_t>(length * ops::kCosineRows);
  const auto* inverse = a.in<float>(kInverseNorm);
  const bool wants_squares = !inverse && a.scalar[0].i == 0;
  const auto* q = a.in<float>(kQuery);
  const auto multiply = wants_squares ? multiply_apart<kPlaces, true> : multiply_apart<kPlaces, false>;
  for (std::int64_t piece = begin; piece < begin + length; ++piece) {
    HWY_ALIGN float squares[kPlaces][ops::kCosineRows];
    const std::int64_t first = piece * ops::kCosineRows;
    const float* t = a.in<float>(kRows) + first * a.dim[kD];
    float* out = a.out<float>(kOut) + first;
    for (std::int64_t row = 0; row < ops::kCosineRows; ++row)
      multiply(t + row * a.dim[kD], apart * n, q, n, out + row, apart, &squares[0][row], ops::kCosineRows);
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (wants_squares) take_roots(squares[place], ops::kCosineRows);
      Scores{.query = q,
             .query_square = query_square,
             .rows = t + place * apart * n,
             .n = n,
             .norms = wants_squares ? squares[place] : nullptr,
             .inverse = inverse ? inverse + first + place * apart : nullptr,
             .values = out + place * apart,
             .count = ops::kCosineRows}
          .finish();
    }
  }
  return begin + length * static_cast<std::int64_t>(kPlaces);
}

/// Pieces [begin, end): queries in groups of kCosineQueries, and for each group rows in groups of kCosineRows.
void score_pieces(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t across = (a.dim[kN] + ops::kCosineRows - 1) / ops::kCosineRows;
  float query_squares[ops::kCosineQueries];
  const bool apart = a.dim[kN] * a.dim[kD] * std::int64_t{sizeof(float)} > kApartBytes;
  if (a.dim[kQ] == 1 && apart && a.dim[kD] >= static_cast<std::int64_t>(kLanes)) {
    begin = score_apart(a, square_of(a.in<float>(kQuery), static_cast<std::size_t>(a.dim[kD])), begin, end);
  }
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t first = piece / across * ops::kCosineQueries;
    const std::int64_t last = std::min(a.dim[kQ], first + ops::kCosineQueries);
    if (piece == begin || piece % across == 0) {
      for (std::int64_t query = first; query < last; ++query) {
        query_squares[query - first] =
            square_of(a.in<float>(kQuery) + query * a.dim[kD], static_cast<std::size_t>(a.dim[kD]));
      }
    }
    const std::int64_t row = piece % across * ops::kCosineRows;
    score_block(a, first, last, query_squares, row, std::min(ops::kCosineRows, a.dim[kN] - row));
  }
}

/// One query against rows that nearly fit into a core's cache: forwards and backwards by turns, so that a call begins
/// with the rows that the last one left there.
void score_by_turns(const fulcrum_args& a, std::int64_t pieces) {
  thread_local bool backwards = false;
  backwards = !backwards;
  const float square = square_of(a.in<float>(kQuery), static_cast<std::size_t>(a.dim[kD]));
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t row = (backwards ? pieces - 1 - i : i) * ops::kCosineRows;
    score_block(a, 0, 1, &square, row, std::min(ops::kCosineRows, a.dim[kN] - row));
  }
}

void run_cosine(const fulcrum_args& a, std::int64_t pieces, std::int64_t count) {
  const std::int64_t bytes = a.dim[kN] * a.dim[kD] * std::int64_t{sizeof(float)};
  const bool by_turns = a.dim[kQ] == 1 && bytes > kNearBytes && bytes <= kApartBytes;
  for (std::int64_t call = 0; call < count; ++call) {
    by_turns ? score_by_turns(a, pieces) : score_pieces(a, 0, pieces);
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
