// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows in pairs, for labels: they slide down the columns of an image of bins, two next to each other a thread. A word
// of a thread's histogram has the counts of a bin in both windows and is at once the place of their next steps of T in a
// table for pairs of counts, 16 bits each: a pixel that enters or leaves costs three accesses for both windows. Sums of
// such steps tell nearly all windows on which side of a threshold they are; the others are counted with the exact table.
#pragma once

#include "backends/cuda/entropy_fours.cuh"

namespace fulcrum::backends::cuda::entropy {

/// Compile-time facts of windows of kW x kW.
template <int kSize>
struct PairShape {
  using Hist = Histogram<2>;
  static constexpr int kW = kSize, kHalf = kW / 2, kCounts = kW * kW;
  static constexpr int kBlocks = 3, kWarps = kBlocks * Hist::kWarps, kThreads = kWarps * kWarp;
  static constexpr int kUnit = 2 * kWarp;       // columns of a warp
  static constexpr int kOwn = kUnit - 2;        // that it labels for itself
  static constexpr int kSpan = kW + 1;          // pixels of a row that a thread sees
  static constexpr int kLine = kUnit + kW - 1;  // and a warp
  static constexpr int kPacked = (kSpan + 3) / 4;
  static constexpr int kRaw = kHalf % 2 == 0 ? (kSpan + 2 + 3) / 4 : (kSpan + 3 + 3) / 4;
  /// What the second window's count is multiplied by: more than any count, and pairs of small counts in banks of their
  /// own.
  static constexpr int kSecond = (kCounts + 2 - 5 + 31) / 32 * 32 + 5;
  static constexpr int kEntries = kCounts * kSecond + kCounts + 1;
  static constexpr int kHistograms = kBlocks * kHistogramBytes;
  static constexpr std::size_t kSharedBytes = kHistograms + (4 * kEntries + 15) / 16 * 16;
  static_assert(4 * (kCounts + 1) * (kSecond + 1) < 1 << 16 && kSecond > kCounts + 1);
  static_assert(kRaw >= kPacked && kSpan <= 32 && kSharedBytes <= 227 * 1024);

  static __device__ __forceinline__ unsigned base() {
    const unsigned in_block = threadIdx.x % (kHistogramBytes / 512);
    return threadIdx.x / 128 * kHistogramBytes + in_block % 64 * 4 + in_block / 64 * 512;
  }
};

/// The sum of T over the bins of a window of the thread whose words begin at `base`, by a whole warp, in all lanes.
template <class Shape>
__device__ __noinline__ std::int64_t recount_pair(const unsigned char* memory, unsigned base, bool second,
                                                  const std::int64_t* table) {
  std::int64_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 256 / kWarp; ++i) {
    const unsigned at = Shape::Hist::address(base, threadIdx.x % kWarp + i * kWarp, 0);
    const unsigned word = *reinterpret_cast<const std::uint16_t*>(memory + at) / 4U;
    sum += table[second ? word / Shape::kSecond : word % Shape::kSecond];
  }
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAll, sum, distance);
  return sum;
}

/// A thread's two windows.
template <class Shape>
struct PairWindows {
  static constexpr int kPacked = Shape::kPacked, kSpan = Shape::kSpan;
  static constexpr unsigned kOne = 4, kTwo = 4 * Shape::kSecond;  // what a pixel adds to a word

  unsigned char* memory;
  unsigned base;
  unsigned inside;  // pixels of a row that lie in the image
  unsigned sums;    // of both windows, 16 bits each

  __device__ __forceinline__ unsigned load(unsigned at) const {
    return *reinterpret_cast<const std::uint16_t*>(memory + at);
  }
  __device__ __forceinline__ void store(unsigned at, unsigned word) const {
    *reinterpret_cast<std::uint16_t*>(memory + at) = static_cast<std::uint16_t>(word);
  }
  __device__ __forceinline__ unsigned steps(unsigned word) const {
    return *reinterpret_cast<const unsigned*>(memory + Shape::kHistograms + word);
  }
  __device__ __forceinline__ int sum(int k) const {
    return static_cast<int>(k == 0 ? sums & 0xFFFFU : sums >> 16);
  }
  __device__ __forceinline__ std::int64_t exact_sum(int lane, int k, const std::int64_t* table) const {
    return recount_pair<Shape>(memory, __shfl_sync(kAll, base, lane), k == 1, table);
  }

  /// A row enters, where there is one, and another leaves (kLeaves). kWhole: all pixels lie in the image, and a row
  /// enters. A pixel's step is taken from the count below, so a count that stays has no part in the sum.
  template <bool kLeaves, bool kWhole>
  __device__ __forceinline__ void update(const unsigned (&in)[kPacked], const unsigned (&out)[kPacked],
                                         bool enters) {
#pragma unroll
    for (int u = 0; u < kSpan; ++u) {
      const bool there = kWhole || (inside >> u & 1U) != 0;
      const unsigned add = !there ? 0 : u == 0 ? kOne : u + 1 == kSpan ? kTwo : kOne + kTwo;
      const unsigned part = !there ? 0 : u == 0 ? 0xFFFFU : u + 1 == kSpan ? 0xFFFF0000U : 0xFFFFFFFFU;
      const bool comes = kWhole || enters;
      const unsigned a = Shape::Hist::address(base, in[u / 4], u % 4);
      const unsigned before = load(a), after = before + (comes ? add : 0);
      if constexpr (kLeaves) {
        const unsigned r = Shape::Hist::address(base, out[u / 4], u % 4);
        const unsigned found = load(r), left = (a == r ? after : found) - add;
        store(a, after);
        store(r, left);
        sums += (steps(before) & (comes ? part : 0)) - (steps(left) & part);
      } else {
        store(a, after);
        sums += steps(before) & (comes ? part : 0);
      }
    }
  }
};

