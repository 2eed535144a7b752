// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_topk, fused: blocks of rows are scored in a buffer that stays in the L1 cache, and only scores above the
// k-th best so far leave it, so that the matrix of scores is never stored. The variants fp16 and int8 read a copy of
// the rows in fewer bits, bound each score from it, and take the fp32 score of every row that the bound cannot rule
// out: their results are those of the default variant, bit for bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/cosine_topk.cpp"
#include <fulcrum/ops/cosine_topk.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "backends/simd/bytes-inl.h"
#include "backends/simd/isa.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kIds, kScores };
enum Dim { kQ, kN, kD, kK };

/// Puts the scores of rows `row` .. into the list: at most a vector of them.
void select(const float* scores, std::size_t count, std::int64_t row, ops::TopkList list) {
  const Float d;
  std::uint64_t left = (std::uint64_t{1} << count) - 1;
  if (list.full()) {
    const auto v = count == kLanes ? hn::LoadU(d, scores) : load_first(scores, count);
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, hn::Gt(v, hn::Set(d, list.worst_score())), bits);
    std::uint64_t above = 0;
    std::memcpy(&above, bits, sizeof(above));
    left &= above;
  }
  for (; left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    list.offer(ops::topk_key(scores[i], row + i));
  }
}

/// Tells by products alone that rows cannot enter a list, which saves most of the divisions. A little is left for their
/// roundings, and for those of the limit.
struct Limit {
  static constexpr float kSlack = 0x1p-20F;
  const float* norms;    // of the block's rows; or null, then
  const float* inverse;  // or null: rows have length 1
  bool trusted;          // the norms of rows and query are such that products are finite

  static bool within(const float* values, std::size_t count) {
    return std::all_of(values, values + count,
                       [](float value) { return value >= kSmallestNorm && value <= kLargestNorm; });
  }

  /// `worst` is the score to beat times the query's length. NaN is not below anything.
  HWY_INLINE bool excludes(const float* products, std::size_t at, float worst) const {
    const Float d;
    const auto limit = hn::Set(d, worst - std::abs(worst) * kSlack);
    const auto product = hn::LoadU(d, products + at);
    if (norms) return hn::AllTrue(d, hn::Le(product, hn::Mul(limit, hn::LoadU(d, norms + at))));
    if (inverse) return hn::AllTrue(d, hn::Le(hn::Mul(product, hn::LoadU(d, inverse + at)), limit));
    return hn::AllTrue(d, hn::Le(product, limit));
  }
};

/// Queries [first, last), at most kTopkQueries, against the rows [begin, end). Query first + j keeps its list at
/// words + j * pitch.
void search(const fulcrum_args& a, std::int64_t first, std::int64_t last, std::int64_t begin,
            std::int64_t end, ops::TopkKey* words, std::int64_t pitch) {
  HWY_ALIGN float squares[ops::kTopkRows] = {};
  HWY_ALIGN float scores[ops::kTopkQueries * ops::kTopkRows];
  float query_squares[ops::kTopkQueries];
  const auto n = static_cast<std::size_t>(a.dim[kD]);
  const auto* inverse = a.in<float>(kInverseNorm);
  float* wanted_squares = !inverse && a.scalar[0].i == 0 ? squares : nullptr;
  const float* q = a.in<float>(kQuery) + first * a.dim[kD];
  const bool far = a.dim[kN] * a.dim[kD] * std::int64_t{sizeof(float)} > kFarBytes;
  for (std::int64_t j = 0; j < last - first; ++j) {
    query_squares[j] = square_of(q + j * a.dim[kD], n);
    ops::TopkList(words + j * pitch, a.dim[kK]).clear();
  }
  for (std::int64_t row = begin; row < end; row += ops::kTopkRows) {
    const auto count = static_cast<std::size_t>(std::min(ops::kTopkRows, end - row));
    const float* t = a.in<float>(kRows) + row * a.dim[kD];
    const Products<float> products{.rows = t,
                                   .row_count = count,
                                   .queries = q,
                                   .query_count = static_cast<std::size_t>(last - first),
                                   .n = n,
                                   .out = scores,
                                   .stride = ops::kTopkRows,
                                   .squares = wanted_squares,
                                   .next_rows = static_cast<std::size_t>(end - row) - count,
                                   .far = far};
    products.run();
    if (wanted_squares) take_roots(squares, count);
    const float* known = inverse ? inverse + row : nullptr;
    const float* lengths = wanted_squares ? wanted_squares : known;
    const Limit limit{wanted_squares, known, !lengths || Limit::within(lengths, count)};
    for (std::int64_t j = 0; j < last - first; ++j) {
      float* own = scores + j * ops::kTopkRows;
      const ops::TopkList list(words + j * pitch, a.dim[kK]);
      const bool trusted = limit.trusted && is_safe_square(query_squares[j]);
      const float length = std::sqrt(query_squares[j]);
      for (std::size_t at = 0; at < count; at += kLanes) {
        const std::size_t lanes = std::min(kLanes, count - at);
        if (trusted && lanes == kLanes && list.full() && limit.excludes(own, at, list.worst_score() * length))
          continue;
        Scores{.query = q + j * a.dim[kD],
               .query_square = query_squares[j],
               .rows = t + at * n,
               .n = n,
               .norms = wanted_squares ? wanted_squares + at : nullptr,
               .inverse = known ? known + at : nullptr,
               .values = own + at,
               .count = lanes}
            .finish();
        select(own + at, lanes, row + static_cast<std::int64_t>(at), list);
      }
    }
  }
}

