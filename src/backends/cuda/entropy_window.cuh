// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide down the columns of an image, one thread for kColumns columns next to each other. A thread's
// histogram lies in shared memory, in a bank of its own: a word has the counts of a bin in all its windows, so that one
// pixel that enters or leaves costs one load and one store for all of them, and one table look-up for each. Bins of the
// rows in sight wait in a ring of bytes. A warp needs nobody else.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cuda/entropy.cuh"

namespace fulcrum::backends::cuda::entropy {

inline constexpr int kHistogramBytes = 1 << 16;  // of a CTA, whatever its threads

/// Where bin b of a thread lies: addresses take two instructions from a packed word of bins.
template <int kWordBytes>
struct Histogram;

template <>
struct Histogram<1> {
  static constexpr int kWarps = 8;
  using Word = std::uint8_t;
  static __device__ __forceinline__ unsigned base() { return threadIdx.x * 4; }
  static __device__ __forceinline__ unsigned address(unsigned base, unsigned word, int byte) {
    return (__byte_perm(word, 0, 0x4400 | byte << 4 | byte) & 0xFC03U) | base;
  }
};
template <>
struct Histogram<2> {
  static constexpr int kWarps = 4;
  using Word = std::uint16_t;
  static __device__ __forceinline__ unsigned base() {
    return (threadIdx.x % 64) * 4 + (threadIdx.x / 64) * 512;
  }
  static __device__ __forceinline__ unsigned address(unsigned base, unsigned word, int byte) {
    return (__byte_perm(word, 0, 0x4400 | byte << 4 | byte) & 0xFD02U) | base;
  }
};
template <>
struct Histogram<4> {
  static constexpr int kWarps = 2;
  using Word = std::uint32_t;
  static __device__ __forceinline__ unsigned base() {
    return (threadIdx.x / kWarp) * (kHistogramBytes / 2) + (threadIdx.x % kWarp) * 4;
  }
  static __device__ __forceinline__ unsigned address(unsigned base, unsigned word, int byte) {
    return base + (__byte_perm(word, 0, 0x4440 | byte) << 7);
  }
};

/// By a whole warp, the same in all lanes: the sum of T over the counts of the thread whose words begin at `base`.
template <class Hist>
__device__ __noinline__ std::int64_t recount(const unsigned char* memory, unsigned base, int shift,
                                             unsigned mask, const std::int64_t* table) {
  std::int64_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 256 / kWarp; ++i) {
    const unsigned bin = threadIdx.x % kWarp + i * kWarp;
    const auto* word = reinterpret_cast<const typename Hist::Word*>(memory + Hist::address(base, bin, 0));
    sum += table[(*word >> shift) & mask];
  }
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAll, sum, distance);
  return sum;
}

/// The largest divisor of `of` that is at most `most`, or all of it where `most` is more than a word of pixels.
constexpr int divisor(int of, int most) {
  if (most > 4) return of;
  while (of % most != 0) --most;
  return most;
}

/// Compile-time facts of windows of kW x kW, kColumns of them a thread.
template <int kSize, int kAcross, int kPixels = 4, bool kInside = true>
struct WindowShape {
  static constexpr int kW = kSize, kColumns = kAcross;
  /// Pixels of a turn of the inner loop at most, and whether warps inside of the image have a loop of their own.
  static constexpr int kMost = kPixels;
  static constexpr bool kWhole = kInside;
  static constexpr int kCountBits = kW * kW > 255 ? 16 : 8;
  using Hist = Histogram<kColumns * kCountBits / 8>;
  static constexpr int kWarps = Hist::kWarps, kThreads = kWarps * kWarp;
  static constexpr int kHalf = kW / 2;
  static constexpr int kUnit = kWarp * kColumns;   // columns of a warp
  static constexpr int kSpan = kW + kColumns - 1;  // pixels of a row that a thread sees
  static constexpr int kLine = kUnit + kW - 1;     // and a warp
  static constexpr int kLoads = (kLine + kWarp - 1) / kWarp;
  static constexpr int kPacked = (kSpan + 3) / 4;                // words of those pixels
  static constexpr int kRaw = (kSpan + (4 - kColumns) + 3) / 4;  // before they are aligned
  static constexpr int kPitch = 4 * ((kWarp - 1) * kColumns / 4 + kRaw);
  static constexpr int kSlots = kW + 1;
  static constexpr int kRingBytes = kSlots * kPitch;
  static_assert(kPitch >= kLine && (kColumns == 1 || kColumns == 2 || kColumns == 4));

