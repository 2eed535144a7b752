// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms of the windows of eight rows of outputs, or sixteen, that stand one below the other, slid along a row
// together. The windows read W + 7 image rows, or W + 15; column x of those rows is a record, and adding or removing a
// record changes the counts of each pixel's bin in the windows that hold it. Included once per instruction set.
//
// Sums are T's own int64, or int32 where a coarser table will do. With AVX-512 the counts of a bin are one vector, the
// sums are another one, and the table's steps for small counts are two registers. A large count in sight makes the rest
// of the block gather its steps from memory. Elsewhere each window is a plain histogram.
#include <fulcrum/ops/pixel_entropy.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_HISTOGRAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_HISTOGRAM_INL_H_
#undef FULCRUM_BACKENDS_SIMD_HISTOGRAM_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_HISTOGRAM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

inline constexpr std::int64_t kGroupRows = 8;  // rows that enter records at once
inline constexpr std::int64_t kMostRows = 16;  // windows of a block

/// The records of all columns, and which of them the windows centred at column x take in and let go; null: none.
struct Columns {
  const std::uint16_t* records;
  std::int64_t depth, count, window;
  std::int64_t origin;  // column of the first sums that are written

  HWY_INLINE const std::uint16_t* entering(std::int64_t x) const {
    const std::int64_t column = x + window - 1 - window / 2;
    return column >= 0 && column < count ? records + column * depth : nullptr;
  }
  HWY_INLINE const std::uint16_t* leaving(std::int64_t x) const {
    const std::int64_t column = x - window / 2 - 1;
    return column >= 0 ? records + column * depth : nullptr;
  }
};

/// What the sums are sums of, and the differences of neighbouring entries; 17 entries or more.
template <class Sum>
struct SumTable {
  const Sum* sums;
  const Sum* steps;
};

/// What is counted: windows of width `window`, rows [first, last) of a record inside the image.
struct BlockShape {
  std::int64_t window, rows, first, last;
};

#if HWY_TARGET == HWY_AVX3

/// Which windows hold row j < 7 (1) and which the row W below it; in memory, as there are more of them than registers.
struct Shares {
  static constexpr int kRows = 8;
  alignas(16) std::uint16_t upper[kRows][kRows], lower[kRows][kRows];
  constexpr Shares() : upper(), lower() {
    for (int j = 0; j < kRows; ++j) {
      for (int r = 0; r < kRows; ++r) (r <= j ? upper : lower)[j][r] = 1;
    }
  }
};
inline constexpr Shares kShares;

/// Exact sums of eight windows. Rows j < 7 and j + W are in complementary sets of windows, so that they share one look-up:
/// W look-ups for a record instead of eight times W.
class ExactHistogram {
 public:
  using Sum = std::int64_t;
  static constexpr std::int64_t kRows = 8;
  static constexpr int kBinShift = 4;  // entries of a record are bins times the bytes of their counts

  explicit ExactHistogram(const SumTable<Sum>& table) : table_(table) {}

  void begin(const BlockShape& shape) {
    shape_ = shape;
    std::memset(counts_, 0, sizeof(counts_));
    sum_ = _mm512_setzero_si512();
    small_ = true;
    paired_ = shape.window >= kRows && shape.rows == kRows && shape.first == 0 &&
              shape.last >= shape.window + kRows - 1;
    for (std::int64_t j = shape.first; j < shape.last; ++j) {
      int mask = 0;
      for (std::int64_t r = 0; r < shape.rows; ++r) mask |= (j >= r && j < r + shape.window) ? 1 << r : 0;
      masks_[j] = static_cast<__mmask8>(mask);
    }
  }

  void slide(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    if (small_)
      from = paired_ ? move<true, true>(columns, from, to, sums) : move<true, false>(columns, from, to, sums);
    if (small_) return;
    paired_ ? move<false, true>(columns, from, to, sums) : move<false, false>(columns, from, to, sums);
  }

