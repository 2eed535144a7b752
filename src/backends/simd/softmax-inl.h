// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What softmax and log_softmax share: the sum of exponentials of a chunk, and the way through rows and pieces.
// The input is read once: exponentials are taken relative to the largest of the chunk's first elements while the true
// maximum is found beside them, and only a chunk that rises far above that is done again. Any reference gives the same
// result, as long as nothing overflows; it depends on the chunk alone, so bits do not depend on threads. What the
// second pass needs of each element is left in the output, so that it touches nothing else.
#include <fulcrum/ops/softmax.h>

#include <algorithm>
#include <limits>

#include "backends/simd/math-inl.h"
#include "backends/simd/streaming-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_SOFTMAX_INL_H_
#undef FULCRUM_BACKENDS_SIMD_SOFTMAX_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_SOFTMAX_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

inline constexpr float kLowest = -std::numeric_limits<float>::infinity();
// Elements whose maximum is the first reference, and how far others may rise above it: the exponentials stay small,
// and what the reference is off costs no more than 4 bits of an argument near 0.
inline constexpr std::size_t kSampled = 256;
inline constexpr float kRise = 8.0F;

/// The largest element; with a NaN among them any of them, or NaN.
HWY_INLINE float largest(const float* x, std::size_t n) {
  const Float d;
  Floats high[4] = {set(kLowest), set(kLowest), set(kLowest), set(kLowest)};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < 4; ++p) high[p] = hn::Max(high[p], hn::LoadU(d, x + i + p * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) high[0] = hn::Max(high[0], hn::LoadU(d, x + i));
  if (i < n) {
    const auto tail = hn::IfThenElse(hn::FirstN(d, n - i), load_first(x + i, n - i), set(kLowest));
    high[0] = hn::Max(high[0], tail);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]))));
}

/// What a pass over a chunk finds.
struct ChunkSum {
  float sum;
  float max;
};

/// Sum of exp(x - reference) and the maximum; Writer::kept of each element goes to `out`. Where x is far above the
/// reference all but the maximum is anything.
template <class Writer>
HWY_INLINE ChunkSum sum_exponentials(const float* x, float* out, std::size_t n, float reference) {
  const Float d;
  const auto m = set(reference);
  Floats sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  Floats high[4] = {set(kLowest), set(kLowest), set(kLowest), set(kLowest)};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < 4; ++p) {
      const auto v = hn::LoadU(d, x + i + p * kLanes);
      const auto difference = hn::Sub(v, m);
      const auto e = exp_of_negative(difference);
      hn::StoreU(Writer::kept(difference, e), d, out + i + p * kLanes);
      sum[p] = hn::Add(sum[p], e);
      high[p] = hn::Max(high[p], v);
    }
  }
  for (; i < n; i += kLanes) {
    const std::size_t left = std::min(n - i, kLanes);
    const auto in = hn::FirstN(d, left);
    const auto v = left == kLanes ? hn::LoadU(d, x + i) : load_first(x + i, left);
    const auto difference = hn::Sub(v, m);
    const auto e = exp_of_negative(difference);
    const auto kept = Writer::kept(difference, e);
    left == kLanes ? hn::StoreU(kept, d, out + i) : store_first(kept, out + i, left);
    sum[0] = hn::Add(sum[0], hn::IfThenElseZero(in, e));
    high[0] = hn::Max(high[0], hn::IfThenElse(in, v, set(kLowest)));
  }
  const auto all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  const auto top = hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]));
  return ChunkSum{hn::GetLane(hn::SumOfLanes(d, all)), hn::GetLane(hn::MaxOfLanes(d, top))};
}

template <class Writer>
HWY_INLINE ops::SoftmaxPart reduce_chunk(const float* x, float* out, std::size_t n) {
  float reference = largest(x, std::min(n, kSampled));
  ChunkSum found{0, kLowest};
  // -Inf is no reference: -Inf - -Inf would be NaN.
  if (reference != kLowest) found = sum_exponentials<Writer>(x, out, n, reference);
  if (reference == kLowest || !(found.max - reference <= kRise)) {
    reference = reference == kLowest ? largest(x, n) : found.max;
    found = sum_exponentials<Writer>(x, out, n, reference == kLowest ? 0.0F : reference);
  }
  return ops::SoftmaxPart{.sum = static_cast<double>(found.sum), .max = reference, .chunk_max = reference};
}

/// Rows of at most so many vectors stay in registers.
inline constexpr std::size_t kShortVectors = 4;

