// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// From rows of bins to the sums of T of every window: blocks of as many rows of outputs as a Histogram has windows,
// whose records (see histogram-inl.h) move up by so many rows from one block to the next. Source gives the bins of image
// rows, Sink takes the sums, a few columns at a time. Included once per instruction set.
#include "backends/simd/histogram-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_ENTROPY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_ENTROPY_INL_H_
#undef FULCRUM_BACKENDS_SIMD_ENTROPY_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_ENTROPY_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

inline constexpr std::int64_t kChunk = 64;  // columns whose sums are handed over at once

/// As many output rows as a histogram has windows, or fewer at the end.
struct EntropyBlock {
  static constexpr std::int64_t kMostRows = 2 * kBlockRows;
  std::int64_t y, rows;
  std::int64_t heights[kMostRows];  // of the windows, which the image's border cuts
};

/// One row of bins as a source writes it: `nan` is filled, with 0 and 1, only when the row holds a NaN.
struct BinRow {
  std::uint8_t* bins;
  std::uint8_t* nan;
  bool* has_nan;
};

template <class Histogram>
class EntropyStrip {
 public:
  using Sum = typename Histogram::Sum;
  static constexpr std::int64_t kRows = Histogram::kRows;
  static_assert(kRows % kBlockRows == 0 && kRows <= EntropyBlock::kMostRows);

  static std::size_t bytes(std::int64_t w, std::int64_t window) {
    const auto depth = static_cast<std::size_t>(depth_of(window));
    return static_cast<std::size_t>(w) * (2 * depth + kBlockRows + depth) + 2 * kAlign;
  }

  /// `memory` has bytes(w, window); `steps` see Histogram.
  EntropyStrip(std::int64_t h, std::int64_t w, std::int64_t window, const Sum* steps, void* memory)
      : h_(h), w_(w), window_(window), depth_(depth_of(window)), histogram_(steps) {
    records_ = static_cast<std::uint16_t*>(memory);
    bins_ = reinterpret_cast<std::uint8_t*>(records_ + w * depth_);
    nan_ = bins_ + w * kBlockRows;
  }

  /// Output rows [begin, end), or those before the sink had enough of it; returns the first row that is left.
  template <class Source, class Sink>
  std::int64_t run(std::int64_t begin, std::int64_t end, Source& source, Sink& sink) {
    const std::int64_t last_row = ops::entropy_span(end - 1, window_, h_).last;
    std::fill(std::begin(has_nan_), std::end(has_nan_), false);
    for (std::int64_t y = begin; y < end; y += kRows) {
      const std::int64_t top = y - window_ / 2;  // image row of the records' first entry
      if (y == begin) {
        for (std::int64_t at = 0; at < depth_; at += kBlockRows) load(top, at, last_row, false, source);
      } else {
        move_nan_up();
        for (std::int64_t at = depth_ - kRows; at < depth_; at += kBlockRows)
          load(top, at, last_row, at == depth_ - kRows, source);
      }
      EntropyBlock block{.y = y, .rows = std::min(kRows, end - y), .heights = {}};
      for (std::int64_t r = 0; r < kRows; ++r) {
        const ops::EntropySpan rows = ops::entropy_span(std::min(y + r, h_ - 1), window_, h_);
        block.heights[r] = rows.last - rows.first;
      }
      slide(block, top, sink);
      mark_nan(block, top, sink);
      if (!sink.end(block)) return y + block.rows;
    }
    return end;
  }