  template <class Sum>
  static constexpr std::size_t shared_bytes() {
    return kHistogramBytes + (kW * kW + kW * kW % 2) * sizeof(Sum) + kWarps * kRingBytes;
  }
};

/// A thread's windows.
template <class Shape, class Sum>
struct Windows {
  static constexpr int kW = Shape::kW, kColumns = Shape::kColumns;
  using Hist = typename Shape::Hist;
  using Word = typename Hist::Word;
  static constexpr int kCountBits = Shape::kCountBits, kSpan = Shape::kSpan;
  static constexpr int kPacked = Shape::kPacked, kRaw = Shape::kRaw;
  static constexpr int kInner = kSpan - 2 * (kColumns - 1);  // pixels that all windows have
  static constexpr bool kWhole = Shape::kWhole;
  static constexpr int kUnroll = divisor(kSpan, Shape::kMost), kInnerUnroll = divisor(kInner, Shape::kMost);
  using Mask = std::conditional_t<(kSpan > 32), std::uint64_t, std::uint32_t>;

  unsigned char* memory;  // the CTA's histograms
  const Sum* steps;       // T[c + 1] - T[c], the first of them 0
  const unsigned char* ring;
  unsigned base;
  Mask inside;  // pixels of a row that lie in the image
  Sum sum[kColumns] = {};

  __device__ __forceinline__ unsigned load(unsigned at) const {
    return *reinterpret_cast<const Word*>(memory + at);
  }
  __device__ __forceinline__ void store(unsigned at, unsigned word) const {
    *reinterpret_cast<Word*>(memory + at) = static_cast<Word>(word);
  }
  static __device__ __forceinline__ unsigned count(unsigned word, int k) {
    return (word >> (kCountBits * k)) & ((1U << kCountBits) - 1);
  }
  /// Bins of this thread's pixels of a row, four in a word.
  __device__ __forceinline__ void pixels(int slot, unsigned (&words)[kPacked]) const {
    const unsigned first = threadIdx.x % kWarp * kColumns;
    const auto* from = reinterpret_cast<const unsigned*>(ring + slot * Shape::kPitch) + first / 4;
    unsigned raw[kRaw + 1];
    raw[kRaw] = 0;
#pragma unroll
    for (int i = 0; i < kRaw; ++i) raw[i] = from[i];
#pragma unroll
    for (int i = 0; i < kPacked; ++i) {
      words[i] = kColumns == 4 ? raw[i] : __funnelshift_r(raw[i], raw[i + 1], 8 * (first % 4));
    }
  }

  /// The sum of T over the bins of window k of a lane of the warp, from its counts. Whole warps call, with a barrier of
  /// theirs before and behind.
  __device__ __forceinline__ std::int64_t exact_sum(int lane, int k, const std::int64_t* table) const {
    const unsigned first = __shfl_sync(kAll, base, lane);
    return recount<Hist>(memory, first, kCountBits * k, (1U << kCountBits) - 1, table);
  }

  /// Takes kPixels pixels off the front.
  template <int kPixels>
  static __device__ __forceinline__ void shift(unsigned (&words)[kPacked]) {
#pragma unroll
    for (int i = 0; i < kPacked; ++i) {
      const unsigned next = i + 1 < kPacked ? words[(i + 1) % kPacked] : 0;
      words[i] = kPixels >= 4 ? next : __funnelshift_r(words[i], next, 8 * kPixels % 32);
    }
    if constexpr (kPixels > 4) shift<kPixels - 4>(words);
  }

