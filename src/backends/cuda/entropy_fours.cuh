// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows in fours: they slide down the columns of an image of bins, four next to each other a lane of a team of warps.
// A word of a lane's histogram has the counts of a bin in all four, a pair in each half, and a half is at once the place
// of that pair's next steps of T in a table for pairs of counts, 16 bits each. A pixel that enters or leaves is one atomic
// addition, whose answer is the word before. So warps of a team may let rows enter while others let rows leave: whatever
// the order, the steps that all have taken add up to the windows' sums. Here two warps do so, and a second table has the
// bits that sums of 16 bits lack; then each has two windows to finish.
#pragma once

#include "backends/cuda/entropy_scale.h"
#include "backends/cuda/entropy_window.cuh"

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

/// Compile-time facts of windows of kW x kW in fours.
template <int kSize>
struct FourFacts {
  static constexpr int kW = kSize, kHalf = kW / 2;
  static constexpr int kTeams = 6;
  static constexpr int kUnit = 4 * kWarp;            // columns of a team
  static constexpr int kSpan = kW + 3;               // pixels of a row that a lane sees
  static constexpr int kLine = kUnit + kW - 1;       // and a team
  static constexpr int kSkip = (4 - kHalf % 4) % 4;  // bytes before these in their words
  static constexpr int kTwoTeams = 1 << 16;          // bytes of their histograms
  static constexpr int kHistograms = kTeams / 2 * kTwoTeams;
  static constexpr int kSteps = (4 * pair_entries(most_pixels(kW)) + 15) / 16 * 16;
  static_assert(4 * pair_entries(most_pixels(kW)) < 1 << 16 && kW + 1 <= kPairApart);

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

/// Teams of two warps with all bits of the sums.
template <int kSize>
struct FourShape : FourFacts<kSize> {
  using Facts = FourFacts<kSize>;
  static constexpr bool kExact = true;
  static constexpr int kWarps = 2 * Facts::kTeams, kThreads = kWarps * kWarp;
  static constexpr int kTables = 3 * Facts::kSteps;  // steps and their lowest bits
  static constexpr int kTold = Facts::kHistograms + kTables;
  static constexpr int kWords = 3;  // that a lane tells the other warp's
  static constexpr std::size_t kSharedBytes = kTold + kThreads * kWords * 4;
  static_assert(kSharedBytes <= 227 * 1024);
};

/// Where a lane's words begin. Two teams share 64 KB: a bin's words of both lie in 256 bytes, each lane's in a bank of its
/// own.
__device__ __forceinline__ unsigned four_base(int team, int lane) {
  return static_cast<unsigned>(team / 2 * (1 << 16) + team % 2 * 128 + lane * 4);
}
/// Where that of a bin lies, which is a byte of a word.
__device__ __forceinline__ unsigned four_address(unsigned base, unsigned word, int byte) {
  return __byte_perm(word, base, 0x7604 | byte << 4);
}

/// Until so many threads of a team are here.
__device__ __forceinline__ void meet(int team, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "r"(threads) : "memory");
}

/// A warp of a team of two: role 0 has rows that leave and the first two windows, role 1 rows that enter and the others.
struct TeamWarp {
  int lane, team, role;

  __device__ __forceinline__ TeamWarp()
      : lane(static_cast<int>(threadIdx.x) % kWarp),
        team(static_cast<int>(threadIdx.x) / kWarp / 2),
        role(static_cast<int>(threadIdx.x) / kWarp % 2) {}
};

/// What a warp of a team has added to its lanes' four windows.
template <class Shape>
struct FourWindows {
  static constexpr int kSpan = Shape::kSpan;
  static constexpr int kRaw = (Shape::kSkip + kSpan + 3) / 4;  // words of a lane's pixels

  unsigned char* memory;
  unsigned base;
  unsigned mask[kSpan];  // all ones for pixels of a row that lie in the image
  unsigned sums[2];      // of two windows each, 16 bits a window
  unsigned lows[4];      // the lowest bits of the exact sums

  /// `left`: the column of the lane's first pixel.
  __device__ __forceinline__ FourWindows(unsigned char* memory, int team, int lane, int left, int w)
      : memory(memory), base(four_base(team, lane)), sums{}, lows{} {
#pragma unroll
    for (int u = 0; u < kSpan; ++u) mask[u] = left + u >= 0 && left + u < w ? kAll : 0;
  }
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