 private:
  using Vector = __m512i;
  static constexpr int kSmall = 16;  // entries of two registers

  /// What stays in registers.
  struct Lanes {
    Vector sum, low, high;
    __m128i seen;  // every count that was added to, one over the other
  };

  template <bool kSmallCounts>
  HWY_INLINE Vector steps(const Lanes& lanes, __m128i counts) const {
    const Vector index = _mm512_cvtepu16_epi64(counts);
    return kSmallCounts ? _mm512_permutex2var_epi64(lanes.low, index, lanes.high)
                        : _mm512_i64gather_epi64(index, table_.steps, 8);
  }

  template <bool kAdd>
  static HWY_INLINE void accumulate(Lanes& lanes, Vector steps) {
    lanes.sum = kAdd ? _mm512_add_epi64(lanes.sum, steps) : _mm512_sub_epi64(lanes.sum, steps);
  }

  HWY_INLINE __m128i* at(std::uint16_t entry) {
    return reinterpret_cast<__m128i*>(reinterpret_cast<char*>(counts_) + entry);
  }

  /// A row that all windows hold.
  template <bool kAdd, bool kSmallCounts>
  HWY_INLINE void change_all(Lanes& lanes, std::uint16_t entry) {
    __m128i* const place = at(entry);
    const __m128i count = _mm_load_si128(place);
    const __m128i next = kAdd ? _mm_add_epi16(count, ones()) : _mm_sub_epi16(count, ones());
    _mm_store_si128(place, next);
    accumulate<kAdd>(lanes, steps<kSmallCounts>(lanes, kAdd ? count : next));
    if (kAdd && kSmallCounts) lanes.seen = _mm_or_si128(lanes.seen, count);
  }

  /// Row kRow, held by windows up to kRow, and the one W below it, held by the others.
  template <bool kAdd, bool kSmallCounts, int kRow>
  HWY_INLINE void change_pair(Lanes& lanes, std::uint16_t upper, std::uint16_t lower) {
    constexpr int kUpper = (2 << kRow) - 1;
    const __m128i upper_ones = _mm_load_si128(reinterpret_cast<const __m128i*>(kShares.upper[kRow]));
    const __m128i lower_ones = _mm_load_si128(reinterpret_cast<const __m128i*>(kShares.lower[kRow]));
    const __m128i above = _mm_load_si128(at(upper));
    const __m128i above_next = kAdd ? _mm_add_epi16(above, upper_ones) : _mm_sub_epi16(above, upper_ones);
    _mm_store_si128(at(upper), above_next);
    const __m128i below = _mm_load_si128(at(lower));  // after the store: both may be one bin
    const __m128i below_next = kAdd ? _mm_add_epi16(below, lower_ones) : _mm_sub_epi16(below, lower_ones);
    _mm_store_si128(at(lower), below_next);
    const __m128i count = _mm_blend_epi16(kAdd ? below : below_next, kAdd ? above : above_next, kUpper);
    accumulate<kAdd>(lanes, steps<kSmallCounts>(lanes, count));
    if (kAdd && kSmallCounts) lanes.seen = _mm_or_si128(lanes.seen, count);
  }

  template <bool kAdd, bool kSmallCounts, int... kRow>
  HWY_INLINE void change_pairs(Lanes& lanes, const std::uint16_t* record,
                               std::integer_sequence<int, kRow...>) {
    const std::uint16_t* below = record + shape_.window;
    (change_pair<kAdd, kSmallCounts, kRow>(lanes, record[kRow], below[kRow]), ...);
  }