__device__ __forceinline__ void set_judge(PairJudge& judge, int count, const LabelJob& job,
                                          const PairScale& scale) {
  const float thresholds[3] = {job.thresholds.high, job.thresholds.middle, job.thresholds.low};
  judge.pixels = count;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const double part = static_cast<double>(thresholds[i]) * count;
    const double limit = (static_cast<double>(job.table[count]) * 0x1p-32 - part) * scale.units;
    const double margin = count * scale.off + part * 0x1p-22 * scale.units + 0.5;
    judge.sure[i] = static_cast<int>(fmax(floor(limit - margin), -1.0));
    judge.open[i] = static_cast<int>(fmax(ceil(limit + margin), -1.0)) - judge.sure[i];
  }
}

/// The labels of a strip, row by row, and their votes: those of a lane's two pixels share a word.
template <class Shape>
struct PairSink {
  const LabelJob& job;
  const ConvImage& image;
  const PairScale& scale;
  Strip<int> strip;
  int column, h, w;
  bool nan;           // there may be some
  unsigned there;     // halves of pixels in the image
  unsigned may;       // and of those that are not at its sides
  unsigned own;       // and of those that this strip writes
  bool together;      // both pixels may be written at once
  std::uint8_t* row;  // of the next output, at this lane's first pixel
  int rows = 0;
  PairJudge judge[2];
  unsigned here = 0, here_three = 0, above_three = 0;

  __device__ __forceinline__ PairSink(const LabelJob& job, const ConvImage& image, const PairScale& scale,
                                      const Strip<int>& strip, bool nan)
      : job(job),
        image(image),
        scale(scale),
        strip(strip),
        column(strip.column + 2 * static_cast<int>(threadIdx.x % kWarp)),
        h(static_cast<int>(job.image.h)),
        w(static_cast<int>(job.image.w)),
        nan(nan),
        there(0),
        may(0),
        own(0) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int x = column + k, place = x - strip.column;
      const unsigned half = 0xFFFFU << (16 * k);
      if (x >= 0 && x < w) there |= half;
      if (x > 0 && x + 1 < w) may |= half;
      if (x >= 0 && x < w && place >= strip.own_first && place < strip.own_last) own |= half;
    }
    row = job.out + static_cast<std::int64_t>(strip.count_first) * w + column;
    together = own == kAll && w % 2 == 0 && reinterpret_cast<std::uintptr_t>(row) % 2 == 0;
  }

  /// Windows in doubt are counted by the warp together, one after the other.
  __device__ __forceinline__ unsigned settle(unsigned bits, int k, unsigned lanes,
                                             const PairWindows<Shape>& windows) const {
    __syncwarp();  // counts of all lanes are in place
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      const std::int64_t exact_sum = windows.exact_sum(lane, k, job.table);
      if (static_cast<int>(threadIdx.x % kWarp) != lane) continue;
      Finish finish;
      finish.set(judge[k].pixels, job.table);
      bits = segment::bit_of(finish(exact_sum), job.thresholds);
    }
    __syncwarp();  // before they change again
    return bits;
  }

  __device__ __forceinline__ void take(int y, const PairWindows<Shape>& windows) {
    const int now = inside_of(y, Shape::kW, h);
    if (now != rows) {
      rows = now;
#pragma unroll
      for (int k = 0; k < 2; ++k) set_judge(judge[k], now * inside_of(column + k, Shape::kW, w), job, scale);
    }
    unsigned below = 0;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int sum = windows.sum(k);
      const bool exists = (there >> (16 * k) & 1U) != 0;
      unsigned bits = judge[k].bit(sum);
      const unsigned lanes = __ballot_sync(kAll, exists && judge[k].doubts(sum));
      if (lanes != 0) bits = settle(bits, k, lanes, windows);
      if (nan && exists && window_has_nan(image, y, column + k, Shape::kW)) bits = 1;
      below |= bits << (16 * k);
    }
    const unsigned left = __shfl_up_sync(kAll, below, 1), right = __shfl_down_sync(kAll, below, 1);
    const unsigned three =
        below + __funnelshift_r(below, right, 16) + __funnelshift_l(left, below, 16);  // with both neighbours
    if (y > strip.count_first) emit(y - 1, three);
    above_three = here_three, here_three = three, here = below;
  }

  /// Row y, whose labels are in `here`.
  __device__ __forceinline__ void emit(int y, unsigned below_three) {
    const unsigned around = above_three + here_three + below_three - here;
    const unsigned inner = y > 0 && y + 1 < h ? may : 0;
    const unsigned labels = segment::labels_of(segment::vote(here, around, inner));
    if (together) {
      *reinterpret_cast<std::uint16_t*>(row) = static_cast<std::uint16_t>(labels | labels >> 8);
    } else {
      if ((own & 1U) != 0) row[0] = static_cast<std::uint8_t>(labels);
      if (own >> 16 != 0) row[1] = static_cast<std::uint8_t>(labels >> 16);
    }
    row += w;
  }

  /// After the last row: the image's last one has nothing below it.
  __device__ __forceinline__ void end() {
    if (strip.count_last == h) emit(h - 1, 0);
  }
};

