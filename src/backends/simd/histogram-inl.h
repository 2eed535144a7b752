// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms of the windows of eight rows of outputs that stand one below the other, slid along a row together. The
// eight windows read W + 7 image rows; column x of those rows is a record, and adding or removing a record changes the
// counts of each pixel's bin in the windows that hold it. Included once per instruction set.
//
// Sums are T's own int64, or int32 where a coarser table will do. With AVX-512 the eight counts of a bin are one vector,
// the eight sums are another one, and the table's steps for counts below 16 are two registers. Rows j < 7 and j + W are
// in complementary sets of windows, so that they share one look-up: W look-ups for a record instead of eight times W.
// While counts up to 63 are in sight, they are eight registers, and beyond that gathered from memory. Where the record
// that enters is the one that leaves, nothing changes. Elsewhere each window is a plain histogram.
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

inline constexpr std::int64_t kBlockRows = ops::kEntropyPieceRows;  // windows of a block
inline constexpr int kBinShift = 4;  // entries of a record are bins times the bytes of their counts

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

/// The steps of a table have so many entries at least, which may be kept in registers.
inline constexpr std::int64_t kStepsAtHand = 64;
/// The largest window that sixteen rows of outputs can share a pass with: see tall_histogram-inl.h.
inline constexpr std::int64_t kLargestTallWindow = 11;

/// What is counted: windows of width `window`, rows [first, last) of a record inside the image.
struct BlockShape {
  std::int64_t window, rows, first, last;
};

#if HWY_TARGET == HWY_AVX3

/// Eight sums in one vector, and look-ups in a table of 16 steps in two.
template <class Sum>
struct SumLanes;

template <>
struct SumLanes<std::int64_t> {
  using Vector = __m512i;
  static HWY_INLINE Vector load(const std::int64_t* from) { return _mm512_loadu_si512(from); }
  static HWY_INLINE void store(std::int64_t* to, Vector v) { _mm512_storeu_si512(to, v); }
  static HWY_INLINE Vector zero() { return _mm512_setzero_si512(); }
  static HWY_INLINE Vector index(__m128i counts) { return _mm512_cvtepu16_epi64(counts); }
  static HWY_INLINE Vector look_up(Vector low, Vector index, Vector high) {
    return _mm512_permutex2var_epi64(low, index, high);
  }
  static HWY_INLINE Vector gather(const std::int64_t* table, Vector index) {
    return _mm512_i64gather_epi64(index, table, 8);
  }
  static HWY_INLINE Vector add(Vector a, Vector b) { return _mm512_add_epi64(a, b); }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return _mm512_sub_epi64(a, b); }
  static HWY_INLINE Vector where(__mmask8 mask, Vector v) { return _mm512_maskz_mov_epi64(mask, v); }
  static HWY_INLINE Vector choose(Vector index, int bit, Vector without, Vector with) {
    return _mm512_mask_mov_epi64(without, _mm512_test_epi64_mask(index, _mm512_set1_epi64(bit)), with);
  }
};

template <>
struct SumLanes<std::int32_t> {
  using Vector = __m256i;
  static HWY_INLINE Vector load(const std::int32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static HWY_INLINE void store(std::int32_t* to, Vector v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
  }
  static HWY_INLINE Vector zero() { return _mm256_setzero_si256(); }
  static HWY_INLINE Vector index(__m128i counts) { return _mm256_cvtepu16_epi32(counts); }
  static HWY_INLINE Vector look_up(Vector low, Vector index, Vector high) {
    return _mm256_permutex2var_epi32(low, index, high);
  }
  static HWY_INLINE Vector gather(const std::int32_t* table, Vector index) {
    return _mm256_i32gather_epi32(table, index, 4);
  }
  static HWY_INLINE Vector add(Vector a, Vector b) { return _mm256_add_epi32(a, b); }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return _mm256_sub_epi32(a, b); }
  static HWY_INLINE Vector where(__mmask8 mask, Vector v) { return _mm256_maskz_mov_epi32(mask, v); }
  static HWY_INLINE Vector choose(Vector index, int bit, Vector without, Vector with) {
    return _mm256_mask_mov_epi32(without, _mm256_test_epi32_mask(index, _mm256_set1_epi32(bit)), with);
  }
};

/// Which windows hold row j < 7 (1) and which the row W below it; in memory, as there are more of them than registers.
struct Shares {
  alignas(16) std::uint16_t upper[kBlockRows][kBlockRows], lower[kBlockRows][kBlockRows];
  constexpr Shares() : upper(), lower() {
    for (int j = 0; j < kBlockRows; ++j) {
      for (int r = 0; r < kBlockRows; ++r) (r <= j ? upper : lower)[j][r] = 1;
    }
  }
};
inline constexpr Shares kShares;