  template <bool kAdd, bool kSmallCounts, bool kPaired>
  HWY_INLINE void change(Lanes& lanes, const std::uint16_t* record) {
    if (kPaired) {
      change_pairs<kAdd, kSmallCounts>(lanes, record, std::make_integer_sequence<int, kRows - 1>());
      for (std::int64_t j = kRows - 1; j < shape_.window; ++j)
        change_all<kAdd, kSmallCounts>(lanes, record[j]);
      return;
    }
    for (std::int64_t j = shape_.first; j < shape_.last; ++j) {
      const __mmask8 mask = masks_[j];
      const __m128i minus = _mm_movm_epi16(mask);
      __m128i* const place = at(record[j]);
      const __m128i count = _mm_load_si128(place);
      const __m128i next = kAdd ? _mm_sub_epi16(count, minus) : _mm_add_epi16(count, minus);
      _mm_store_si128(place, next);
      accumulate<kAdd>(lanes, _mm512_maskz_mov_epi64(mask, steps<kSmallCounts>(lanes, kAdd ? count : next)));
      if (kAdd && kSmallCounts) lanes.seen = _mm_or_si128(lanes.seen, count);
    }
  }

  /// Windows centred at columns [from, to), or up to the one where a count has become large; returns where it ended.
  template <bool kSmallCounts, bool kPaired>
  HWY_NOINLINE std::int64_t move(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    Lanes lanes{sum_, _mm512_loadu_si512(table_.steps), _mm512_loadu_si512(table_.steps + kSmall / 2),
                _mm_setzero_si128()};
    const __m128i large = _mm_set1_epi16(static_cast<short>(~(kSmall - 1)));
    for (std::int64_t x = from; x < to; ++x) {
      if (const std::uint16_t* record = columns.entering(x))
        change<true, kSmallCounts, kPaired>(lanes, record);
      if (const std::uint16_t* record = columns.leaving(x))
        change<false, kSmallCounts, kPaired>(lanes, record);
      const bool still_small = !kSmallCounts || _mm_test_all_zeros(lanes.seen, large);
      if (HWY_UNLIKELY(!still_small)) {
        small_ = false;
        lanes.sum = sum_of_counts();
      }
      if (sums) _mm512_storeu_si512(sums + (x - columns.origin) * kRows, lanes.sum);
      if (!still_small) {
        to = x + 1;
        break;
      }
    }
    sum_ = lanes.sum;
    return to;
  }

  static HWY_INLINE __m128i ones() { return _mm_set1_epi16(1); }

  Vector sum_of_counts() const {
    Vector sum = _mm512_setzero_si512();
    for (const auto& counts : counts_) {
      const Vector index = _mm512_cvtepu16_epi64(_mm_load_si128(reinterpret_cast<const __m128i*>(counts)));
      sum = _mm512_add_epi64(sum, _mm512_i64gather_epi64(index, table_.sums, 8));
    }
    return sum;
  }

  alignas(64) std::uint16_t counts_[ops::kEntropyBins][kRows];
  __mmask8 masks_[ops::kEntropyLargestWindow + kRows];
  const SumTable<Sum> table_;
  Vector sum_;
  BlockShape shape_;
  bool small_, paired_;
};

/// The counts of a bin in sixteen windows: bytes where windows have fewer than 256 pixels.
template <class Count>
struct CountLanes;

template <>
struct CountLanes<std::uint8_t> {
  using Vector = __m128i;
  static HWY_INLINE Vector zero() { return _mm_setzero_si128(); }
  static HWY_INLINE Vector add(Vector a, Vector b) { return _mm_add_epi8(a, b); }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return _mm_sub_epi8(a, b); }
  static HWY_INLINE Vector or_and(Vector a, Vector b, Vector c) {
    return _mm_ternarylogic_epi64(a, b, c, 0xF8);
  }
  static HWY_INLINE __m512i index(Vector counts) { return _mm512_cvtepu8_epi32(counts); }
  template <int kLimit>
  static HWY_INLINE bool all_below(Vector counts) {
    return _mm_testz_si128(counts, _mm_set1_epi8(static_cast<char>(~(kLimit - 1)))) != 0;
  }
};

