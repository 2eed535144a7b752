// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From sums of T to labels that have voted, for the fused pipeline. For a window of n pixels the entropy falls as the
// sum rises, so "entropy above a threshold" is "sum at most a limit", and no entropy is computed. Sums of a table with
// fewer bits tell nearly all windows on which side they are; the others are counted anew with the exact table.
// Included once per instruction set.
#include <fulcrum/ops/conv_entropy_segment.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/simd/entropy-inl.h"
#include "backends/simd/segment-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_LABEL_SINK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_LABEL_SINK_INL_H_
#undef FULCRUM_BACKENDS_SIMD_LABEL_SINK_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_LABEL_SINK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// The largest sums with labels 1, at most 2 and at most 3; -1: no window of this size has it.
struct LabelLimits {
  std::int64_t high, middle, low;
};

/// The largest sum whose entropy is above the threshold: where it rounds to the next float, or a step or two beside it.
inline std::int64_t limit_of(std::int64_t pixels, float threshold) {
  if (!(ops::entropy_of(pixels, 0) > threshold)) return -1;
  const double next = std::nextafter(threshold, std::numeric_limits<float>::infinity());
  const std::int64_t whole = ops::entropy_table()[pixels];
  const double turn = (threshold + next) / 2 * static_cast<double>(pixels) * 0x1p32;
  std::int64_t sum = std::clamp<std::int64_t>(whole - static_cast<std::int64_t>(turn), 0, whole);
  while (sum > 0 && !(ops::entropy_of(pixels, sum) > threshold)) --sum;
  while (sum < whole && ops::entropy_of(pixels, sum + 1) > threshold) ++sum;
  return sum;
}

inline LabelLimits limits_of(std::int64_t pixels, const ops::SegmentThresholds& thresholds) {
  return LabelLimits{limit_of(pixels, thresholds.high), limit_of(pixels, thresholds.middle),
                     limit_of(pixels, thresholds.low)};
}

/// The limits in coarse sums: up to `sure` the exact sum is within the limit, above `maybe` it is not.
struct CoarseLimit {
  std::int32_t sure[kBlockRows], maybe[kBlockRows];  // one a row of the block
};

class LabelSink {
 public:
  using Strip = EntropyStrip<std::int32_t>;

  static std::size_t bytes(std::int64_t w, std::int64_t window) {
    return static_cast<std::size_t>(step_entries(window)) * sizeof(std::int32_t) +
           static_cast<std::size_t>(LabelRow::bytes(w) * kRows);
  }