HWY_INLINE bool same_records(const std::uint16_t* a, const std::uint16_t* b, std::int64_t depth) {
  __m128i differing = _mm_setzero_si128();
  for (std::int64_t j = 0; j < depth; j += kBlockRows) {
    const auto one = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a + j));
    const auto other = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + j));
    differing = _mm_or_si128(differing, _mm_xor_si128(one, other));
  }
  return _mm_test_all_zeros(differing, differing);
}

template <class Of>
class BlockHistogram {
 public:
  using Sum = Of;
  static constexpr std::int64_t kRows = kBlockRows;
  static constexpr std::int64_t kStepEntries = kStepsAtHand;  // at least

  /// Differences of neighbouring entries of what the sums are sums of.
  explicit BlockHistogram(const Sum* steps) : steps_(steps) {}

  void begin(const BlockShape& shape) {
    shape_ = shape;
    std::memset(counts_, 0, sizeof(counts_));
    sum_ = Lane::zero();
    counts_below_ = kFew;
    paired_ = shape.window >= kBlockRows && shape.rows == kBlockRows && shape.first == 0 &&
              shape.last >= shape.window + kBlockRows - 1;
    for (std::int64_t j = shape.first; j < shape.last; ++j) {
      int mask = 0;
      for (std::int64_t r = 0; r < shape.rows; ++r) mask |= (j >= r && j < r + shape.window) ? 1 << r : 0;
      masks_[j] = static_cast<__mmask8>(mask);
    }
  }

  void slide(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    while (from < to) {
      if (counts_below_ == kFew) {
        from = slide_below<kFew>(columns, from, to, sums);
        continue;
      }
      const std::int64_t until = std::min(from + kLargeColumns, to);
      from = counts_below_ == kSome ? slide_below<kSome>(columns, from, until, sums)
                                    : slide_below<kAny>(columns, from, until, sums);
      if (from == until) counts_below_ = limit_of_counts();
    }
  }

 private:
  using Lane = SumLanes<Sum>;
  using Vector = typename Lane::Vector;
  // Limits of counts: entries of two registers and of eight, and none.
  static constexpr int kFew = 16, kSome = kStepsAtHand, kAny = 1 << 16;
  static constexpr std::int64_t kLargeColumns = 16;  // with gathers, before counts are looked through again

  /// What stays in registers.
  template <int kBelow>
  struct Lanes {
    static constexpr int kTables = kBelow == kSome ? 8 : 2;
    Vector sum;
    __m128i seen;  // every count that was added to, one over the other
    Vector table[kTables];
  };

  template <int kBelow>
  HWY_INLINE Vector steps(const Lanes<kBelow>& lanes, __m128i counts) const {
    const Vector index = Lane::index(counts);
    if constexpr (kBelow == kAny) return Lane::gather(steps_, index);
    const auto look_up = [&](int at) { return Lane::look_up(lanes.table[at], index, lanes.table[at + 1]); };
    if constexpr (kBelow == kFew) return look_up(0);
    if constexpr (kBelow == kSome) {
      return Lane::choose(index, 32, Lane::choose(index, 16, look_up(0), look_up(2)),
                          Lane::choose(index, 16, look_up(4), look_up(6)));
    }
  }

  template <bool kAdd, int kBelow>
  static HWY_INLINE void accumulate(Lanes<kBelow>& lanes, Vector steps) {
    lanes.sum = kAdd ? Lane::add(lanes.sum, steps) : Lane::subtract(lanes.sum, steps);
  }

  HWY_INLINE __m128i* at(std::uint16_t entry) {
    return reinterpret_cast<__m128i*>(reinterpret_cast<char*>(counts_) + entry);
  }

  /// A row that all windows hold.
  template <bool kAdd, int kBelow>
  HWY_INLINE void change_all(Lanes<kBelow>& lanes, std::uint16_t entry) {
    __m128i* const place = at(entry);
    const __m128i count = _mm_load_si128(place);
    const __m128i next = kAdd ? _mm_add_epi16(count, ones()) : _mm_sub_epi16(count, ones());
    _mm_store_si128(place, next);
    accumulate<kAdd>(lanes, steps(lanes, kAdd ? count : next));
    if (kAdd && kBelow != kAny) lanes.seen = _mm_or_si128(lanes.seen, count);
  }

  /// Row kRow, held by windows up to kRow, and the one W below it, held by the others.
  template <bool kAdd, int kBelow, int kRow>
  HWY_INLINE void change_pair(Lanes<kBelow>& lanes, std::uint16_t upper, std::uint16_t lower) {
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
    accumulate<kAdd>(lanes, steps(lanes, count));
    if (kAdd && kBelow != kAny) lanes.seen = _mm_or_si128(lanes.seen, count);
  }

  template <bool kAdd, int kBelow, int... kRow>
  HWY_INLINE void change_pairs(Lanes<kBelow>& lanes, const std::uint16_t* record,
                               std::integer_sequence<int, kRow...>) {
    const std::uint16_t* below = record + shape_.window;
    (change_pair<kAdd, kBelow, kRow>(lanes, record[kRow], below[kRow]), ...);
  }