  /// A row enters or leaves. kWhole: all its pixels lie in the image. Steps are those of the lower count.
  template <bool kEnters, bool kWhole>
  __device__ __forceinline__ void update(const unsigned (&raw)[kRaw]) {
    unsigned found[kSpan];
#pragma unroll
    for (int u = 0; u < kSpan; ++u) {
      const int at = u + Shape::kSkip;
      const unsigned add = Shape::add_of(u) & (kWhole ? kAll : mask[u]);
      auto* const word = reinterpret_cast<unsigned*>(memory + four_address(base, raw[at / 4], at % 4));
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

/// All bits of the sums of a warp's two windows a lane. The lowest are exact; those above come from the sum of 16 bits,
/// which is off by less than half of the first that is missing.
template <class Shape>
struct WholeSums {
  std::int64_t sum[2];

  __device__ __forceinline__ WholeSums(const FourWindows<Shape>& windows, const TeamWarp& warp,
                                       float bits_of_unit) {
    const bool second = warp.role == 1;
    // Words for the other warp's lane, and those of the other's.
    const auto told = [&](int word, bool own) -> unsigned& {
      const int role = own ? warp.role : 1 - warp.role;
      auto* const words = reinterpret_cast<unsigned*>(windows.memory + Shape::kTold);
      return words[((warp.team * 2 + role) * Shape::kWords + word) * kWarp + warp.lane];
    };
    meet(warp.team, 2 * kWarp);  // the other has read what it was told before
    told(0, true) = second ? windows.sums[0] : windows.sums[1];
    told(1, true) = second ? windows.lows[0] : windows.lows[2];
    told(2, true) = second ? windows.lows[1] : windows.lows[3];
    meet(warp.team, 2 * kWarp);
    const unsigned sums = (second ? windows.sums[1] : windows.sums[0]) + told(0, false);
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const unsigned low = (second ? windows.lows[2 + k] : windows.lows[k]) + told(1 + k, false);
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

/// The rows of bins that windows of a strip see, and whether all columns that they see lie in the image.
template <class Shape>
struct SeenRows {
  int top, bottom;  // of the first window and behind the last
  int begin, end;   // those in the image
  bool whole;       // the same for all lanes

  __device__ __forceinline__ SeenRows(const BinImage& image, const Strip<int>& strip)
      : top(strip.first - Shape::kHalf), bottom(top + (strip.last - strip.first) + Shape::kW - 1) {
    begin = max(top, 0), end = min(bottom, image.h);
    const int seen = strip.column - Shape::kHalf;
    whole = seen >= 0 && seen + Shape::kLine <= image.w;
  }
};

/// Bins of a lane's pixels of row after row, the next under way while this one is counted.
template <class Shape>
struct BinRows {
  static constexpr int kRaw = FourWindows<Shape>::kRaw;

  const unsigned char* next;
  std::int64_t stride;  // to the one after
  unsigned ahead[kRaw] = {};

  /// `left`: the column of the lane's first pixel.
  __device__ __forceinline__ BinRows(const BinImage& image, int row, int left, int rows_apart)
      : next(image.bins + row * image.pitch + (left - Shape::kSkip)), stride(rows_apart * image.pitch) {}
  __device__ __forceinline__ void fetch(bool there) {
    if (!there) return;
#pragma unroll
    for (int i = 0; i < kRaw; ++i) ahead[i] = reinterpret_cast<const unsigned*>(next)[i];
    next += stride;
  }
};

/// A team slides over its strip: take(y, windows) has what this warp has added for row y.
template <class Shape, class Take>
__device__ __forceinline__ void slide_fours(const BinImage& image, const Strip<int>& strip,
                                            unsigned char* memory, const TeamWarp& warp, const Take& take) {
  constexpr int kW = Shape::kW;
  const int left = strip.column + 4 * warp.lane - Shape::kHalf, behind = warp.role == 0 ? kW : 0;
  const SeenRows<Shape> seen(image, strip);
  FourWindows<Shape> windows(memory, warp.team, warp.lane, left, image.w);
  BinRows<Shape> rows(image, seen.begin, left, 1);
  const auto mine = [&](int row) { return row - behind >= seen.begin && row - behind < seen.end; };
  rows.fetch(mine(seen.begin));
#pragma unroll 1
  for (int row = seen.begin; row < seen.bottom; ++row) {
    unsigned raw[FourWindows<Shape>::kRaw];
#pragma unroll
    for (int i = 0; i < FourWindows<Shape>::kRaw; ++i) raw[i] = rows.ahead[i];
    rows.fetch(mine(row + 1));
    if (mine(row)) {
      if (warp.role == 0) {
        seen.whole ? windows.template update<false, true>(raw) : windows.template update<false, false>(raw);
      } else {
        seen.whole ? windows.template update<true, true>(raw) : windows.template update<true, false>(raw);
      }
    }
    if (row - seen.top >= kW - 1) take(row - (kW - 1 - Shape::kHalf), windows);
  }
}

}  // namespace fulcrum::backends::cuda::entropy
