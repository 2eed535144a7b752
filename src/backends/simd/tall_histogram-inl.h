// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms of the windows of sixteen rows of outputs, for whom sums of T in 16 bits will do: twice the rows of
// histogram-inl.h in vectors of the same width, with counts in bytes, for windows of at most 127 pixels. Rows of a record
// that lie W apart are in no window together, and each window holds one of them; so the rows j, j + W, j + 2W, ... share
// one look-up, W of them for a record, and a window that the border of the image cuts looks up the step of a count of 0,
// which is 0.
// With AVX-512 only. Included once per instruction set.
#include "backends/simd/histogram-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_TALL_HISTOGRAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_TALL_HISTOGRAM_INL_H_
#undef FULCRUM_BACKENDS_SIMD_TALL_HISTOGRAM_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_TALL_HISTOGRAM_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

class TallHistogram {
 public:
  using Sum = std::uint16_t;
  static constexpr std::int64_t kRows = 2 * kBlockRows;
  static constexpr std::int64_t kStepEntries = 128;  // more than a window has pixels
  static_assert(kLargestTallWindow * kLargestTallWindow < kStepEntries);

  /// Differences of neighbouring entries of what the sums are sums of, the first of them 0.
  explicit TallHistogram(const Sum* steps) : steps_(steps) {}

  void begin(const BlockShape& shape) {
    shape_ = shape;
    std::memset(counts_, 0, sizeof(counts_));
    std::memset(held_, 0, sizeof(held_));
    for (std::int64_t j = shape.first; j < shape.last; ++j) {
      for (std::int64_t r = 0; r < kRows; ++r) held_[j][r] = j >= r && j < r + shape.window ? 0xFF : 0;
    }
    sum_ = _mm256_setzero_si256();
    few_ = true;
  }

  void slide(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    while (from < to) {
      if (few_) {
        from = slide_windows<true>(columns, from, to, sums);
        continue;
      }
      const std::int64_t until = std::min(from + kLargeColumns, to);
      from = slide_windows<false>(columns, from, until, sums);
      few_ = !any_large();
    }
  }

 private:
  static constexpr std::int64_t kMostRows = kLargestTallWindow + kRows - 1;  // of a record
  static constexpr int kFew = 16;                    // counts below it are looked up in one register
  static constexpr std::int64_t kLargeColumns = 16;  // with four, before counts are looked through again

  /// What stays in registers: the table, and which windows hold each row of a record.
  template <bool kIsFew, int kWindow>
  struct Lanes {
    static constexpr int kTables = kIsFew ? 1 : 4;
    static constexpr int kHeld = kWindow > 0 ? kWindow + static_cast<int>(kRows) - 1 : 1;
    __m256i sum;
    __m128i seen;  // every count that was added to, one over the other
    __m512i table[kTables];
    __m128i held[kHeld];

    HWY_INLINE __m256i steps(__m128i bytes) const {
      const __m256i counts = _mm256_cvtepu8_epi16(bytes);
      if constexpr (kIsFew) {
        return _mm256_permutexvar_epi16(counts, _mm512_castsi512_si256(table[0]));
      } else {
        const __m512i index = _mm512_castsi256_si512(counts);
        const __m512i low = _mm512_permutex2var_epi16(table[0], index, table[1]);
        const __m512i high = _mm512_permutex2var_epi16(table[2], index, table[3]);
        const __mmask16 is_high = _mm256_test_epi16_mask(counts, _mm256_set1_epi16(64));
        return _mm256_mask_mov_epi16(_mm512_castsi512_si256(low), is_high, _mm512_castsi512_si256(high));
      }
    }
  };

