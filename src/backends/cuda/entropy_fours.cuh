// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows in fours: they slide down the columns of an image of bins, four next to each other a lane of a team of two
// warps. A word of a lane's histogram has the counts of a bin in all four, a pair in each half, and a half is at once the
// place of that pair's next steps of T in a table for pairs of counts, 16 bits each. A pixel that enters or leaves is one
// atomic addition, whose answer is the word before. So one warp of the team lets rows enter while the other lets rows
// leave: whatever the order, the steps that both have taken add up to the windows' sums. Then each has two windows to
// finish. Sums of 16 bits tell nearly all windows on which side of a threshold they are; the others are counted with the
// exact table. Where the sums themselves are wanted, a second table has the bits that these lack.
#pragma once

#include "backends/cuda/entropy_conv.cuh"
#include "backends/cuda/entropy_labels.cuh"
#include "backends/cuda/entropy_scale.h"

namespace fulcrum::backends::cuda::entropy {

/// Bins of an image, a byte each, with room around every row; and whether 128 of them next to each other had a NaN.
struct BinImage {
  static constexpr int kMargin = 16, kBlock = 128;
  unsigned char* bins;  // of pixel (0, 0)
  unsigned char* nans;  // [h][blocks]
  std::int64_t pitch;
  int h, w, blocks;

  static std::int64_t blocks_of(std::int64_t w) { return streaming::divide_up(w, kBlock); }
  static std::int64_t pitch_of(std::int64_t w) { return (blocks_of(w) + 2) * kBlock; }
  static std::int64_t bytes_of(std::int64_t h, std::int64_t w) { return h * (pitch_of(w) + blocks_of(w)); }
};

/// Compile-time facts of windows of kW x kW. kAllBits: sums have all bits.
template <int kSize, bool kAllBits>
struct FourShape {
  static constexpr int kW = kSize, kHalf = kW / 2;
  static constexpr bool kExact = kAllBits;
  static constexpr int kTeams = 6, kWarps = 2 * kTeams, kThreads = kWarps * kWarp;
  static constexpr int kUnit = 4 * kWarp;                // columns of a team
  static constexpr int kOwnFirst = 2, kOwn = kUnit - 4;  // that it labels for itself
  static constexpr int kSpan = kW + 3;                   // pixels of a row that a lane sees
  static constexpr int kLine = kUnit + kW - 1;           // and a team
  static constexpr int kSkip = (4 - kHalf % 4) % 4;      // bytes before these in their words
  static constexpr int kRaw = (kSkip + kSpan + 3) / 4;   // words
  static constexpr int kTwoTeams = 1 << 16;              // bytes of their histograms
  static constexpr int kHistograms = kTeams / 2 * kTwoTeams;
  static constexpr int kSteps = (4 * pair_entries(most_pixels(kW)) + 15) / 16 * 16;
  static constexpr int kLows = kExact ? 2 * kSteps : 0;
  static constexpr int kWords = kExact ? 3 : 2;  // that a lane tells the other warp's
  static constexpr int kJudges = kExact ? 0 : judge_bytes(kW);
  static constexpr int kTables = kSteps + kLows + kJudges;
  static constexpr int kTold = kHistograms + kTables;
  static constexpr std::size_t kSharedBytes = kTold + kThreads * kWords * 4;
  static_assert(4 * pair_entries(most_pixels(kW)) < 1 << 16 && kW + 1 <= kPairApart);
  static_assert(kSharedBytes <= 227 * 1024);

  /// What a pixel of a row adds to a word: 4 for the first window of a half, 4 kPairFactor for the other.
  static constexpr bool has(int pixel, int window) { return pixel >= window && pixel < window + kW; }
  static constexpr unsigned add_of(int pixel) {
    constexpr unsigned kFirst = 4, kSecond = 4 * kPairFactor;
    return (has(pixel, 0) ? kFirst : 0) + (has(pixel, 1) ? kSecond : 0) + (has(pixel, 2) ? kFirst << 16 : 0) +
           (has(pixel, 3) ? kSecond << 16 : 0);
  }
  /// Sums of a half that a pixel has a part in.
  static constexpr unsigned part_of(int pixel, int half) {
    return (has(pixel, 2 * half) ? 0xFFFFU : 0U) | (has(pixel, 2 * half + 1) ? 0xFFFF0000U : 0U);
  }
};

/// A warp of a team: role 0 has rows that leave and the first two windows, role 1 rows that enter and the others.
struct TeamWarp {
  int lane, team, role;