template <>
struct CountLanes<std::uint16_t> {
  using Vector = __m256i;
  static HWY_INLINE Vector zero() { return _mm256_setzero_si256(); }
  static HWY_INLINE Vector add(Vector a, Vector b) { return _mm256_add_epi16(a, b); }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return _mm256_sub_epi16(a, b); }
  static HWY_INLINE Vector or_and(Vector a, Vector b, Vector c) {
    return _mm256_ternarylogic_epi64(a, b, c, 0xF8);
  }
  static HWY_INLINE __m512i index(Vector counts) { return _mm512_cvtepu16_epi32(counts); }
  template <int kLimit>
  static HWY_INLINE bool all_below(Vector counts) {
    return _mm256_testz_si256(counts, _mm256_set1_epi16(static_cast<short>(~(kLimit - 1)))) != 0;
  }
};

/// Coarse sums of sixteen windows. Of the rows j, j + W, j + 2W, ... each window holds one, so that they share one look-up.
template <class Count>
class CoarseHistogram {
 public:
  using Sum = std::int32_t;
  static constexpr std::int64_t kRows = 16;
  static constexpr int kBinShift = sizeof(Count) == 1 ? 4 : 5;

  explicit CoarseHistogram(const SumTable<Sum>& table) : table_(table) {}

  void begin(const BlockShape& shape) {
    window_ = shape.window;
    depth_ = shape.window + kRows - 1;
    std::memset(counts_, 0, sizeof(counts_));
    sum_ = _mm512_setzero_si512();
    small_ = true;
    for (std::int64_t j = 0; j < depth_; ++j) {
      for (std::int64_t r = 0; r < kRows; ++r) {
        const bool held =
            r < shape.rows && j >= std::max(r, shape.first) && j < std::min(r + window_, shape.last);
        held_[j][r] = static_cast<Count>(held ? -1 : 0);
      }
    }
  }

  void slide(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    if (small_) from = move<true>(columns, from, to, sums);
    if (!small_) move<false>(columns, from, to, sums);
  }

 private:
  using Lane = CountLanes<Count>;
  using Counts = typename Lane::Vector;
  static constexpr int kSmall = 32;  // entries of two registers

  /// What stays in registers.
  struct Lanes {
    __m512i sum, low, high;
    Counts seen;  // every count that was added to, one over the other
  };

  HWY_INLINE Counts* at(std::uint16_t entry) {
    return reinterpret_cast<Counts*>(reinterpret_cast<char*>(counts_) + entry);
  }

  /// Rows j, j + W, ...: kCount of them. A window that holds none of them finds step 0, which is 0.
  template <bool kAdd, bool kSmallCounts, int kCount>
  HWY_INLINE void change_rows(Lanes& lanes, const std::uint16_t* record, std::int64_t j) {
    Counts counts = Lane::zero();
    HWY_UNROLL(3)
    for (int n = 0; n < kCount; ++n, j += window_) {
      Counts* const place = at(record[j]);
      const Counts held = *reinterpret_cast<const Counts*>(held_[j]);
      const Counts count = *place;
      const Counts next = kAdd ? Lane::subtract(count, held) : Lane::add(count, held);
      *place = next;
      counts = Lane::or_and(counts, kAdd ? count : next, held);
    }
    if (kAdd && kSmallCounts) lanes.seen |= counts;
    const __m512i index = Lane::index(counts);
    const __m512i steps = kSmallCounts ? _mm512_permutex2var_epi32(lanes.low, index, lanes.high)
                                       : _mm512_i32gather_epi32(index, table_.steps, 4);
    lanes.sum = kAdd ? _mm512_add_epi32(lanes.sum, steps) : _mm512_sub_epi32(lanes.sum, steps);
  }

  /// From j = 0 on there are kCount rows j, j + W, ...; later one less.
  template <bool kAdd, bool kSmallCounts, int kCount>
  HWY_INLINE void change_classes(Lanes& lanes, const std::uint16_t* record) {
    std::int64_t j = 0;
    for (; j < depth_ - (kCount - 1) * window_; ++j)
      change_rows<kAdd, kSmallCounts, kCount>(lanes, record, j);
    for (; j < window_; ++j) change_rows<kAdd, kSmallCounts, kCount - 1>(lanes, record, j);
  }