/// Whole rows of kVectors vectors, the last of `last` elements.
template <class Writer, std::size_t kVectors>
HWY_NOINLINE void short_rows(const float* x, float* out, std::size_t n, std::int64_t rows) {
  const Float d;
  constexpr std::size_t kEnd = (kVectors - 1) * kLanes;
  const std::size_t last = n - kEnd;
  const auto in = hn::FirstN(d, last);
  const bool whole = last == kLanes;
  for (; rows > 0; --rows, x += n, out += n) {
    if (n < kLanes) fetch_short_rows(x, n);
    Floats v[kVectors], e[kVectors];
    HWY_UNROLL(4)
    for (std::size_t i = 0; i + 1 < kVectors; ++i) v[i] = hn::LoadU(d, x + i * kLanes);
    v[kVectors - 1] =
        whole ? hn::LoadU(d, x + kEnd) : hn::IfThenElse(in, load_first(x + kEnd, last), set(kLowest));
    auto high = v[0];
    HWY_UNROLL(4)
    for (std::size_t i = 1; i < kVectors; ++i) high = hn::Max(high, v[i]);
    const auto m = hn::MaxOfLanes(d, high);
    auto sum = hn::Zero(d);
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < kVectors; ++i) {
      v[i] = hn::Sub(v[i], m);
      e[i] = exp_of_negative(v[i]);
      sum = hn::Add(sum, i + 1 < kVectors ? e[i] : hn::IfThenElseZero(in, e[i]));
    }
    const Writer writer(hn::SumOfLanes(d, sum));
    HWY_UNROLL(4)
    for (std::size_t i = 0; i + 1 < kVectors; ++i) hn::StoreU(writer(v[i], e[i]), d, out + i * kLanes);
    const auto end = writer(v[kVectors - 1], e[kVectors - 1]);
    whole ? hn::StoreU(end, d, out + kEnd) : store_first(end, out + kEnd, last);
  }
}

/// Whole rows [begin, end) of one chunk.
template <class Writer>
HWY_INLINE void whole_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const auto n = static_cast<std::size_t>(a.dim[1]);
  const float* x = a.in<float>(0) + begin * a.dim[1];
  float* out = a.out<float>(1) + begin * a.dim[1];
  using Short = typename Writer::Short;
  constexpr decltype(&short_rows<Short, 1>) kShort[kShortVectors] = {
      short_rows<Short, 1>, short_rows<Short, 2>, short_rows<Short, 3>, short_rows<Short, 4>};
  const std::size_t vectors = (n + kLanes - 1) / kLanes;
  if (vectors <= kShortVectors) return kShort[vectors - 1](x, out, n, end - begin);
  for (; begin < end; ++begin, x += n, out += n) Writer::finish(out, n, reduce_chunk<Writer>(x, out, n));
}

/// Pieces of one phase; parts[0] is that of piece `begin`. Writer::finish makes the result of a chunk from what was
/// kept, the sum and the reference of its row, and its own reference.
template <class Writer>
HWY_INLINE void rows_phase(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                           ops::SoftmaxPart* parts) {
  if (ops::softmax_chunks(a.dim[1]) == 1) return whole_rows<Writer>(a, begin, end);
  for (std::int64_t number = begin; number < end; ++number) {
    const auto [first, length] = ops::softmax_piece(number, a.dim[1]);
    float* out = a.out<float>(1) + first;
    const auto n = static_cast<std::size_t>(length);
    if (write) {
      Writer::finish(out, n, parts[number - begin]);
    } else {
      parts[number - begin] = reduce_chunk<Writer>(a.in<float>(0) + first, out, n);
    }
  }
}

/// Whole calls, one row after the other; `parts` has room for the chunks of a row.
template <class Writer>
HWY_INLINE void row_by_row(const fulcrum_args& a, std::int64_t count, ops::SoftmaxPart* parts) {
  const std::int64_t chunks = ops::softmax_chunks(a.dim[1]);
  for (std::int64_t call = 0; call < count; ++call) {
    if (chunks == 1) {
      whole_rows<Writer>(a, 0, a.dim[0]);
    } else {
      for (std::int64_t piece = 0; piece < a.dim[0] * chunks; piece += chunks) {
        rows_phase<Writer>(a, false, piece, piece + chunks, parts);
        ops::merge_row(parts, chunks);
        rows_phase<Writer>(a, true, piece, piece + chunks, parts);
      }
    }
    end_of_call();
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