  template <bool kAdd, int kBelow, bool kPaired>
  HWY_INLINE void change(Lanes<kBelow>& lanes, const std::uint16_t* record) {
    if (kPaired) {
      change_pairs<kAdd>(lanes, record, std::make_integer_sequence<int, kBlockRows - 1>());
      for (std::int64_t j = kBlockRows - 1; j < shape_.window; ++j) change_all<kAdd>(lanes, record[j]);
      return;
    }
    for (std::int64_t j = shape_.first; j < shape_.last; ++j) {
      const __mmask8 mask = masks_[j];
      const __m128i minus = _mm_movm_epi16(mask);
      __m128i* const place = at(record[j]);
      const __m128i count = _mm_load_si128(place);
      const __m128i next = kAdd ? _mm_sub_epi16(count, minus) : _mm_add_epi16(count, minus);
      _mm_store_si128(place, next);
      accumulate<kAdd>(lanes, Lane::where(mask, steps(lanes, kAdd ? count : next)));
      if (kAdd && kBelow != kAny) lanes.seen = _mm_or_si128(lanes.seen, count);
    }
  }

  template <int kBelow>
  std::int64_t slide_below(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    return paired_ ? move<kBelow, true>(columns, from, to, sums)
                   : move<kBelow, false>(columns, from, to, sums);
  }

  /// Windows centred at columns [from, to), or up to the one where a count reaches kBelow; returns where it ended.
  template <int kBelow, bool kPaired>
  HWY_NOINLINE std::int64_t move(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    Lanes<kBelow> lanes;
    lanes.sum = sum_;
    lanes.seen = _mm_setzero_si128();
    HWY_UNROLL(8)
    for (int i = 0; i < lanes.kTables; ++i) lanes.table[i] = Lane::load(steps_ + i * kBlockRows);
    const __m128i large = _mm_set1_epi16(static_cast<short>(~(kBelow - 1)));
    std::int64_t x = from;
    for (; x < to; ++x) {
      const std::uint16_t* const entering = columns.entering(x);
      const std::uint16_t* const leaving = columns.leaving(x);
      if (!entering || !leaving || !same_records(entering, leaving, columns.depth)) {
        const Vector before = lanes.sum;
        if (entering) change<true, kBelow, kPaired>(lanes, entering);
        if (leaving) change<false, kBelow, kPaired>(lanes, leaving);
        if (kBelow != kAny && HWY_UNLIKELY(!_mm_test_all_zeros(lanes.seen, large))) {
          // Steps of so large counts were not to be had: back to the column before.
          if (leaving) change<true, kBelow, kPaired>(lanes, leaving);
          if (entering) change<false, kBelow, kPaired>(lanes, entering);
          lanes.sum = before;
          counts_below_ = kBelow == kFew ? kSome : kAny;
          break;
        }
      }
      if (sums) Lane::store(sums + (x - columns.origin) * kBlockRows, lanes.sum);
    }
    sum_ = lanes.sum;
    return x;
  }

  int limit_of_counts() const {
    __m512i seen = _mm512_setzero_si512();
    for (const auto* at = &counts_[0][0]; at < &counts_[0][0] + ops::kEntropyBins * kBlockRows; at += 32)
      seen = _mm512_or_si512(seen, _mm512_load_si512(at));
    const auto reaches = [seen](int limit) {
      return _mm512_test_epi16_mask(seen, _mm512_set1_epi16(static_cast<short>(~(limit - 1)))) != 0;
    };
    return !reaches(kFew) ? kFew : !reaches(kSome) ? kSome : kAny;
  }

  static HWY_INLINE __m128i ones() { return _mm_set1_epi16(1); }

  alignas(64) std::uint16_t counts_[ops::kEntropyBins][kBlockRows];
  __mmask8 masks_[ops::kEntropyLargestWindow + kBlockRows];
  const Sum* steps_;
  Vector sum_;
  BlockShape shape_;
  int counts_below_;
  bool paired_;
};

#else

template <class Of>
class BlockHistogram {
 public:
  using Sum = Of;
  static constexpr std::int64_t kRows = kBlockRows;
  static constexpr std::int64_t kStepEntries = kStepsAtHand;  // at least

  explicit BlockHistogram(const Sum* steps) : steps_(steps) {}

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
          sum += steps_[counts_[r][entering[j] >> kBinShift]++];
        for (std::int64_t j = first; leaving && j < last; ++j)
          sum -= steps_[--counts_[r][leaving[j] >> kBinShift]];
        sums_[r] = sum;
      }
      if (sums) std::memcpy(sums + (x - columns.origin) * kBlockRows, sums_, sizeof(sums_));
    }
  }

 private:
  std::uint16_t counts_[kBlockRows][ops::kEntropyBins];
  Sum sums_[kBlockRows];
  const Sum* steps_;
  BlockShape shape_;
};

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
