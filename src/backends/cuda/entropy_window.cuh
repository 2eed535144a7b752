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

template <class Hist>
__device__ __noinline__ std::int64_t recount(const unsigned char* memory, unsigned base, int shift,
                                             unsigned mask, const std::int64_t* table) {
  std::int64_t sum = 0;
  for (unsigned bin = 0; bin < 256; ++bin) {
    const auto* word = reinterpret_cast<const typename Hist::Word*>(memory + Hist::address(base, bin, 0));
    sum += table[(*word >> shift) & mask];
  }
  return sum;
}

/// Compile-time facts of windows of kW x kW, kColumns of them a thread.
template <int kW, int kColumns>
struct WindowShape {
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
template <int kW, int kColumns, class Sum>
struct Windows {
  using Shape = WindowShape<kW, kColumns>;
  using Hist = typename Shape::Hist;
  using Word = typename Hist::Word;
  static constexpr int kCountBits = Shape::kCountBits, kSpan = Shape::kSpan;
  static constexpr int kPacked = Shape::kPacked, kRaw = Shape::kRaw;
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
  /// Pixel j of a row lies in window k.
  static constexpr __device__ bool meets(int j, int k) { return j >= k && j - k < kW; }
  /// A count in each window that has pixel j.
  static constexpr __device__ unsigned step_of(int j) {
    unsigned step = 0;
    for (int k = 0; k < kColumns; ++k) step |= meets(j, k) ? 1U << (kCountBits * k) : 0U;
    return step;
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

  /// The sum of T over the bins of window k, from its counts.
  __device__ __forceinline__ std::int64_t exact_sum(int k, const std::int64_t* table) const {
    return recount<Hist>(memory, base, kCountBits * k, (1U << kCountBits) - 1, table);
  }

  template <bool kMasked>
  __device__ __forceinline__ bool counts(int j) const {
    return !kMasked || (inside >> j & 1) != 0;
  }

  /// A row enters and one leaves. Pixels that do not count add nothing and look up the first step, which is 0.
  template <bool kMasked>
  __device__ __forceinline__ void exchange(const unsigned (&in)[kPacked], const unsigned (&out)[kPacked]) {
#pragma unroll
    for (int j = 0; j < kSpan; ++j) {
      const bool does = counts<kMasked>(j);
      const unsigned a = Hist::address(base, in[j / 4], j % 4), r = Hist::address(base, out[j / 4], j % 4);
      const unsigned entered = load(a), before = load(r), step = does ? step_of(j) : 0;
      const unsigned left = a == r ? entered + step : before;
      store(a, entered + step);
      store(r, left - step);
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        if (!meets(j, k)) continue;
        sum[k] += steps[does ? count(entered, k) : 0] - steps[does ? count(left, k) - 1 : 0];
      }
    }
  }

  template <bool kMasked>
  __device__ __forceinline__ void enter(const unsigned (&in)[kPacked]) {
#pragma unroll
    for (int j = 0; j < kSpan; j += 2) {
      const bool two = j + 1 < kSpan, first = counts<kMasked>(j), second = two && counts<kMasked>(j + 1);
      const unsigned a = Hist::address(base, in[j / 4], j % 4);
      const unsigned b = two ? Hist::address(base, in[(j + 1) / 4 % kPacked], (j + 1) % 4) : a;
      const unsigned of_a = load(a), before = two ? load(b) : 0;
      const unsigned step_a = first ? step_of(j) : 0, step_b = second ? step_of(j + 1) : 0;
      const unsigned of_b = a == b ? of_a + step_a : before;
      store(a, of_a + step_a);
      if (two) store(b, of_b + step_b);
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        if (meets(j, k)) sum[k] += steps[first ? count(of_a, k) : 0];
        if (two && meets(j + 1, k)) sum[k] += steps[second ? count(of_b, k) : 0];
      }
    }
  }