/// The score of one pair, with the bits it has in a block.
float score_of(const fulcrum_args& a, const float* q, float query_square, std::int64_t row) {
  const auto n = static_cast<std::size_t>(a.dim[kD]);
  const auto* inverse = a.in<float>(kInverseNorm);
  const bool squares = !inverse && a.scalar[0].i == 0;
  const float* t = a.in<float>(kRows) + row * a.dim[kD];
  float score = 0;
  HWY_ALIGN float square[kLanes] = {};
  if (squares) {
    multiply<1, 1, true>(t, q, n, &score, 1, square, Ahead<float>{});
    take_roots(square, 1);
  } else {
    multiply<1, 1, false>(t, q, n, &score, 1, nullptr, Ahead<float>{});
  }
  Scores{.query = q,
         .query_square = query_square,
         .rows = t,
         .n = n,
         .norms = squares ? square : nullptr,
         .inverse = inverse ? inverse + row : nullptr,
         .values = &score,
         .count = 1}
      .finish();
  return score;
}

/// A query as the filter sees it.
struct Filter {
  const float* query = nullptr;
  float square = 0;
  bool usable = false;
  float factor = 0;         // product with the copy * factor * gain: nearly the score
  float error = 0;          // relative, of the query's own copy
  std::int32_t offset = 0;  // of integer products
};

HWY_INLINE Floats load_products(const float* from, std::size_t lanes, std::int32_t) {
  return lanes == kLanes ? hn::LoadU(Float(), from) : load_first(from, lanes);
}
HWY_INLINE Floats load_products(const std::int32_t* from, std::size_t lanes, std::int32_t offset) {
  const Int d;
  HWY_ALIGN std::int32_t first[kLanes] = {};
  if (lanes < kLanes) {
    std::copy_n(from, lanes, first);
    from = first;
  }
  return hn::ConvertTo(Float(), hn::Sub(hn::LoadU(d, from), hn::Set(d, offset)));
}

/// Of the rows `row` .. those whose score may be among the best: their numbers in `hits`; returns how many.
template <class Product>
std::size_t find_hits(const CompressedRows& rows, const Filter& filter, const Product* products,
                      std::size_t count, std::int64_t row, float worst, std::uint8_t* hits) {
  const Float d;
  std::size_t found = 0;
  for (std::size_t at = 0; at < count; at += kLanes) {
    const std::size_t lanes = std::min(kLanes, count - at);
    const std::size_t from = static_cast<std::size_t>(row) + at;
    const auto product =
        hn::Mul(load_products(products + at, lanes, filter.offset), hn::Set(d, filter.factor));
    auto upper = hn::MulAdd(product, load_products(rows.gain.data() + from, lanes, 0),
                            load_products(rows.slack.data() + from, lanes, 0));
    upper = hn::MulAdd(hn::Set(d, filter.error), load_products(rows.reach.data() + from, lanes, 0), upper);
    if (hn::AllFalse(d, hn::Ge(upper, hn::Set(d, worst)))) continue;
    HWY_ALIGN float bound[kLanes];
    hn::Store(upper, d, bound);
    for (std::size_t i = 0; i < lanes; ++i) {
      if (bound[i] >= worst) hits[found++] = static_cast<std::uint8_t>(at + i);
    }
  }
  return found;
}