  __device__ __forceinline__ TeamWarp()
      : lane(static_cast<int>(threadIdx.x) % kWarp),
        team(static_cast<int>(threadIdx.x) / kWarp / 2),
        role(static_cast<int>(threadIdx.x) / kWarp % 2) {}
  /// Two teams share 64 KB: a bin's words of both lie in 256 bytes, each lane's in a bank of its own.
  __device__ __forceinline__ unsigned base() const {
    return static_cast<unsigned>(team / 2 * (1 << 16) + team % 2 * 128 + lane * 4);
  }
  static __device__ __forceinline__ unsigned address(unsigned base, unsigned word, int byte) {
    return __byte_perm(word, base, 0x7604 | byte << 4);
  }
  /// Until both warps are here.
  __device__ __forceinline__ void meet() const {
    asm volatile("bar.sync %0, 64;" ::"r"(team + 1) : "memory");
  }
  /// The same; whether `value` is true in any lane of both.
  __device__ __forceinline__ bool meet_any(bool value) const {
    unsigned any;
    asm volatile(
        "{\n"
        ".reg .pred p, q;\n"
        "setp.ne.u32 p, %1, 0;\n"
        "bar.red.or.pred q, %2, 64, p;\n"
        "selp.u32 %0, 1, 0, q;\n"
        "}\n"
        : "=r"(any)
        : "r"(static_cast<unsigned>(value)), "r"(team + 1)
        : "memory");
    return any != 0;
  }
};

/// The sum of T over the bins of a window of the lane whose words begin at `base`, by a whole warp, in all lanes.
template <class Shape>
__device__ __noinline__ std::int64_t recount_four(const unsigned char* memory, unsigned base, int window,
                                                  const std::int64_t* table) {
  std::int64_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < 256 / kWarp; ++i) {
    const unsigned at = TeamWarp::address(base, threadIdx.x % kWarp + i * kWarp, 0);
    const unsigned pair =
        (*reinterpret_cast<const unsigned*>(memory + at) >> (window / 2 * 16) & 0xFFFFU) / 4;
    const unsigned second = (pair + kPairApart) / (kPairFactor + 1);
    sum += table[window % 2 == 1 ? second : pair - kPairFactor * second];
  }
  const unsigned low = __reduce_add_sync(kAll, static_cast<unsigned>(sum & 0xFFFFFF));
  const unsigned high = __reduce_add_sync(kAll, static_cast<unsigned>(sum >> 24));
  return (static_cast<std::int64_t>(high) << 24) + low;
}

/// What a warp of a team has added to its lanes' four windows.
template <class Shape>
struct FourWindows {
  static constexpr int kSpan = Shape::kSpan, kRaw = Shape::kRaw;

  unsigned char* memory;
  TeamWarp warp;
  unsigned base;
  unsigned mask[kSpan];  // all ones for pixels of a row that lie in the image
  unsigned sums[2];      // of two windows each, 16 bits a window
  unsigned lows[4];      // the lowest bits of the exact sums

  static __device__ __forceinline__ unsigned half_of(unsigned word, int half) {
    return half == 0 ? word & 0xFFFFU : word >> 16;
  }
  __device__ __forceinline__ unsigned steps(unsigned place, int less) const {
    return *reinterpret_cast<const unsigned*>(memory + (Shape::kHistograms - less) + place);
  }
  __device__ __forceinline__ uint2 low_steps(unsigned place, int less) const {
    constexpr int kFirst = Shape::kHistograms + Shape::kSteps;
    return *reinterpret_cast<const uint2*>(memory + (kFirst - 2 * less) + 2 * place);
  }
  /// Words for the other warp's lane, and those of the other's.
  __device__ __forceinline__ unsigned& told(int word, bool own) const {
    const int role = own ? warp.role : 1 - warp.role;
    auto* const words = reinterpret_cast<unsigned*>(memory + Shape::kTold);
    return words[((warp.team * 2 + role) * Shape::kWords + word) * kWarp + warp.lane];
  }

  /// A row enters or leaves. kWhole: all its pixels lie in the image. Steps are those of the lower count.
  template <bool kEnters, bool kWhole>
  __device__ __forceinline__ void update(const unsigned (&raw)[kRaw]) {
    unsigned found[kSpan];
#pragma unroll
    for (int u = 0; u < kSpan; ++u) {
      const int at = u + Shape::kSkip;
      const unsigned add = kWhole ? Shape::add_of(u) : Shape::add_of(u) & mask[u];
      auto* const word = reinterpret_cast<unsigned*>(memory + TeamWarp::address(base, raw[at / 4], at % 4));
      found[u] = atomicAdd(word, kEnters ? add : 0U - add);
      if (!kEnters && !kWhole) found[u] -= add;
    }
#pragma unroll
    for (int u = 0; u < kSpan; ++u) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned part = Shape::part_of(u, half) & (kWhole ? kAll : mask[u]);
        if (Shape::part_of(u, half) == 0) continue;
        const unsigned place = half_of(found[u], half);
        const int less = !kEnters && kWhole ? static_cast<int>(half_of(Shape::add_of(u), half)) : 0;
        const unsigned step = steps(place, less) & part;
        sums[half] = kEnters ? sums[half] + step : sums[half] - step;
        if constexpr (Shape::kExact) {
          const uint2 low = low_steps(place, less);
          const unsigned there = kWhole ? kAll : mask[u];
          if (Shape::has(u, 2 * half)) lows[2 * half] += kEnters ? low.x & there : 0U - (low.x & there);
          if (Shape::has(u, 2 * half + 1))
            lows[2 * half + 1] += kEnters ? low.y & there : 0U - (low.y & there);
        }
      }
    }
  }
};