  /// The next kPixels pixels of a row enter, where there is one, and those of another leave (kLeaves). A pixel adds a
  /// step to the counts of the windows that have it; where it has none, it looks up the first step of T, which is 0.
  /// kAll: all windows have all pixels, and a row enters.
  template <bool kLeaves, bool kAll, int kPixels>
  __device__ __forceinline__ void turn(unsigned (&in)[kPacked], unsigned (&out)[kPacked],
                                       Mask (&mask)[kColumns], bool enters) {
    constexpr unsigned kField = (1U << kCountBits) - 1;
    constexpr unsigned kOnes = kColumns == 1 ? 1 : kColumns == 2 ? 1U | 1U << kCountBits : 0x01010101U;
#pragma unroll
    for (int u = 0; u < kPixels; ++u) {
      unsigned step = kAll ? kOnes : 0;
      if constexpr (!kAll) {
#pragma unroll
        for (int k = 0; k < kColumns; ++k)
          step |= static_cast<unsigned>(mask[k] >> u & 1) << (kCountBits * k);
      }
      const unsigned plus = kLeaves && !kAll && !enters ? 0 : step;
      const unsigned a = Hist::address(base, in[u / 4], u % 4);
      const unsigned entered = load(a), to = kAll ? entered : entered & plus * kField;
      if constexpr (kLeaves) {
        const unsigned r = Hist::address(base, out[u / 4], u % 4);
        const unsigned before = load(r), left = a == r ? entered + plus : before;
        store(a, entered + plus);
        store(r, left - step);
        const unsigned from = (kAll ? left : left & step * kField) - step;
#pragma unroll
        for (int k = 0; k < kColumns; ++k) sum[k] += steps[count(to, k)] - steps[count(from, k)];
      } else {
        store(a, entered + plus);
#pragma unroll
        for (int k = 0; k < kColumns; ++k) sum[k] += steps[count(to, k)];
      }
    }
    shift<kPixels>(in);
    if constexpr (kLeaves) shift<kPixels>(out);
#pragma unroll
    for (int k = 0; k < kColumns; ++k) mask[k] = mask[k] >> (kPixels - 1) >> 1;
  }

  /// A row enters, where there is one, and another leaves. `whole`: all of the thread's pixels lie in the image. Loops
  /// are short so that they stay where instructions come from fast.
  template <bool kLeaves>
  __device__ __forceinline__ void update(unsigned (&in)[kPacked], unsigned (&out)[kPacked], bool enters,
                                         bool whole) {
    Mask mask[kColumns];
#pragma unroll
    for (int k = 0; k < kColumns; ++k) mask[k] = inside & (((Mask{1} << (kW - 1) << 1) - 1) << k);
    if (kWhole && enters && whole) {
#pragma unroll 1
      for (int i = 1; i < kColumns; ++i) turn<kLeaves, false, 1>(in, out, mask, true);
#pragma unroll 1
      for (int i = 0; i < kInner / kInnerUnroll; ++i) turn<kLeaves, true, kInnerUnroll>(in, out, mask, true);
#pragma unroll 1
      for (int i = 1; i < kColumns; ++i) turn<kLeaves, false, 1>(in, out, mask, true);
    } else {
#pragma unroll 1
      for (int i = 0; i < kSpan / kUnroll; ++i) turn<kLeaves, false, kUnroll>(in, out, mask, enters);
    }
  }
};

/// The part of an image that a warp slides over: windows of rows [first, last), the first column's at `column`, which
/// may lie left of the image. Clamped pixels are counted in rows [count_first, count_last) and columns [own_first,
/// own_last), counted from `column`. Index: int where an image's rows and columns allow it.
template <class Index>
struct Strip {
  Index column, first, last;
  Index count_first, count_last;
  int own_first, own_last;
};

/// Which of a warp's pixels of a row lie in the image and which are the strip's own: bit m stands for pixel lane + 32 m.
template <class Shape>
struct Line {
  unsigned seen = 0, own = 0;