/// Scores the rows of a block that the filter lets through. Several are on their way from memory at once.
template <class Product>
void look_at(const fulcrum_args& a, const CompressedRows& rows, const Filter& filter, const Product* products,
             std::size_t count, std::int64_t row, ops::TopkList list) {
  std::uint8_t hits[ops::kTopkRows];
  list.tighten();
  const std::size_t found = find_hits(rows, filter, products, count, row, list.worst_score(), hits);
  if (list.full()) {
    for (std::size_t i = 0; i < found; ++i) {
      const float* t = a.in<float>(kRows) + (row + hits[i]) * a.dim[kD];
      for (std::int64_t k = 0; k < std::min<std::int64_t>(a.dim[kD], 512); k += 16) __builtin_prefetch(t + k);
    }
  }
  for (std::size_t i = 0; i < found; ++i) {
    list.offer(ops::topk_key(score_of(a, filter.query, filter.square, row + hits[i]), row + hits[i]));
  }
}

/// The queries of a block for rows in 8 bits: their bytes go to `bytes`.
void compress_queries(Filter* filters, std::size_t count, std::size_t n, std::size_t pitch,
                      std::int8_t* bytes) {
  for (std::size_t j = 0; j < count; ++j, bytes += pitch) {
    if (!filters[j].usable) {
      std::fill_n(bytes, pitch, std::int8_t{0});
      continue;
    }
    const ByteQuery query = compress_query(filters[j].query, n, pitch, bytes);
    filters[j].factor *= query.scale;
    filters[j].error = query.error;
    filters[j].offset = query.offset;
  }
}

