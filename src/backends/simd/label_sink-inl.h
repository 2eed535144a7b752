// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From sums of T to labels that have voted, for the fused pipeline. For a window of n pixels the entropy falls as the
// sum rises, so "entropy above a threshold" is "sum at most a limit", and no entropy is computed. Sums of a table with
// fewer bits tell nearly all windows on which side they are; the others are counted anew with the exact table.
// Included once per instruction set.
#include <fulcrum/ops/conv_entropy_segment.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/simd/label_limits-inl.h"
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

/// T in units of 1 / scale of a bit.
struct CoarseTable {
  static constexpr int kUnitBits = 32;
  static constexpr std::int64_t kUnit = std::int64_t{1} << kUnitBits;  // of T, in which a bit is so much

  std::int64_t scale;
  const std::int64_t* exact = ops::entropy_table();

  explicit CoarseTable(std::int64_t units_a_bit) : scale(units_a_bit) {}

  std::int64_t operator()(std::int64_t count) const { return (exact[count] * scale + kUnit / 2) / kUnit; }
  /// How far an entry is off, a pixel, in a unit's parts.
  std::int64_t off(std::int64_t count) const {
    return (std::abs((*this)(count)*kUnit - exact[count] * scale) + count - 1) / count;
  }

  static std::int64_t largest_count(std::int64_t window) {
    return std::max<std::int64_t>(window * window, 16);
  }
  template <class Sum>
  static std::int64_t scale_for(std::int64_t window);
};

/// Of 30 bits.
template <>
inline std::int64_t CoarseTable::scale_for<std::int32_t>(std::int64_t window) {
  const auto whole = static_cast<std::uint64_t>(ops::entropy_table()[largest_count(window)]);
  return std::int64_t{1} << (62 - std::bit_width(whole));
}

/// Of 16 bits, with room for sums that are too large: the one whose entries for small counts are least off. They are
/// multiples of logarithms of small primes, which some scales divide far better than others of their size.
inline std::int64_t best_short_scale(std::int64_t window) {
  const std::int64_t* exact = ops::entropy_table();
  const std::int64_t most = CoarseTable::largest_count(window);
  const std::int64_t largest = std::int64_t{0xFF00} * CoarseTable::kUnit / exact[most];
  std::int64_t best = largest;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t scale = largest; scale > largest / 2; --scale) {
    const CoarseTable table(scale);
    std::int64_t off = 0;
    for (std::int64_t c = 1; c <= 16; ++c) off = std::max(off, table.off(c));
    const double bits = static_cast<double>(off) / static_cast<double>(scale);
    if (bits < least) best = scale, least = bits;
  }
  return best;
}

template <>
inline std::int64_t CoarseTable::scale_for<std::uint16_t>(std::int64_t window) {
  constexpr std::int64_t kWindows = kLargestTallWindow + 1;
  static const auto scales = [] {
    std::array<std::int64_t, kWindows> all;
    for (std::int64_t w = 0; w < kWindows; ++w) all[static_cast<std::size_t>(w)] = best_short_scale(w);
    return all;
  }();
  return scales[static_cast<std::size_t>(window)];
}

template <class Histogram>
class LabelSink {
 public:
  using Strip = EntropyStrip<Histogram>;
  using Sum = typename Histogram::Sum;

  static std::size_t bytes(std::int64_t w, std::int64_t window) {
    return static_cast<std::size_t>(step_entries(window)) * sizeof(Sum) +
           static_cast<std::size_t>(LabelRow::bytes(w) * kLabelRows);
  }

  /// Output rows [begin, end) of `out`; labels also come for a row above and below them, where there is one.
  LabelSink(const ops::Pipeline& pipeline, std::int64_t begin, std::int64_t end, std::uint8_t* out,
            void* memory)
      : p_(pipeline),
        begin_(begin),
        end_(end),
        out_(out),
        steps_(static_cast<Sum*>(memory)),
        scale_(CoarseTable::scale_for<Sum>(pipeline.window)) {
    const std::int64_t most = CoarseTable::largest_count(p_.window);
    labels_ = reinterpret_cast<std::uint8_t*>(steps_ + step_entries(p_.window));
    const CoarseTable table(scale_);
    for (std::int64_t c = 0; c < step_entries(p_.window); ++c)
      steps_[c] = c < most ? static_cast<Sum>(table(c + 1) - table(c)) : Sum{0};
    for (std::int64_t c = 1; c <= most; ++c) off_ = std::max(off_, table.off(c));
  }

  /// Steps of T in so few bits that sums over a window fit.
  const Sum* steps() const { return steps_; }

  void take(const EntropyBlock& block, std::int64_t from, std::int64_t to, const Sum* sums,
            const Strip& strip) {
    ColumnBits<Bits> bits = {};
    for (std::int64_t x = from; x < to;) {
      const std::int64_t run = prepare(block, x, to);  // columns with the same limits
      const Limits<Sum> limits(high_, middle_, low_);
#if HWY_TARGET == HWY_AVX3
      for (; x + 2 <= run; x += 2) {
        const std::int64_t at = x - from;
        const std::uint32_t open = limits.classify_two(sums + at * kRows, bits, at);
        if (HWY_LIKELY(open == 0)) continue;
        settle(block, x, static_cast<Bits>(open), strip, bits, at);
        settle(block, x + 1, static_cast<Bits>(open >> kRows), strip, bits, at + 1);
      }
#endif
      for (; x < run; ++x) {
        const std::int64_t at = x - from;
        const int open = limits.classify(sums + at * kRows, bits, at);
        if (HWY_UNLIKELY(open != 0)) settle(block, x, open, strip, bits, at);
      }
    }
    for (std::int64_t r = 0; r < block.rows; ++r)
      Limits<Sum>::pick(r, bits, row(kCarried + r).labels + from, to - from);
  }