/// The labels of a warp's two windows a lane, row by row, and their votes: they share a word.
template <class Shape>
struct FourSink {
  const LabelJob& job;
  const ConvImage& image;
  const PairJudge* judges;  // by pixels of a window
  Strip<int> strip;
  int column, h, w;
  bool nan;            // there may be some
  unsigned there = 0;  // halves of pixels in the image
  unsigned may = 0;    // and of those that are not at its sides
  unsigned own = 0;    // and of those that this strip writes
  bool together;       // both pixels may be written at once
  std::uint8_t* row;   // of the next output, at this lane's first pixel
  int rows = 0;
  PairJudge judge[2];
  unsigned here = 0, here_three = 0, above_three = 0;

  __device__ __forceinline__ FourSink(const LabelJob& job, const ConvImage& image, const PairJudge* judges,
                                      const Strip<int>& strip, const TeamWarp& warp, bool nan)
      : job(job),
        image(image),
        judges(judges),
        strip(strip),
        column(strip.column + 4 * warp.lane + 2 * warp.role),
        h(static_cast<int>(job.image.h)),
        w(static_cast<int>(job.image.w)),
        nan(nan) {
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
                                             const FourWindows<Shape>& windows) const {
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = __ffs(static_cast<int>(lanes)) - 1;
      const unsigned base = __shfl_sync(kAll, windows.base, lane);
      const std::int64_t sum =
          recount_four<Shape>(windows.memory, base, 2 * windows.warp.role + k, job.table);
      if (windows.warp.lane != lane) continue;
      Finish finish;
      finish.set(judge[k].pixels, job.table);
      bits = segment::bit_of(finish(sum), job.thresholds);
    }
    return bits;
  }

  __device__ __forceinline__ void take(int y, const FourWindows<Shape>& windows) {
    const TeamWarp& warp = windows.warp;
    windows.told(0, true) = warp.role == 0 ? windows.sums[1] : windows.sums[0];
    const int now = inside_of(y, Shape::kW, h);
    if (now != rows) {
      rows = now;
#pragma unroll
      for (int k = 0; k < 2; ++k) judge[k] = judges[now * inside_of(column + k, Shape::kW, w)];
    }
    warp.meet();
    const unsigned sums = (warp.role == 0 ? windows.sums[0] : windows.sums[1]) + windows.told(0, false);
    unsigned bits[2];
    bool doubts[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const auto sum = static_cast<int>(FourWindows<Shape>::half_of(sums, k));
      bits[k] = judge[k].bit(sum);
      doubts[k] = (there >> (16 * k) & 1U) != 0 && judge[k].doubts(sum);
    }
    windows.told(1, true) = bits[0] | bits[1] << 16;
    if (warp.meet_any(doubts[0] || doubts[1] || nan)) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        bits[k] = settle(bits[k], k, __ballot_sync(kAll, doubts[k]), windows);
        const bool exists = (there >> (16 * k) & 1U) != 0;
        if (nan && exists && window_has_nan(image, y, column + k, Shape::kW)) bits[k] = 1;
      }
      windows.told(1, true) = bits[0] | bits[1] << 16;
      warp.meet();
    }
    const unsigned below = bits[0] | bits[1] << 16, other = windows.told(1, false);
    const unsigned from_left = __shfl_up_sync(kAll, other, 1), from_right = __shfl_down_sync(kAll, other, 1);
    const unsigned left = warp.role == 0 ? from_left : other, right = warp.role == 0 ? other : from_right;
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

/// All bits of the sums of a warp's two windows a lane. The lowest are exact; those above come from the sum of 16 bits,
/// which is off by less than half of the first that is missing.
template <class Shape>
struct WholeSums {
  std::int64_t sum[2];