  /// Output rows [begin, end) of `out`; labels also come for a row above and below them, where there is one.
  LabelSink(const ops::Pipeline& pipeline, std::int64_t begin, std::int64_t end, std::uint8_t* out,
            void* memory)
      : p_(pipeline), begin_(begin), end_(end), out_(out), steps_(static_cast<std::int32_t*>(memory)) {
    const std::int64_t most = largest_count(p_.window);
    labels_ = reinterpret_cast<std::uint8_t*>(steps_ + step_entries(p_.window));
    const std::int64_t* exact = ops::entropy_table();
    shift_ = std::max(0, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(exact[most]))) - 30);
    const std::int64_t half = shift_ > 0 ? std::int64_t{1} << (shift_ - 1) : 0;
    const auto rounded = [&](std::int64_t c) {
      return static_cast<std::int32_t>((exact[c] + half) >> shift_);
    };
    for (std::int64_t c = 0; c < step_entries(p_.window); ++c)
      steps_[c] = c < most ? rounded(c + 1) - rounded(c) : 0;
  }

  /// Steps of T in so few bits that sums over a window fit int32.
  const std::int32_t* steps() const { return steps_; }

  void take(const EntropyBlock& block, std::int64_t from, std::int64_t to, const std::int32_t* sums,
            const Strip& strip) {
    alignas(64) std::uint8_t high[kChunk] = {}, middle[kChunk] = {}, low[kChunk] = {};
    for (std::int64_t x = from; x < to;) {
      const std::int64_t run = prepare(block, x, to);  // columns with the same limits
      const Limits limits(high_, middle_, low_);
#if HWY_TARGET == HWY_AVX3
      for (; x + 2 <= run; x += 2) {
        const std::int64_t at = x - from;
        const int open = limits.classify_two(sums + at * kBlockRows, high + at, middle + at, low + at);
        if (HWY_LIKELY(open == 0)) continue;
        settle(block, x, open & 0xFF, strip, high[at], middle[at], low[at]);
        settle(block, x + 1, open >> 8, strip, high[at + 1], middle[at + 1], low[at + 1]);
      }
#endif
      for (; x < run; ++x) {
        const std::int64_t at = x - from;
        const int open = limits.classify(sums + at * kBlockRows, high[at], middle[at], low[at]);
        if (HWY_UNLIKELY(open != 0)) settle(block, x, open, strip, high[at], middle[at], low[at]);
      }
    }
    for (std::int64_t r = 0; r < block.rows; ++r)
      pick(r, high, middle, low, row(kCarried + r).labels + from, to - from);
  }

  void nan(const EntropyBlock&, std::int64_t r, std::int64_t x) { row(kCarried + r).labels[x] = 0; }

  /// Rows whose neighbours are all there vote; the last two are carried over.
  void end(const EntropyBlock& block) {
    const std::int64_t h = p_.conv.ho, w = p_.conv.wo, last = block.y + block.rows;
    for (std::int64_t r = 0; r < block.rows; ++r) row(kCarried + r).encode(w);
    for (std::int64_t y = std::max(begin_, block.y - 1); y < std::min(end_, last); ++y) {
      const std::int64_t number = y - block.y + kCarried;
      if (y == 0 || y + 1 == h) {
        std::memcpy(out_ + y * w, row(number).labels, static_cast<std::size_t>(w));
      } else if (y + 1 < last) {
        vote(row(number - 1), row(number), row(number + 1), w, out_ + y * w);
      }
    }
    if (block.rows == kBlockRows)
      std::memcpy(labels_, row(kBlockRows).labels, static_cast<std::size_t>(LabelRow::bytes(w) * kCarried));
  }

 private:
  static constexpr std::int64_t kCarried = 2;
  static constexpr std::int64_t kRows = kBlockRows + kCarried;

  static std::int64_t largest_count(std::int64_t window) {
    return std::max<std::int64_t>(window * window, 16);
  }
  static std::int64_t step_entries(std::int64_t window) {
    return std::max(largest_count(window), kStepsAtHand);
  }

  /// The rows in `open` at column x by their exact sums.
  HWY_NOINLINE void settle(const EntropyBlock& block, std::int64_t x, int open, const Strip& strip,
                           std::uint8_t& high, std::uint8_t& middle, std::uint8_t& low) const {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const int bit = 1 << r;
      if ((open & bit) == 0) continue;
      const std::int64_t sum = strip.exact_sum(block, r, x);
      set(high, bit, sum <= exact_[r].high);
      set(middle, bit, sum <= exact_[r].middle);
      set(low, bit, sum <= exact_[r].low);
    }
  }

  static HWY_INLINE void set(std::uint8_t& bits, int bit, bool value) {
    bits = static_cast<std::uint8_t>(value ? bits | bit : bits & ~bit);
  }

  HWY_INLINE LabelRow row(std::int64_t number) const { return LabelRow(labels_, number, p_.conv.wo); }

  /// Limits for the windows at column x of the block; returns up to which column they hold.
  HWY_INLINE std::int64_t prepare(const EntropyBlock& block, std::int64_t x, std::int64_t to) {
    const ops::EntropySpan columns = ops::entropy_span(x, p_.window, p_.conv.wo);
    const std::int64_t width = columns.last - columns.first;
    if (width != width_ || !std::equal(block.heights, block.heights + kBlockRows, heights_)) {
      width_ = width;
      std::copy(block.heights, block.heights + kBlockRows, heights_);
      find_limits();
    }
    if (width < p_.window) return x + 1;
    return std::min(to, p_.conv.wo - (p_.window - 1 - p_.window / 2));
  }

  HWY_NOINLINE void find_limits() {
    for (std::int64_t r = 0; r < kBlockRows; ++r) {
      const std::int64_t pixels = heights_[r] * width_;
      const bool known = r > 0 && heights_[r] == heights_[r - 1];
      exact_[r] = known ? exact_[r - 1] : limits_of(pixels, p_.thresholds);
      // Each of the window's bins may be off by half a unit.
      const std::int64_t off = (std::min(pixels, ops::kEntropyBins) << shift_) / 2;
      const std::int64_t limits[] = {exact_[r].high, exact_[r].middle, exact_[r].low};
      CoarseLimit* const coarse[] = {&high_, &middle_, &low_};
      for (int l = 0; l < 3; ++l) {
        const bool any = limits[l] >= 0;
        coarse[l]->sure[r] = any ? static_cast<std::int32_t>((limits[l] - off) >> shift_) : -1;
        coarse[l]->maybe[r] = any ? static_cast<std::int32_t>((limits[l] + off) >> shift_) : -1;
      }
    }
  }