  void nan(const EntropyBlock&, std::int64_t r, std::int64_t x) { row(kCarried + r).labels[x] = 0; }

  /// Rows whose neighbours are all there vote; the last two are carried over. Returns whether to go on: where coarse sums
  /// leave too many windows open, finer ones cost less.
  bool end(const EntropyBlock& block) {
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
    if (block.rows == kRows)
      std::memcpy(labels_, row(kRows).labels, static_cast<std::size_t>(LabelRow::bytes(w) * kCarried));
    const std::int64_t settled = std::exchange(settled_, 0);
    return sizeof(Sum) > 2 || settled * kWindowsPerSettled < block.rows * w;
  }

 private:
  using Bits = typename Limits<Sum>::Bits;
  static constexpr std::int64_t kRows = Histogram::kRows;
  static constexpr std::int64_t kCarried = 2;
  static constexpr std::int64_t kLabelRows = kRows + kCarried;
  // Where one window of so many is counted anew, finer sums cost as much.
  static constexpr std::int64_t kWindowsPerSettled = 64;

  static std::int64_t step_entries(std::int64_t window) {
    return std::max(CoarseTable::largest_count(window) + window, Histogram::kStepEntries);
  }

  /// The rows in `open` at column x by their exact sums.
  HWY_NOINLINE void settle(const EntropyBlock& block, std::int64_t x, int open, const Strip& strip,
                           ColumnBits<Bits>& bits, std::int64_t at) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const int bit = 1 << r;
      if ((open & bit) == 0) continue;
      const std::int64_t sum = strip.exact_sum(block, r, x);
      set(bits.high[at], bit, sum <= exact_[r].high);
      set(bits.middle[at], bit, sum <= exact_[r].middle);
      set(bits.low[at], bit, sum <= exact_[r].low);
      ++settled_;
    }
  }

  static HWY_INLINE void set(Bits& bits, int bit, bool value) {
    bits = static_cast<Bits>(value ? bits | bit : bits & ~bit);
  }

  HWY_INLINE LabelRow row(std::int64_t number) const { return LabelRow(labels_, number, p_.conv.wo); }

  /// Limits for the windows at column x of the block; returns up to which column they hold.
  HWY_INLINE std::int64_t prepare(const EntropyBlock& block, std::int64_t x, std::int64_t to) {
    const ops::EntropySpan columns = ops::entropy_span(x, p_.window, p_.conv.wo);
    const std::int64_t width = columns.last - columns.first;
    if (width != width_ || !std::equal(block.heights, block.heights + kRows, heights_)) {
      width_ = width;
      std::copy(block.heights, block.heights + kRows, heights_);
      find_limits();
    }
    if (width < p_.window) return x + 1;
    return std::min(to, p_.conv.wo - (p_.window - 1 - p_.window / 2));
  }

  HWY_NOINLINE void find_limits() {
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t pixels = heights_[r] * width_;
      const bool known = r > 0 && heights_[r] == heights_[r - 1];
      exact_[r] = known ? exact_[r - 1] : limits_of(pixels, p_.thresholds);
      // Each of the window's bins may be off by half a unit, and by so much a pixel.
      const std::int64_t off =
          std::min(std::min(pixels, ops::kEntropyBins) * CoarseTable::kUnit / 2, pixels * off_);
      const std::int64_t limits[] = {exact_[r].high, exact_[r].middle, exact_[r].low};
      CoarseLimit<Sum>* const coarse[] = {&high_, &middle_, &low_};
      for (int l = 0; l < 3; ++l) {
        coarse[l]->sure[r] = coarse_sum(limits[l], -off);
        coarse[l]->maybe[r] = coarse_sum(limits[l], off);
      }
    }
  }

  /// The first coarse sum above the limit and what is added to it; 0 where there is no limit.
  Sum coarse_sum(std::int64_t limit, std::int64_t added) const {
    if (limit < 0) return 0;
    const std::int64_t first = ((limit * scale_ + added) >> CoarseTable::kUnitBits) + 1;
    return static_cast<Sum>(std::clamp<std::int64_t>(first, 0, std::numeric_limits<Sum>::max()));
  }

  const ops::Pipeline& p_;
  std::int64_t begin_, end_;
  std::uint8_t* out_;
  Sum* steps_;
  std::uint8_t* labels_;  // the two rows before the block, then the block's
  std::int64_t scale_;
  std::int64_t off_ = 0;      // how far a coarse sum may be from the exact one, for each pixel of the window
  std::int64_t settled_ = 0;  // windows of this block that were counted anew
  std::int64_t width_ = 0;
  std::int64_t heights_[kRows] = {};
  LabelLimits exact_[kRows];
  CoarseLimit<Sum> high_, middle_, low_;
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