  template <bool kMasked>
  __device__ __forceinline__ void leave(const unsigned (&out)[kPacked]) {
#pragma unroll
    for (int j = 0; j < kSpan; ++j) {
      const bool does = counts<kMasked>(j);
      const unsigned r = Hist::address(base, out[j / 4], j % 4);
      const unsigned left = load(r);
      store(r, left - (does ? step_of(j) : 0));
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        if (meets(j, k)) sum[k] -= steps[does ? count(left, k) - 1 : 0];
      }
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

/// Rows of floats on their way into the ring: the next one is loaded while the last one is counted.
template <int kW, int kColumns>
struct Stage {
  using Shape = WindowShape<kW, kColumns>;
  static constexpr int kHalf = Shape::kHalf, kLine = Shape::kLine, kLoads = Shape::kLoads;

  Bins bins;
  Strip<int> strip;
  unsigned char* ring;
  const float* row;  // the next one, at this lane's first pixel
  int h, w;
  unsigned own;  // bit m: this lane's pixel m is one of the strip's own
  unsigned clamped;
  float next[kLoads];

  __device__ __forceinline__ void begin(const Image& image, int first) {
    h = static_cast<int>(image.h), w = static_cast<int>(image.w);
    const int lane = threadIdx.x % kWarp;
    row = image.x + first * image.w + (strip.column - kHalf + lane);
    own = clamped = 0;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      const int i = lane + m * kWarp - kHalf;
      if (i >= strip.own_first && i < strip.own_last) own |= 1U << m;
    }
    fetch<true>();
  }
  __device__ __forceinline__ bool is_inner(const Image&) const { return true; }

  /// What lies outside of the image is put into bin 0, where it does not count. kMasked: some of the strip does.
  template <bool kMasked>
  __device__ __forceinline__ void fetch() {
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      const int i = static_cast<int>(threadIdx.x % kWarp) + m * kWarp, column = strip.column - kHalf + i;
      const bool seen = (m + 1) * kWarp <= kLine || i < kLine;
      next[m] = seen && (!kMasked || (column >= 0 && column < w)) ? row[m * kWarp] : bins.lo;
    }
    row += w;
  }
  /// True in all lanes when one of the pixels is NaN.
  template <bool>
  __device__ __forceinline__ bool put(int y, int slot) {
    unsigned char* to = ring + slot * Shape::kPitch + threadIdx.x % kWarp;
    bool nan = false;
    unsigned outside = 0;
#pragma unroll
    for (int m = 0; m < kLoads; ++m) {
      const bool seen = (m + 1) * kWarp <= kLine || static_cast<int>(threadIdx.x % kWarp) + m * kWarp < kLine;
      if (seen) to[m * kWarp] = static_cast<unsigned char>(bins(next[m]));
      nan |= isnan(next[m]);
      if (bins.clamps(next[m])) outside |= 1U << m;
    }
    if (y >= strip.count_first && y < strip.count_last) clamped += __popc(outside & own);
    return __any_sync(kAll, nan);
  }
};

/// How rows of a source come into the ring.
template <class Source, int kW, int kColumns>
struct StageOf;
template <int kW, int kColumns>
struct StageOf<Image, kW, kColumns> {
  using Type = Stage<kW, kColumns>;
};