/// Histograms empty, steps of all pairs of counts in place. Before a barrier of the CTA.
template <class Shape>
__device__ __forceinline__ void prepare_pairs(unsigned char* memory, const std::int64_t* table,
                                              const PairScale& scale) {
  auto* histograms = reinterpret_cast<uint4*>(memory);
  for (int i = threadIdx.x; i < Shape::kHistograms / 16; i += Shape::kThreads)
    histograms[i] = uint4{0, 0, 0, 0};
  auto* steps = reinterpret_cast<unsigned*>(memory + Shape::kHistograms);
  const auto step_of = [&](int count) {
    return static_cast<unsigned>(in_units(table[count + 1], scale.units) -
                                 in_units(table[count], scale.units));
  };
  // The first counts of a thread's column of the table stay the same.
  for (int first = threadIdx.x; first < Shape::kSecond; first += Shape::kThreads) {
    const unsigned low = first <= Shape::kCounts ? step_of(first) : 0;
    for (int second = 0; second <= Shape::kCounts; ++second) {
      const int at = second * Shape::kSecond + first;
      if (at < Shape::kEntries) steps[at] = low;
    }
  }
  __syncthreads();
  for (int second = threadIdx.x / kWarp; second <= Shape::kCounts; second += Shape::kWarps) {
    const unsigned high = step_of(second) << 16;
    for (int first = threadIdx.x % kWarp; first <= Shape::kCounts; first += kWarp)
      steps[second * Shape::kSecond + first] |= high;
  }
}

/// A warp slides over its strip. Bins of the next rows to enter and to leave are under way while the last are counted.
template <class Shape>
__device__ __forceinline__ void slide_pairs(const BinImage& image, const Strip<int>& strip,
                                            unsigned char* memory, PairSink<Shape>& sink) {
  constexpr int kW = Shape::kW, kRaw = Shape::kRaw, kPacked = Shape::kPacked;
  const int lane = threadIdx.x % kWarp, left = strip.column + 2 * lane - Shape::kHalf;
  const int top = strip.first - Shape::kHalf, bottom = top + (strip.last - strip.first) + kW - 1;
  const int begin = max(top, 0), end = min(bottom, image.h);
  PairWindows<Shape> windows{memory, Shape::base(), 0, 0};
#pragma unroll 1
  for (int j = 0; j < Shape::kSpan; ++j) {
    if (left + j >= 0 && left + j < image.w) windows.inside |= 1U << j;
  }
  const int seen = strip.column - Shape::kHalf;
  const bool whole = seen >= 0 && seen + Shape::kLine <= image.w;  // the same for all lanes
  const int shift = (left & 3) * 8;
  const unsigned char* entering = image.bins + begin * image.pitch + (left - (left & 3));
  const unsigned char* leaving = entering;
  const auto fetch = [&](const unsigned char*& from, unsigned(&raw)[kRaw]) {
#pragma unroll
    for (int i = 0; i < kRaw; ++i) raw[i] = reinterpret_cast<const unsigned*>(from)[i];
    from += image.pitch;
  };
  const auto aligned = [&](const unsigned(&raw)[kRaw], unsigned(&words)[kPacked]) {
#pragma unroll
    for (int i = 0; i < kPacked; ++i)
      words[i] = __funnelshift_r(raw[i], i + 1 < kRaw ? raw[(i + 1) % kRaw] : 0, shift);
  };
  unsigned raw_in[kRaw] = {}, raw_out[kRaw] = {}, in[kPacked] = {}, out[kPacked] = {};
  fetch(entering, raw_in);
#pragma unroll 1
  for (int row = begin; row < bottom; ++row) {
    const bool enters = row < end, leaves = row - kW >= begin;
    aligned(raw_in, in);
    aligned(raw_out, out);
    if (row + 1 < end) fetch(entering, raw_in);
    if (row + 1 - kW >= begin) fetch(leaving, raw_out);
    if (leaves) {
      if (whole && enters) {
        windows.template update<true, true>(in, out, true);
      } else {
        windows.template update<true, false>(in, out, enters);
      }
    } else if (whole && enters) {
      windows.template update<false, true>(in, out, true);
    } else if (enters) {
      windows.template update<false, false>(in, out, true);
    }
    if (row - top >= kW - 1) sink.take(row - (kW - 1 - Shape::kHalf), windows);
  }
}

}  // namespace fulcrum::backends::cuda::entropy