/// search() through the copy.
void search_copy(const fulcrum_args& a, const CompressedRows& rows, std::int64_t first, std::int64_t last,
                 std::int64_t begin, std::int64_t end, ops::TopkKey* words, std::int64_t pitch) {
  HWY_ALIGN float products[ops::kTopkQueries * ops::kTopkRows];
  HWY_ALIGN std::int32_t byte_products[ops::kTopkQueries * ops::kTopkRows];
  const auto n = static_cast<std::size_t>(a.dim[kD]), queries = static_cast<std::size_t>(last - first);
  const bool halves = rows.kind == CompressedRows::Kind::halves;
  const bool far = a.dim[kN] * static_cast<std::int64_t>(rows.pitch * sizeof(std::uint16_t)) > kFarBytes;
  std::int8_t* bytes = nullptr;
  if (!halves) {
    bytes = static_cast<std::int8_t*>(workspace_bytes(queries * rows.pitch));
    if (!bytes) return search(a, first, last, begin, end, words, pitch);
  }
  Filter filters[ops::kTopkQueries];
  for (std::size_t j = 0; j < queries; ++j) {
    const std::int64_t query = first + static_cast<std::int64_t>(j);
    const float* q = a.in<float>(kQuery) + query * a.dim[kD];
    const float square = square_of(q, n);
    filters[j] = Filter{
        .query = q, .square = square, .usable = is_filterable(square), .factor = 1 / std::sqrt(square)};
    ops::TopkKey* own = words + static_cast<std::int64_t>(j) * pitch;
    ops::TopkList(own, a.dim[kK]).clear();
    if (!filters[j].usable) search(a, query, query + 1, begin, end, own, pitch);
  }
  if (bytes) compress_queries(filters, queries, n, rows.pitch, bytes);
  for (std::int64_t row = begin; row < end; row += ops::kTopkRows) {
    const auto count = static_cast<std::size_t>(std::min(ops::kTopkRows, end - row));
    const std::size_t at = static_cast<std::size_t>(row) * rows.pitch;
    if (halves) {
      Products<std::uint16_t>{.rows = rows.halves.get() + at,
                              .row_count = count,
                              .queries = a.in<float>(kQuery) + first * a.dim[kD],
                              .query_count = queries,
                              .n = n,
                              .out = products,
                              .stride = ops::kTopkRows,
                              .squares = nullptr,
                              .next_rows = static_cast<std::size_t>(end - row) - count,
                              .far = far}
          .run();
    } else {
      ByteProducts{.rows = rows.bytes.get() + at,
                   .row_count = count,
                   .queries = bytes,
                   .query_count = queries,
                   .pitch = rows.pitch,
                   .out = byte_products,
                   .stride = ops::kTopkRows,
                   .next_rows = static_cast<std::size_t>(end - row) - count}
          .run();
    }
    for (std::size_t j = 0; j < queries; ++j) {
      if (!filters[j].usable) continue;
      const ops::TopkList list(words + static_cast<std::int64_t>(j) * pitch, a.dim[kK]);
      const std::size_t own = j * ops::kTopkRows;
      halves ? look_at(a, rows, filters[j], products + own, count, row, list)
             : look_at(a, rows, filters[j], byte_products + own, count, row, list);
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kIds, kScores };
enum Dim { kQ, kN, kD, kK };

HWY_EXPORT(search);
HWY_EXPORT(search_copy);

/// The copy of the rows, unless this is the default variant, and lists of one block of queries for calls on one
/// thread.
struct Plan {
  bool copied = false;
  CompressedRows rows;
  std::unique_ptr<ops::TopkKey[]> lists;
};

fulcrum_status plan(const fulcrum_kernel* self, const fulcrum_args* a, void** made) {
  const auto words =
      static_cast<std::size_t>(std::min(a->dim[kQ], ops::kTopkQueries) * ops::TopkList::words(a->dim[kK]));
  auto plan = std::make_unique<Plan>();
  plan->lists.reset(new (std::nothrow) ops::TopkKey[words + 1]);
  if (!plan->lists) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the best of each query"};
  plan->copied = self->precision != nullptr;
  if (plan->copied) {
    const bool bytes = std::string_view(self->precision) == "int8";
    if (!compress(*a, bytes ? CompressedRows::Kind::bytes : CompressedRows::Kind::halves, plan->rows)) {
      return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the copy of the rows"};
    }
  }
  *made = plan.release();
  return done();
}

void drop(void* plan) { delete static_cast<Plan*>(plan); }

void search_rows(const fulcrum_args& a, std::int64_t first, std::int64_t last, std::int64_t begin,
                 std::int64_t end, ops::TopkKey* lists, std::int64_t pitch) {
  const Plan& plan = *static_cast<const Plan*>(a.plan);
  if (plan.copied) {
    (HWY_DYNAMIC_DISPATCH(search_copy))(a, plan.rows, first, last, begin, end, lists, pitch);
  } else {
    (HWY_DYNAMIC_DISPATCH(search))(a, first, last, begin, end, lists, pitch);
  }
}

void run_once(const fulcrum_args& a) {
  const std::int64_t k = a.dim[kK], pitch = ops::TopkList::words(k);
  ops::TopkKey* lists = static_cast<const Plan*>(a.plan)->lists.get();
  for (std::int64_t first = 0; first < a.dim[kQ]; first += ops::kTopkQueries) {
    const std::int64_t last = std::min(a.dim[kQ], first + ops::kTopkQueries);
    search_rows(a, first, last, 0, a.dim[kN], lists, pitch);
    for (std::int64_t query = first; query < last; ++query) {
      ops::TopkList(lists + (query - first) * pitch, k)
          .write(a.out<std::int32_t>(kIds) + query * k, a.out<float>(kScores) + query * k);
    }
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) run_once(*a);
  return done();
}

/// Chunks of rows that follow each other are one search, whose lists stand where those of the first chunk do; so are blocks
/// of queries that all rows are searched for.
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  if (phase == 1) return ops::topk_merge(*a, begin, end, scratch);
  const ops::TopkSplit split = ops::topk_split(*a);
  for (std::int64_t piece = begin; piece < end;) {
    const std::int64_t block = piece / split.row_chunks, chunk = piece % split.row_chunks;
    const std::int64_t chunks = std::min(end - piece, split.row_chunks - chunk);
    const std::int64_t whole =
        std::min((end - piece) / split.row_chunks, ops::kTopkQueries / split.block_queries);
    const std::int64_t blocks = chunk == 0 ? std::max<std::int64_t>(1, whole) : 1;
    const std::int64_t first = block * split.block_queries;
    const std::int64_t last = std::min(a->dim[kQ], first + blocks * split.block_queries);
    for (std::int64_t c = chunk + 1; c < chunk + chunks; ++c) {
      for (std::int64_t query = first; query < last; ++query)
        ops::TopkList(ops::topk_list(*a, scratch, query, c), a->dim[kK]).clear();
    }
    search_rows(*a, first, last, chunk * split.chunk_rows,
                std::min(a->dim[kN], (chunk + chunks) * split.chunk_rows),
                ops::topk_list(*a, scratch, first, chunk), ops::TopkList::words(a->dim[kK]));
    piece += blocks * chunks;
  }
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> cosine_topk() {
  static const std::array<fulcrum_kernel, 3> kernels = [] {
    fulcrum_kernel plain{.variant = "default",
                         .level = 1,
                         .isa = isa_name,
                         .plan = plan,
                         .drop = drop,
                         .run = run,
                         .partial = partial};
    fulcrum_kernel halves = plain;
    halves.plan_reads = 0b110;
    fulcrum_kernel bytes = halves;
    halves.variant = halves.precision = "fp16";
    halves.byte_factor = 0.5;
    bytes.variant = bytes.precision = "int8";
    bytes.byte_factor = 0.25;
    bytes.supports = [](const fulcrum_args* a) { return static_cast<int>(a->dim[kD] <= kByteMostD); };
    return std::array<fulcrum_kernel, 3>{plain, halves, bytes};
  }();
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