  __device__ __forceinline__ Line(const Strip<int>& strip, int w) {
    const int lane = threadIdx.x % kWarp;
#pragma unroll
    for (int m = 0; m < Shape::kLoads; ++m) {
      const int i = lane + m * kWarp, column = strip.column - Shape::kHalf + i, at = i - Shape::kHalf;
      const bool there = i < Shape::kLine && column >= 0 && column < w;
      if (there) seen |= 1U << m;
      if (there && at >= strip.own_first && at < strip.own_last) own |= 1U << m;
    }
  }
  /// Bins of this lane's pixels go to a line of the ring. True in all lanes when one is NaN; adds what is clamped.
  __device__ __forceinline__ bool put(const float (&x)[Shape::kLoads], const Bins& bins, unsigned char* to,
                                      bool counted, unsigned& clamped) const {
    bool nan = false;
    unsigned outside = 0;
    to += threadIdx.x % kWarp;
#pragma unroll
    for (int m = 0; m < Shape::kLoads; ++m) {
      const bool fits = (m + 1) * kWarp <= Shape::kLine || threadIdx.x % kWarp + m * kWarp < Shape::kLine;
      if (fits) to[m * kWarp] = static_cast<unsigned char>(bins(x[m]));
      nan |= isnan(x[m]);
      if (bins.clamps(x[m])) outside |= 1U << m;
    }
    if (counted) clamped += __popc(outside & own);
    return __any_sync(kAll, nan);
  }
};

/// Rows of floats on their way into the ring: the next two are loaded while the last one is counted. What lies outside of
/// the image is put into bin 0, where it does not count.
template <class Shape>
struct Stage {
  Line<Shape> line;
  Bins bins;
  const float* row;  // the next one to load, at this lane's first pixel
  std::int64_t pitch;
  int left;  // rows to load
  float next[Shape::kLoads], after[Shape::kLoads];

  __device__ __forceinline__ Stage(const Image& image, const Bins& bins, const Strip<int>& strip, int first,
                                   int end)
      : line(strip, static_cast<int>(image.w)),
        bins(bins),
        row(image.x + first * image.w +
            (strip.column - Shape::kHalf + static_cast<int>(threadIdx.x % kWarp))),
        pitch(image.w),
        left(end - first) {
    fetch(next);
    fetch(after);
  }
  __device__ __forceinline__ void fetch(float (&to)[Shape::kLoads]) {
#pragma unroll
    for (int m = 0; m < Shape::kLoads; ++m) {
      to[m] = left > 0 && (line.seen >> m & 1) != 0 ? row[m * kWarp] : bins.lo;
    }
    row += pitch;
    --left;
  }
  /// The next row goes into the ring, and one more is fetched.
  __device__ __forceinline__ bool put(unsigned char* to, bool counted, unsigned& clamped) {
    const bool nan = line.put(next, bins, to, counted, clamped);
#pragma unroll
    for (int m = 0; m < Shape::kLoads; ++m) next[m] = after[m];
    fetch(after);
    return nan;
  }
};

/// How rows of a source come into the ring.
template <class Source, class Shape>
struct StageOf;
template <class Shape>
struct StageOf<Image, Shape> {
  using Type = Stage<Shape>;
};

/// Bits that entries of T lose so that a sum over a window of kW x kW has at most 30; 0 for exact sums.
template <int kW, class Sum>
constexpr int lost_bits() {
  if (sizeof(Sum) == 8) return 0;
  int bits = 0, log = 0;
  while (kW * kW >> log > 0) ++log;
  while (kW * kW * log >> bits > 0) ++bits;
  return bits + 32 - 30;
}
template <int kW, class Sum>
__device__ __forceinline__ std::int64_t rounded(std::int64_t entry) {
  constexpr int kLost = lost_bits<kW, Sum>();
  return kLost == 0 ? entry : (entry + (std::int64_t{1} << kLost >> 1)) >> kLost;
}