#if HWY_TARGET == HWY_AVX3
  struct Limits {
    using Lane = SumLanes<std::int32_t>;
    struct Pair {
      __m256i sure, maybe;
    };
    Pair high, middle, low;

    HWY_INLINE Limits(const CoarseLimit& h, const CoarseLimit& m, const CoarseLimit& l)
        : high{Lane::load(h.sure), Lane::load(h.maybe)},
          middle{Lane::load(m.sure), Lane::load(m.maybe)},
          low{Lane::load(l.sure), Lane::load(l.maybe)} {}

    static HWY_INLINE __mmask8 within(const Pair& pair, __m256i sum, std::uint8_t& bits) {
      const __mmask8 sure = _mm256_cmple_epi32_mask(sum, pair.sure);
      bits = sure;
      return sure ^ _mm256_cmple_epi32_mask(sum, pair.maybe);
    }
    static HWY_INLINE __mmask16 within_two(const Pair& pair, __m512i sum, std::uint8_t* bits) {
      const __mmask16 sure = _mm512_cmple_epi32_mask(sum, _mm512_broadcast_i32x8(pair.sure));
      std::memcpy(bits, &sure, sizeof(sure));
      return sure ^ _mm512_cmple_epi32_mask(sum, _mm512_broadcast_i32x8(pair.maybe));
    }
    /// The same for two columns that stand side by side; the second one's rows follow the first one's.
    HWY_INLINE int classify_two(const std::int32_t* sums, std::uint8_t* in_high, std::uint8_t* in_middle,
                                std::uint8_t* in_low) const {
      const __m512i sum = _mm512_loadu_si512(sums);
      return within_two(high, sum, in_high) | within_two(middle, sum, in_middle) |
             within_two(low, sum, in_low);
    }
    /// A bit a row for each limit; returns the rows that the coarse sum leaves open.
    HWY_INLINE std::uint8_t classify(const std::int32_t* sums, std::uint8_t& in_high, std::uint8_t& in_middle,
                                     std::uint8_t& in_low) const {
      const __m256i sum = Lane::load(sums);
      return within(high, sum, in_high) | within(middle, sum, in_middle) | within(low, sum, in_low);
    }
  };

  /// Labels of row r: 64 columns at once, each of which shows its bit.
  static void pick(std::int64_t r, const std::uint8_t* high, const std::uint8_t* middle,
                   const std::uint8_t* low, std::uint8_t* to, std::int64_t count) {
    static_assert(kChunk == 64);
    const __mmask64 columns = count == kChunk ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
    const __m512i bit = _mm512_set1_epi8(static_cast<char>(1 << r));
    __m512i label = _mm512_maskz_set1_epi8(_mm512_test_epi8_mask(_mm512_load_si512(low), bit), 3);
    label = _mm512_mask_mov_epi8(label, _mm512_test_epi8_mask(_mm512_load_si512(middle), bit),
                                 _mm512_set1_epi8(2));
    label =
        _mm512_mask_mov_epi8(label, _mm512_test_epi8_mask(_mm512_load_si512(high), bit), _mm512_set1_epi8(1));
    _mm512_mask_storeu_epi8(to, columns, label);
  }
#else
  struct Limits {
    const CoarseLimit& high;
    const CoarseLimit& middle;
    const CoarseLimit& low;

    HWY_INLINE Limits(const CoarseLimit& h, const CoarseLimit& m, const CoarseLimit& l)
        : high(h), middle(m), low(l) {}

    static HWY_INLINE int at_most(const std::int32_t* sums, const std::int32_t* limits) {
      int rows = 0;
      for (int r = 0; r < kBlockRows; ++r) rows |= static_cast<int>(sums[r] <= limits[r]) << r;
      return rows;
    }
    static HWY_INLINE int within(const CoarseLimit& limit, const std::int32_t* sums, std::uint8_t& bits) {
      const int sure = at_most(sums, limit.sure);
      bits = static_cast<std::uint8_t>(sure);
      return sure ^ at_most(sums, limit.maybe);
    }
    HWY_INLINE std::uint8_t classify(const std::int32_t* sums, std::uint8_t& in_high, std::uint8_t& in_middle,
                                     std::uint8_t& in_low) const {
      return static_cast<std::uint8_t>(within(high, sums, in_high) | within(middle, sums, in_middle) |
                                       within(low, sums, in_low));
    }
  };

  static void pick(std::int64_t r, const std::uint8_t* high, const std::uint8_t* middle,
                   const std::uint8_t* low, std::uint8_t* to, std::int64_t count) {
    const int bit = 1 << r;
    for (std::int64_t x = 0; x < count; ++x) {
      to[x] = (high[x] & bit) != 0 ? 1 : (middle[x] & bit) != 0 ? 2 : (low[x] & bit) != 0 ? 3 : 0;
    }
  }
#endif

  const ops::Pipeline& p_;
  std::int64_t begin_, end_;
  std::uint8_t* out_;
  std::int32_t* steps_;
  std::uint8_t* labels_;  // the two rows before the block, then the block's
  int shift_;
  std::int64_t width_ = 0;
  std::int64_t heights_[kBlockRows] = {};
  LabelLimits exact_[kBlockRows];
  CoarseLimit high_, middle_, low_;
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