  __device__ __forceinline__ WholeSums(const FourWindows<Shape>& windows, float bits_of_unit) {
    const bool second = windows.warp.role == 1;
    windows.warp.meet();  // the other has read what it was told before
    windows.told(0, true) = second ? windows.sums[0] : windows.sums[1];
    windows.told(1, true) = second ? windows.lows[0] : windows.lows[2];
    windows.told(2, true) = second ? windows.lows[1] : windows.lows[3];
    windows.warp.meet();
    const unsigned sums = (second ? windows.sums[1] : windows.sums[0]) + windows.told(0, false);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const unsigned low = (second ? windows.lows[2 + k] : windows.lows[k]) + windows.told(1 + k, false);
      const auto units = static_cast<float>(FourWindows<Shape>::half_of(sums, k));
      const int high = __float2int_rn(units * bits_of_unit - static_cast<float>(low) * 0x1p-32F);
      sum[k] = static_cast<std::int64_t>(high) << 32 | low;
    }
  }
};

/// Histograms empty, tables in place. Before a barrier of the CTA.
template <class Shape>
__device__ __forceinline__ void prepare_fours(unsigned char* memory, const uint4* tables) {
  constexpr int kTables = Shape::kTables / 16, kFirst = Shape::kHistograms / 16;
  auto* const to = reinterpret_cast<uint4*>(memory);
#pragma unroll 4
  for (int i = threadIdx.x; i < kTables; i += Shape::kThreads) to[kFirst + i] = tables[i];
  for (int i = threadIdx.x; i < kFirst; i += Shape::kThreads) to[i] = uint4{0, 0, 0, 0};
}

/// Whether windows of a strip may hold a NaN; the same in all lanes.
template <class Shape>
__device__ __forceinline__ bool may_have_nan(const BinImage& image, const Strip<int>& strip) {
  const int top = strip.first - Shape::kHalf, bottom = top + (strip.last - strip.first) + Shape::kW - 1;
  const int left = max(strip.column - Shape::kHalf, 0);
  const int right = min(strip.column - Shape::kHalf + Shape::kLine, image.w) - 1;
  bool any = false;
  for (int y = max(top, 0) + static_cast<int>(threadIdx.x % kWarp); y < min(bottom, image.h); y += kWarp) {
    for (int block = left / BinImage::kBlock; block <= right / BinImage::kBlock; ++block)
      any |= image.nans[static_cast<std::int64_t>(y) * image.blocks + block] != 0;
  }
  return __any_sync(kAll, any);
}

/// A team slides over its strip: take(y, windows) has what this warp has added for row y. Bins of the next row are under
/// way while those of this one are counted.
template <class Shape, class Take>
__device__ __forceinline__ void slide_fours(const BinImage& image, const Strip<int>& strip,
                                            unsigned char* memory, const TeamWarp& warp, const Take& take) {
  constexpr int kW = Shape::kW, kRaw = Shape::kRaw;
  const int left = strip.column + 4 * warp.lane - Shape::kHalf;
  const int top = strip.first - Shape::kHalf, bottom = top + (strip.last - strip.first) + kW - 1;
  const int begin = max(top, 0), end = min(bottom, image.h), behind = warp.role == 0 ? kW : 0;
  FourWindows<Shape> windows{memory, warp, warp.base(), {}, {}, {}};
#pragma unroll
  for (int u = 0; u < Shape::kSpan; ++u) windows.mask[u] = left + u >= 0 && left + u < image.w ? kAll : 0;
  const int seen = strip.column - Shape::kHalf;
  const bool whole = seen >= 0 && seen + Shape::kLine <= image.w;  // the same for all lanes
  const unsigned char* next = image.bins + begin * image.pitch + (left - Shape::kSkip);
  unsigned ahead[kRaw] = {};
  const auto fetch = [&](int row) {
    if (row < begin || row >= end) return;
#pragma unroll
    for (int i = 0; i < kRaw; ++i) ahead[i] = reinterpret_cast<const unsigned*>(next)[i];
    next += image.pitch;
  };
  fetch(begin - behind);
#pragma unroll 1
  for (int row = begin; row < bottom; ++row) {
    const int mine = row - behind;  // the row that enters or leaves
    unsigned raw[kRaw];
#pragma unroll
    for (int i = 0; i < kRaw; ++i) raw[i] = ahead[i];
    fetch(mine + 1);
    if (mine >= begin && mine < end) {
      if (warp.role == 0) {
        whole ? windows.template update<false, true>(raw) : windows.template update<false, false>(raw);
      } else {
        whole ? windows.template update<true, true>(raw) : windows.template update<true, false>(raw);
      }
    }
    if (row - top >= kW - 1) take(row - (kW - 1 - Shape::kHalf), windows);
  }
}

}  // namespace fulcrum::backends::cuda::entropy