  HWY_INLINE __m128i* at(std::size_t entry) {
    return reinterpret_cast<__m128i*>(reinterpret_cast<char*>(counts_) + entry);
  }
  /// What is made of it is made here, and not once for all columns.
  static HWY_INLINE __m128i anew(__m128i v) {
    asm volatile("" : "+v"(v));
    return v;
  }
  HWY_INLINE __m128i held(std::int64_t row) const {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(held_[row]));
  }

  /// One more pixel, or one less, in the windows that hold its row; their counts without it go to `counts`, beside those
  /// of the rows before.
  template <bool kAdd, bool kFirst>
  HWY_INLINE void change_row(std::uint16_t entry, __m128i held, __m128i& counts) {
    __m128i* const place = at(entry);
    const __m128i count = _mm_load_si128(place);
    const __m128i next = kAdd ? _mm_sub_epi8(count, held) : _mm_add_epi8(count, held);
    _mm_store_si128(place, next);
    constexpr int kOrAnd = 0xF8;  // a | (b & c)
    const __m128i without = kAdd ? count : next;
    counts = kFirst ? _mm_and_si128(without, held) : _mm_ternarylogic_epi32(counts, without, held, kOrAnd);
  }

  /// Rows c, c + W, ... of a record. Where three rows of them, or two, hold all windows, those of the second are the ones
  /// that the others leave. With all of them in registers some would be kept on the stack, among the stores to counts: of
  /// 96 threads that tried it nine took half as long again as the others, and kept to it.
  template <bool kAdd, int kWindow, int kClass, class Kept>
  HWY_INLINE void change_class(Kept& lanes, const std::uint16_t* record) {
    constexpr int kOfClass = (kWindow + static_cast<int>(kRows) - 2 - kClass) / kWindow + 1;
    constexpr bool kDerived = kOfClass <= 3;
    constexpr int kNeither = 0x03;  // ~(a | b)
    const __m128i first = lanes.held[kClass];
    __m128i counts;
    change_row<kAdd, true>(record[kClass], first, counts);
    HWY_UNROLL(5)
    for (int i = 1; i < kOfClass; ++i) {
      const int row = kClass + i * kWindow;
      __m128i held = lanes.held[row];
      if (kDerived && i == 1) {
        const __m128i last = kOfClass == 3 ? lanes.held[kClass + 2 * kWindow] : first;
        held = _mm_ternarylogic_epi32(anew(first), last, last, kNeither);
      }
      change_row<kAdd, false>(record[row], held, counts);
    }
    add_steps<kAdd>(lanes, counts);
  }

  template <bool kAdd, class Kept>
  static HWY_INLINE void add_steps(Kept& lanes, __m128i counts) {
    const __m256i steps = lanes.steps(counts);
    lanes.sum = kAdd ? _mm256_add_epi16(lanes.sum, steps) : _mm256_sub_epi16(lanes.sum, steps);
    if (kAdd && Kept::kTables == 1) lanes.seen = anew(_mm_or_si128(lanes.seen, counts));
  }

  template <bool kAdd, int kWindow, class Kept, int... kClass>
  HWY_INLINE void change_classes(Kept& lanes, const std::uint16_t* record,
                                 std::integer_sequence<int, kClass...>) {
    (change_class<kAdd, kWindow, kClass>(lanes, record), ...);
  }

  template <bool kAdd, bool kIsFew, int kWindow>
  HWY_INLINE void change(Lanes<kIsFew, kWindow>& lanes, const std::uint16_t* record) {
    if constexpr (kWindow > 0) {
      change_classes<kAdd, kWindow>(lanes, record, std::make_integer_sequence<int, kWindow>());
    } else {
      for (std::int64_t c = 0; c < shape_.window; ++c) {
        __m128i counts;
        change_row<kAdd, true>(record[c], held(c), counts);
        for (std::int64_t j = c + shape_.window; j < shape_.window + kRows - 1; j += shape_.window)
          change_row<kAdd, false>(record[j], held(j), counts);
        add_steps<kAdd>(lanes, counts);
      }
    }
  }

  template <bool kIsFew>
  std::int64_t slide_windows(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    const bool whole = shape_.first == 0 && shape_.last >= shape_.window + kRows - 1;
    switch (whole ? shape_.window : 0) {
      case 3:
        return move<kIsFew, 3>(columns, from, to, sums);
      case 8:
        return move<kIsFew, 8>(columns, from, to, sums);
      case 9:
        return move<kIsFew, 9>(columns, from, to, sums);
      default:
        return move<kIsFew, 0>(columns, from, to, sums);
    }
  }

  /// Windows centred at columns [from, to), or up to the one where counts are no longer few; returns where it ended.
  template <bool kIsFew, int kWindow>
  HWY_NOINLINE std::int64_t move(const Columns& columns, std::int64_t from, std::int64_t to, Sum* sums) {
    Lanes<kIsFew, kWindow> lanes;
    lanes.sum = sum_;
    lanes.seen = _mm_setzero_si128();
    HWY_UNROLL(4)
    for (int i = 0; i < lanes.kTables; ++i) lanes.table[i] = _mm512_loadu_si512(steps_ + 32 * i);
    HWY_UNROLL(24)
    for (int j = 0; kWindow > 0 && j < lanes.kHeld; ++j) lanes.held[j] = held(j);
    const __m128i large = _mm_set1_epi8(static_cast<char>(~(kFew - 1)));
    std::int64_t x = from;
    for (; x < to; ++x) {
      const std::uint16_t* const entering = columns.entering(x);
      const std::uint16_t* const leaving = columns.leaving(x);
      if (!entering || !leaving || !same_records(entering, leaving, columns.depth)) {
        const __m256i before = lanes.sum;
        if (entering) change<true>(lanes, entering);
        if (leaving) change<false>(lanes, leaving);
        if (kIsFew && HWY_UNLIKELY(!_mm_test_all_zeros(lanes.seen, large))) {
          // Steps of so large counts were not to be had: back to the column before.
          if (leaving) change<true>(lanes, leaving);
          if (entering) change<false>(lanes, entering);
          lanes.sum = before;
          few_ = false;
          break;
        }
      }
      if (sums)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + (x - columns.origin) * kRows), lanes.sum);
    }
    sum_ = lanes.sum;
    return x;
  }

  bool any_large() const {
    __m512i seen = _mm512_setzero_si512();
    for (const auto* at = &counts_[0][0]; at < &counts_[0][0] + ops::kEntropyBins * kRows; at += 64)
      seen = _mm512_or_si512(seen, _mm512_load_si512(at));
    return _mm512_test_epi8_mask(seen, _mm512_set1_epi8(static_cast<char>(~(kFew - 1)))) != 0;
  }

  alignas(64) std::uint8_t counts_[ops::kEntropyBins][kRows];
  alignas(64) std::uint8_t held_[kMostRows][kRows];  // all ones where a window holds a row of the record
  const Sum* steps_;
  __m256i sum_;
  BlockShape shape_;
  bool few_;
};

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