/// A warp's share of the CTA's memory: histograms empty, steps in place. Before a barrier of the CTA.
template <class Shape, class Sum>
__device__ __forceinline__ void prepare_shared(unsigned char* memory, const std::int64_t* table) {
  auto* histograms = reinterpret_cast<uint4*>(memory);
  for (int i = threadIdx.x; i < kHistogramBytes / 16; i += Shape::kThreads) histograms[i] = uint4{0, 0, 0, 0};
  auto* steps = reinterpret_cast<Sum*>(memory + kHistogramBytes);
  for (int c = threadIdx.x; c < Shape::kW * Shape::kW; c += Shape::kThreads) {
    steps[c] = static_cast<Sum>(rounded<Shape::kW, Sum>(table[c + 1]) - rounded<Shape::kW, Sum>(table[c]));
  }
}

/// A warp slides over its strip, row by row: sink.take(y, windows, nan) has the sums of row y; `nan`: look for NaN,
/// there may be some. Returns the thread's clamped pixels.
template <class Shape, class Sum, class Source, class Sink>
__device__ __forceinline__ unsigned slide_strip(const Source& image, const Bins& bins,
                                                const Strip<int>& strip, unsigned char* memory, Sink& sink) {
  constexpr int kW = Shape::kW;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int h = static_cast<int>(image.h), w = static_cast<int>(image.w);
  unsigned char* ring =
      memory + Shape::template shared_bytes<Sum>() - (Shape::kWarps - warp) * Shape::kRingBytes;
  const int top = strip.first - Shape::kHalf, bottom = strip.last - 1 - Shape::kHalf + kW;
  const int begin = max(top, 0), end = min(bottom, h);
  typename StageOf<Source, Shape>::Type stage(image, bins, strip, begin, end);
  Windows<Shape, Sum> windows{.memory = memory,
                              .steps = reinterpret_cast<const Sum*>(memory + kHistogramBytes),
                              .ring = ring,
                              .base = Shape::Hist::base(),
                              .inside = 0};
  const int left = strip.column + lane * Shape::kColumns - Shape::kHalf;
#pragma unroll 1
  for (int j = 0; j < Shape::kSpan; ++j) {
    if (left + j >= 0 && left + j < w) windows.inside |= typename Windows<Shape, Sum>::Mask{1} << j;
  }
  const int seen = strip.column - Shape::kHalf;
  const bool whole = seen >= 0 && seen + Shape::kLine <= w;  // the same for all lanes
  int last_nan = -kW - 1, slot = begin - top;                // above every window
  unsigned clamped = 0;
#pragma unroll 1
  for (int row = begin; row < bottom; ++row) {
    const int leaving = row - kW, behind = slot == kW ? 0 : slot + 1;
    const bool enters = row < end, leaves = leaving >= begin;
    unsigned in[Shape::kPacked] = {}, out[Shape::kPacked];
    if (enters) {
      __syncwarp();
      const bool counted = row >= strip.count_first && row < strip.count_last;
      if (stage.put(ring + slot * Shape::kPitch, counted, clamped)) last_nan = row;
      __syncwarp();
      windows.pixels(slot, in);
    }
    if (leaves) {
      windows.pixels(behind, out);
      windows.template update<true>(in, out, enters, whole);
    } else if (enters) {
      windows.template update<false>(in, out, true, whole);
    }
    if (row - top >= kW - 1) sink.take(row - (kW - 1 - Shape::kHalf), windows, last_nan > leaving);
    slot = behind;
  }
  return clamped;
}

/// Rows and columns of strips are counted in int.
inline bool fits_strips(std::int64_t h, std::int64_t w) { return h < (1 << 30) && w < (1 << 30); }

/// How many rows a warp takes so that all of them run at once, if they can.
inline std::int64_t rows_for(std::int64_t h, std::int64_t across, std::int64_t resident_warps,
                             std::int64_t least) {
  const std::int64_t strips = std::max<std::int64_t>(1, resident_warps / across);
  return std::max(streaming::divide_up(h, strips), least);
}

}  // namespace fulcrum::backends::cuda::entropy
