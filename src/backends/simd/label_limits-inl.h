// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// On which side of three limits the sums of a block's windows are, a bit a row; and from the bits of columns to the
// labels of rows. Included once per instruction set.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/simd/entropy-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_LABEL_LIMITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_LABEL_LIMITS_INL_H_
#undef FULCRUM_BACKENDS_SIMD_LABEL_LIMITS_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_LABEL_LIMITS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// A limit in coarse sums, for each row of a block: below `sure` the exact sum is within it, from `maybe` on it is not.
template <class Sum>
struct CoarseLimit {
  static constexpr std::int64_t kRows = std::is_same_v<Sum, std::uint16_t> ? 2 * kBlockRows : kBlockRows;
  Sum sure[kRows], maybe[kRows];
};

/// For each column of a chunk a bit a row: whether its sum is within the limit.
template <class Bits>
struct ColumnBits {
  alignas(64) Bits high[kChunk], middle[kChunk], low[kChunk];
};

#if HWY_TARGET == HWY_AVX3

/// A block's sums in one vector of 256 bits, those of two columns in one of 512.
template <class Sum>
struct LimitLanes;

template <>
struct LimitLanes<std::int32_t> {
  using Bits = std::uint8_t;
  static HWY_INLINE Bits below(__m256i a, __m256i b) { return _mm256_cmplt_epi32_mask(a, b); }
  static HWY_INLINE std::uint16_t below(__m512i a, __m512i b) { return _mm512_cmplt_epi32_mask(a, b); }

  /// Which of 64 columns show the row's bit.
  static HWY_INLINE __mmask64 show(const Bits* columns, std::int64_t row) {
    return _mm512_test_epi8_mask(_mm512_load_si512(columns), _mm512_set1_epi8(static_cast<char>(1 << row)));
  }
};

template <>
struct LimitLanes<std::uint16_t> {
  using Bits = std::uint16_t;
  static HWY_INLINE Bits below(__m256i a, __m256i b) { return _mm256_cmplt_epu16_mask(a, b); }
  static HWY_INLINE std::uint32_t below(__m512i a, __m512i b) { return _mm512_cmplt_epu16_mask(a, b); }

  static HWY_INLINE __mmask64 show(const Bits* columns, std::int64_t row) {
    const __m512i bit = _mm512_set1_epi16(static_cast<short>(1 << row));
    return _mm512_kunpackd(_mm512_test_epi16_mask(_mm512_load_si512(columns + kChunk / 2), bit),
                           _mm512_test_epi16_mask(_mm512_load_si512(columns), bit));
  }
};

template <class Sum>
struct Limits {
  using Lane = LimitLanes<Sum>;
  using Bits = typename Lane::Bits;
  static constexpr std::int64_t kRows = CoarseLimit<Sum>::kRows;
  struct Pair {
    __m256i sure, maybe;
    explicit HWY_INLINE Pair(const CoarseLimit<Sum>& limit)
        : sure(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(limit.sure))),
          maybe(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(limit.maybe))) {}
  };
  Pair high, middle, low;

  HWY_INLINE Limits(const CoarseLimit<Sum>& h, const CoarseLimit<Sum>& m, const CoarseLimit<Sum>& l)
      : high(h), middle(m), low(l) {}

  static HWY_INLINE int within(const Pair& pair, __m256i sum, Bits& bits) {
    bits = Lane::below(sum, pair.sure);
    return bits ^ Lane::below(sum, pair.maybe);
  }
  static HWY_INLINE std::uint32_t within_two(const Pair& pair, __m512i sum, Bits* bits) {
    const auto sure = Lane::below(sum, _mm512_broadcast_i32x8(pair.sure));
    static_assert(sizeof(sure) == 2 * sizeof(Bits));
    std::memcpy(bits, &sure, sizeof(sure));
    return sure ^ Lane::below(sum, _mm512_broadcast_i32x8(pair.maybe));
  }
  /// Fills the bits of a column; returns the rows that the coarse sum leaves open.
  HWY_INLINE int classify(const Sum* sums, ColumnBits<Bits>& bits, std::int64_t at) const {
    const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    return within(high, sum, bits.high[at]) | within(middle, sum, bits.middle[at]) |
           within(low, sum, bits.low[at]);
  }
  /// The same for two columns that stand side by side; the second one's rows follow the first one's.
  HWY_INLINE std::uint32_t classify_two(const Sum* sums, ColumnBits<Bits>& bits, std::int64_t at) const {
    const __m512i sum = _mm512_loadu_si512(sums);
    return within_two(high, sum, bits.high + at) | within_two(middle, sum, bits.middle + at) |
           within_two(low, sum, bits.low + at);
  }

  /// Labels of row r: 64 columns at once, each of which shows its bit.
  static void pick(std::int64_t r, const ColumnBits<Bits>& bits, std::uint8_t* to, std::int64_t count) {
    static_assert(kChunk == 64);
    const __mmask64 columns = count == kChunk ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
    __m512i label = _mm512_maskz_set1_epi8(Lane::show(bits.low, r), 3);
    label = _mm512_mask_mov_epi8(label, Lane::show(bits.middle, r), _mm512_set1_epi8(2));
    label = _mm512_mask_mov_epi8(label, Lane::show(bits.high, r), _mm512_set1_epi8(1));
    _mm512_mask_storeu_epi8(to, columns, label);
  }
};

#else

template <class Sum>
struct Limits {
  using Bits = std::uint8_t;
  static constexpr std::int64_t kRows = CoarseLimit<Sum>::kRows;
  const CoarseLimit<Sum>& high;
  const CoarseLimit<Sum>& middle;
  const CoarseLimit<Sum>& low;

  HWY_INLINE Limits(const CoarseLimit<Sum>& h, const CoarseLimit<Sum>& m, const CoarseLimit<Sum>& l)
      : high(h), middle(m), low(l) {}

  static HWY_INLINE int below(const Sum* sums, const Sum* limits) {
    int rows = 0;
    for (int r = 0; r < kRows; ++r) rows |= static_cast<int>(sums[r] < limits[r]) << r;
    return rows;
  }
  static HWY_INLINE int within(const CoarseLimit<Sum>& limit, const Sum* sums, Bits& bits) {
    const int sure = below(sums, limit.sure);
    bits = static_cast<Bits>(sure);
    return sure ^ below(sums, limit.maybe);
  }
  HWY_INLINE int classify(const Sum* sums, ColumnBits<Bits>& bits, std::int64_t at) const {
    return within(high, sums, bits.high[at]) | within(middle, sums, bits.middle[at]) |
           within(low, sums, bits.low[at]);
  }

  static void pick(std::int64_t r, const ColumnBits<Bits>& bits, std::uint8_t* to, std::int64_t count) {
    const int bit = 1 << r;
    for (std::int64_t x = 0; x < count; ++x) {
      to[x] = (bits.high[x] & bit) != 0     ? 1
              : (bits.middle[x] & bit) != 0 ? 2
              : (bits.low[x] & bit) != 0    ? 3
                                            : 0;
    }
  }
};

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