/// Row by row down a strip: sink.take(y, windows, nan) has the sums of row y; `nan`: look for NaN, there may be some.
template <bool kMasked, int kW, int kColumns, class Sum, class Stage, class Sink>
__device__ __forceinline__ void slide(Stage& stage, Windows<kW, kColumns, Sum>& windows, Sink& sink) {
  using Shape = WindowShape<kW, kColumns>;
  const Strip<int>& strip = stage.strip;
  const int top = strip.first - Shape::kHalf, bottom = strip.last - 1 - Shape::kHalf + kW;
  const int begin = max(top, 0), end = min(bottom, stage.h);
  int last_nan = -1, slot = begin - top;
#pragma unroll 1
  for (int row = begin; row < bottom; ++row) {
    const int leaving = row - kW, behind = slot == kW ? 0 : slot + 1;
    const bool enters = row < end, leaves = leaving >= begin;
    unsigned in[Shape::kPacked], out[Shape::kPacked];
    if (enters) {
      __syncwarp();
      if (stage.template put<kMasked>(row, slot)) last_nan = row;
      if (row + 1 < end) stage.template fetch<kMasked>();
      __syncwarp();
      windows.pixels(slot, in);
    }
    if (leaves) windows.pixels(behind, out);
    if (enters && leaves) {
      windows.template exchange<kMasked>(in, out);
    } else if (enters) {
      windows.template enter<kMasked>(in);
    } else if (leaves) {
      windows.template leave<kMasked>(out);
    }
    if (row - top >= kW - 1) sink.take(row - (kW - 1 - Shape::kHalf), windows, last_nan > leaving);
    slot = behind;
  }
}

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
template <int kW, int kColumns, class Sum>
__device__ __forceinline__ void prepare_shared(unsigned char* memory, const std::int64_t* table) {
  using Shape = WindowShape<kW, kColumns>;
  auto* histograms = reinterpret_cast<uint4*>(memory);
  for (int i = threadIdx.x; i < kHistogramBytes / 16; i += Shape::kThreads) histograms[i] = uint4{0, 0, 0, 0};
  auto* steps = reinterpret_cast<Sum*>(memory + kHistogramBytes);
  for (int c = threadIdx.x; c < kW * kW; c += Shape::kThreads) {
    steps[c] = static_cast<Sum>(rounded<kW, Sum>(table[c + 1]) - rounded<kW, Sum>(table[c]));
  }
}

/// Slides a warp over its strip; returns the thread's clamped pixels.
template <int kW, int kColumns, class Sum, class Source, class Sink>
__device__ __forceinline__ unsigned slide_strip(const Source& image, const Bins& bins,
                                                const Strip<int>& strip, unsigned char* memory, Sink& sink) {
  using Shape = WindowShape<kW, kColumns>;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  unsigned char* ring =
      memory + kHistogramBytes + (kW * kW + kW * kW % 2) * sizeof(Sum) + warp * Shape::kRingBytes;
  typename StageOf<Source, kW, kColumns>::Type stage{.bins = bins, .strip = strip, .ring = ring};
  stage.begin(image, max(strip.first - Shape::kHalf, 0));
  Windows<kW, kColumns, Sum> windows{.memory = memory,
                                     .steps = reinterpret_cast<const Sum*>(memory + kHistogramBytes),
                                     .ring = ring,
                                     .base = Shape::Hist::base(),
                                     .inside = 0};
  const int left = strip.column + lane * kColumns - Shape::kHalf;
  using Mask = typename Windows<kW, kColumns, Sum>::Mask;
#pragma unroll
  for (int j = 0; j < Shape::kSpan; ++j) {
    if (left + j >= 0 && left + j < stage.w) windows.inside |= Mask{1} << j;
  }
  const int seen = strip.column - Shape::kHalf;
  if (seen >= 0 && seen + Shape::kLine <= stage.w && stage.is_inner(image)) {
    slide<false>(stage, windows, sink);
  } else {
    slide<true>(stage, windows, sink);
  }
  return stage.clamped;
}

/// How many rows a warp takes so that all of them run at once, if they can.
/// Rows and columns of strips are counted in int.
inline bool fits_strips(std::int64_t h, std::int64_t w) { return h < (1 << 30) && w < (1 << 30); }

inline std::int64_t rows_for(std::int64_t h, std::int64_t across, std::int64_t resident_warps,
                             std::int64_t least) {
  const std::int64_t strips = std::max<std::int64_t>(1, resident_warps / across);
  return std::max(streaming::divide_up(h, strips), least);
}

}  // namespace fulcrum::backends::cuda::entropy