  template <bool kAdd, bool kSmallCounts>
  HWY_INLINE void change(Lanes& lanes, const std::uint16_t* record) {
    if (window_ >= kRows - 1) return change_classes<kAdd, kSmallCounts, 2>(lanes, record);
    if (2 * window_ >= kRows - 1) return change_classes<kAdd, kSmallCounts, 3>(lanes, record);
    for (std::int64_t j = 0; j < depth_; ++j) change_rows<kAdd, kSmallCounts, 1>(lanes, record, j);
  }

  /// Windows centred at columns [from, to), or up to the one where a count has become large; returns where it ended.
  template <bool kSmallCounts>
  HWY_NOINLINE std::int64_t move(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    Lanes lanes{sum_, _mm512_loadu_si512(table_.steps), _mm512_loadu_si512(table_.steps + kSmall / 2),
                Lane::zero()};
    for (std::int64_t x = from; x < to; ++x) {
      if (const std::uint16_t* record = columns.entering(x)) change<true, kSmallCounts>(lanes, record);
      if (const std::uint16_t* record = columns.leaving(x)) change<false, kSmallCounts>(lanes, record);
      const bool still_small = !kSmallCounts || Lane::template all_below<kSmall>(lanes.seen);
      if (HWY_UNLIKELY(!still_small)) {
        small_ = false;
        lanes.sum = sum_of_counts();
        to = x + 1;
      }
      if (sums) _mm512_storeu_si512(sums + (x - columns.origin) * kRows, lanes.sum);
    }
    sum_ = lanes.sum;
    return to;
  }

  __m512i sum_of_counts() const {
    __m512i sum = _mm512_setzero_si512();
    for (const auto& counts : counts_) {
      const __m512i index = Lane::index(*reinterpret_cast<const Counts*>(counts));
      sum = _mm512_add_epi32(sum, _mm512_i32gather_epi32(index, table_.sums, 4));
    }
    return sum;
  }

  alignas(64) Count counts_[ops::kEntropyBins][kRows];
  alignas(64)
      std::uint16_t held_[ops::kEntropyLargestWindow + kRows][kRows];  // all bits: the window holds the row
  const SumTable<Sum> table_;
  __m512i sum_;
  std::int64_t window_, depth_;
  bool small_;
};

#else

template <class SumType>
class PlainHistogram {
 public:
  using Sum = SumType;
  static constexpr std::int64_t kRows = 8;
  static constexpr int kBinShift = 0;

  explicit PlainHistogram(const SumTable<Sum>& table) : table_(table) {}

  void begin(const BlockShape& shape) {
    shape_ = shape;
    std::memset(counts_, 0, sizeof(counts_));
    std::memset(sums_, 0, sizeof(sums_));
  }

  void slide(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    for (std::int64_t x = from; x < to; ++x) {
      const std::uint16_t* entering = columns.entering(x);
      const std::uint16_t* leaving = columns.leaving(x);
      for (std::int64_t r = 0; r < shape_.rows; ++r) {
        const std::int64_t first = std::max(r, shape_.first), last = std::min(r + shape_.window, shape_.last);
        Sum sum = sums_[r];
        for (std::int64_t j = first; entering && j < last; ++j)
          sum += table_.steps[counts_[r][entering[j]]++];
        for (std::int64_t j = first; leaving && j < last; ++j) sum -= table_.steps[--counts_[r][leaving[j]]];
        sums_[r] = sum;
      }
      if (sums) std::memcpy(sums + (x - columns.origin) * kRows, sums_, sizeof(sums_));
    }
  }

 private:
  std::uint16_t counts_[kRows][ops::kEntropyBins];
  Sum sums_[kRows];
  const SumTable<Sum> table_;
  BlockShape shape_;
};

using ExactHistogram = PlainHistogram<std::int64_t>;
template <class Count>
using CoarseHistogram = PlainHistogram<std::int32_t>;

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