  /// The sum of T over the window of row r of the block at column x, counted anew.
  std::int64_t exact_sum(const EntropyBlock& block, std::int64_t r, std::int64_t x) const {
    const std::int64_t top = block.y - window_ / 2;
    const ops::EntropySpan rows = ops::entropy_span(block.y + r, window_, h_);
    const ops::EntropySpan columns = ops::entropy_span(x, window_, w_);
    std::uint16_t counts[ops::kEntropyBins] = {};
    const std::int64_t* steps = ops::entropy_steps();
    std::int64_t sum = 0;
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const std::uint16_t* record = records_ + c * depth_;
      for (std::int64_t j = rows.first - top; j < rows.last - top; ++j)
        sum += steps[counts[record[j] >> kBinShift]++];
    }
    return sum;
  }

 private:
  static constexpr std::size_t kAlign = 64;
  static constexpr std::int64_t kDeepest =
      (ops::kEntropyLargestWindow + kRows + kBlockRows - 2) / kBlockRows * kBlockRows;

  static std::int64_t depth_of(std::int64_t window) {
    return (window + kRows + kBlockRows - 2) / kBlockRows * kBlockRows;
  }

  /// Entries [at, at + 8) of all records, after the others have moved up by a block if so wanted. Rows outside of the
  /// image get any bins, which nobody counts.
  template <class Source>
  void load(std::int64_t top, std::int64_t at, std::int64_t last_row, bool move, Source& source) {
    const std::int64_t first = std::max<std::int64_t>(top + at, 0);
    const std::int64_t last = std::min(top + at + kBlockRows, last_row);
    std::fill_n(has_nan_ + at, kBlockRows, false);
    if (first < last) {
      const std::int64_t skipped = first - top - at;
      source(first, last - first,
             BinRow{bins_ + skipped * w_, nan_ + (at + skipped) * w_, has_nan_ + at + skipped});
    }
    std::int64_t x = 0;
    for (; x + kBlockRows <= w_; x += kBlockRows) {
      if (move) move_up(x, kBlockRows);
      transpose(bins_ + x, records_ + x * depth_ + at);
    }
    if (move) move_up(x, w_ - x);
    for (; x < w_; ++x) {
      for (std::int64_t r = 0; r < kBlockRows; ++r)
        records_[x * depth_ + at + r] = static_cast<std::uint16_t>(bins_[r * w_ + x] << kBinShift);
    }
  }

  HWY_INLINE void move_up(std::int64_t x, std::int64_t count) {
    for (std::uint16_t* record = records_ + x * depth_; count > 0; --count, record += depth_) {
      for (std::int64_t at = 0; at + kRows < depth_; at += kBlockRows) {
        std::uint64_t entries[2];
        std::memcpy(entries, record + at + kRows, sizeof(entries));
        std::memcpy(record + at, entries, sizeof(entries));
        end_of_call();  // else g++ makes the loop a call of memmove, for each record
      }
    }
  }

  /// Eight rows of eight bins to eight entries of eight records.
  HWY_INLINE void transpose(const std::uint8_t* from, std::uint16_t* to) const {
#if HWY_TARGET == HWY_SCALAR
    for (std::int64_t x = 0; x < kBlockRows; ++x) {
      for (std::int64_t r = 0; r < kBlockRows; ++r)
        to[x * depth_ + r] = static_cast<std::uint16_t>(from[r * w_ + x] << kBinShift);
    }
#else
    const hn::FixedTag<std::uint8_t, 16> bytes;
    const hn::FixedTag<std::uint8_t, 8> half;
    const hn::FixedTag<std::uint16_t, 8> pairs;
    const hn::FixedTag<std::uint32_t, 4> quads;
    hn::Vec<decltype(bytes)> rows[kBlockRows];
    HWY_UNROLL(8)
    for (int r = 0; r < kBlockRows; ++r)
      rows[r] = hn::ZeroExtendVector(bytes, hn::LoadU(half, from + r * w_));
    hn::Vec<decltype(pairs)> two[4];  // rows 2i and 2i+1 of each column
    HWY_UNROLL(4)
    for (std::int64_t i = 0; i < 4; ++i)
      two[i] = hn::BitCast(pairs, hn::InterleaveLower(bytes, rows[2 * i], rows[2 * i + 1]));
    hn::Vec<decltype(quads)> four[4];  // rows 0 to 3 of columns 0 to 3 and 4 to 7, then rows 4 to 7
    HWY_UNROLL(2)
    for (std::int64_t i = 0; i < 2; ++i) {
      four[2 * i] = hn::BitCast(quads, hn::InterleaveLower(pairs, two[2 * i], two[2 * i + 1]));
      four[2 * i + 1] = hn::BitCast(quads, hn::InterleaveUpper(pairs, two[2 * i], two[2 * i + 1]));
    }
    HWY_UNROLL(2)
    for (std::int64_t i = 0; i < 2; ++i) {
      const auto low = hn::BitCast(bytes, hn::InterleaveLower(quads, four[i], four[i + 2]));
      const auto high = hn::BitCast(bytes, hn::InterleaveUpper(quads, four[i], four[i + 2]));
      std::uint16_t* record = to + 4 * i * depth_;
      hn::StoreU(entries(hn::LowerHalf(half, low)), pairs, record);
      hn::StoreU(entries(hn::UpperHalf(half, low)), pairs, record + depth_);
      hn::StoreU(entries(hn::LowerHalf(half, high)), pairs, record + 2 * depth_);
      hn::StoreU(entries(hn::UpperHalf(half, high)), pairs, record + 3 * depth_);
    }
#endif
  }

#if HWY_TARGET != HWY_SCALAR
  static HWY_INLINE hn::Vec<hn::FixedTag<std::uint16_t, 8>> entries(
      hn::Vec<hn::FixedTag<std::uint8_t, 8>> bins) {
    const hn::FixedTag<std::uint16_t, 8> d;
    return hn::ShiftLeft<kBinShift>(hn::PromoteTo(d, bins));
  }
#endif

  void move_nan_up() {
    if (std::none_of(has_nan_, has_nan_ + depth_, [](bool has) { return has; })) return;
    const std::int64_t kept = depth_ - kRows;
    std::memmove(nan_, nan_ + kRows * w_, static_cast<std::size_t>(kept * w_));
    std::memmove(has_nan_, has_nan_ + kRows, static_cast<std::size_t>(kept));
  }

  template <class Sink>
  HWY_NOINLINE void slide(const EntropyBlock& block, std::int64_t top, Sink& sink) {
    histogram_.begin(BlockShape{window_, block.rows, std::max<std::int64_t>(-top, 0),
                                std::min(block.rows + window_ - 1, h_ - top)});
    Columns columns{records_, depth_, w_, window_, 0};
    histogram_.slide(columns, -window_, 0, nullptr);  // columns right of the first centre
    HWY_ALIGN Sum sums[kChunk * kRows];
    for (std::int64_t from = 0; from < w_; from += kChunk) {
      const std::int64_t to = std::min(from + kChunk, w_);
      columns.origin = from;
      histogram_.slide(columns, from, to, sums);
      sink.take(block, from, to, sums, *this);
    }
  }

  /// Every window that holds a NaN.
  template <class Sink>
  void mark_nan(const EntropyBlock& block, std::int64_t top, Sink& sink) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const ops::EntropySpan rows = ops::entropy_span(block.y + r, window_, h_);
      const std::int64_t first = rows.first - top, last = rows.last - top;
      if (!std::any_of(has_nan_ + first, has_nan_ + last, [](bool has) { return has; })) continue;
      const std::int64_t left = window_ / 2, right = window_ - 1 - left;
      std::int64_t count = 0;
      for (std::int64_t x = 0; x < std::min(right, w_); ++x) count += nan_in_column(x, first, last);
      for (std::int64_t x = 0; x < w_; ++x) {
        if (x + right < w_) count += nan_in_column(x + right, first, last);
        if (x > left) count -= nan_in_column(x - left - 1, first, last);
        if (count > 0) sink.nan(block, r, x);
      }
    }
  }

  std::int64_t nan_in_column(std::int64_t x, std::int64_t first, std::int64_t last) const {
    std::int64_t count = 0;
    for (std::int64_t j = first; j < last; ++j) count += has_nan_[j] && nan_[j * w_ + x] != 0;
    return count;
  }

  std::int64_t h_, w_, window_, depth_;
  std::uint16_t* records_;
  std::uint8_t* bins_;
  std::uint8_t* nan_;
  bool has_nan_[kDeepest];
  Histogram histogram_;
};

/// Counts, for one row of pixels, what a source must tell: the bins, the NaNs, and how many were clamped.
struct Binner {
  ops::EntropyBins bins;
  std::int64_t clamped = 0;

  /// The first n lanes are pixels, of which the first `done` were counted before; returns whether one of them is NaN.
  HWY_INLINE bool operator()(Floats x, std::size_t n, std::uint8_t* to, std::int64_t done = 0) {
    const Float d;
    const hn::RebindToSigned<Float> di;
    const hn::Rebind<std::uint8_t, Float> bytes;
    const auto at = hn::Mul(hn::Sub(x, hn::Set(d, bins.lo)), hn::Set(d, bins.scale));
    const auto inside = hn::Min(hn::IfThenElseZero(hn::Gt(at, hn::Zero(d)), at), hn::Set(d, 255.0F));
    const auto number = hn::ConvertTo(di, inside);
    const auto outside = hn::Or(hn::Lt(x, hn::Set(d, bins.lo)), hn::Gt(x, hn::Set(d, bins.hi)));
    if (HWY_LIKELY(n == kLanes && done <= 0)) {
      clamped += static_cast<std::int64_t>(hn::CountTrue(d, outside));
#if HWY_TARGET == HWY_AVX3
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(number.raw));
#else
      hn::StoreU(hn::DemoteTo(bytes, number), bytes, to);
#endif
      return !hn::AllFalse(d, hn::IsNaN(x));
    }
    const auto pixels = hn::FirstN(d, n);
    const auto known =
        hn::FirstN(d, std::min(static_cast<std::size_t>(std::max<std::int64_t>(done, 0)), kLanes));
    clamped += static_cast<std::int64_t>(hn::CountTrue(d, hn::AndNot(known, hn::And(outside, pixels))));
    std::uint8_t lanes[kLanes];
    hn::StoreU(hn::DemoteTo(bytes, number), bytes, lanes);
    std::memcpy(to, lanes, n);
    return !hn::AllFalse(d, hn::And(hn::IsNaN(x), pixels));
  }
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
