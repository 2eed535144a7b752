// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels of windows in fours (entropy_fours.cuh), for the fused pipeline. One warp of a team counts rows that enter, one
// counts rows that leave, and two label, a pair of windows a lane: after every row they add up what the others have taken,
// while those are at the next. They follow the sums from row to row, so that these need no more than their lowest 16
// bits. These tell nearly all windows on which side of a threshold they are; the others are counted anew, with the exact
// table.
#pragma once

#include "backends/cuda/entropy_conv.cuh"
#include "backends/cuda/entropy_fours.cuh"
#include "backends/cuda/entropy_labels.cuh"

namespace fulcrum::backends::cuda::entropy {

/// Compile-time facts of teams that label. Lanes 1 to 30 of the two warps that do so have columns of their own: the others
/// are for their neighbours.
template <int kSize>
struct TeamShape : FourFacts<kSize> {
  using Facts = FourFacts<kSize>;
  static constexpr bool kExact = false;
  static constexpr int kCounting = 2;      // warps that count
  static constexpr int kTeam = 4 * kWarp;  // threads
  static constexpr int kThreads = Facts::kTeams * kTeam;
  static constexpr int kOwnFirst = 2, kOwn = 4 * (kWarp - 2);  // columns that a team labels for itself
  static constexpr int kSkip =
      (4 - (Facts::kHalf + kOwnFirst) % 4) % 4;  // teams begin two columns before a word
  static constexpr int kTables = Facts::kSteps + judge_bytes(kSize);
  static constexpr int kJudges = Facts::kHistograms + Facts::kSteps;
  static constexpr int kTold = Facts::kHistograms + kTables;
  static constexpr int kToldBytes = kWarp * 8;                     // of a warp and a row
  static constexpr int kToldTeam = 2 * kCounting * kToldBytes;     // of two rows
  static constexpr int kAnew = kTold + Facts::kTeams * kToldTeam;  // histograms of one window
  static constexpr int kAnewBins = 256;
  static constexpr std::size_t kSharedBytes = kAnew + Facts::kTeams * 2 * kAnewBins * 4;
  static_assert(kSharedBytes <= 227 * 1024);
};

/// Which warp of a team this is: 0 counts rows that enter, 1 rows that leave, the others label. Warps of one role share a
/// scheduler.
template <class Shape>
struct TeamPlace {
  int lane, team, role;

  __device__ __forceinline__ TeamPlace()
      : lane(static_cast<int>(threadIdx.x) % kWarp),
        team(static_cast<int>(threadIdx.x) / Shape::kTeam),
        role(static_cast<int>(threadIdx.x) / kWarp % 4) {}
  /// What a warp that counts tells of a step: a word a pair of windows.
  __device__ __forceinline__ unsigned* told(unsigned char* memory, int of, int step) const {
    const int row = (step & 1) * Shape::kCounting + of;
    return reinterpret_cast<unsigned*>(memory + Shape::kTold + team * Shape::kToldTeam +
                                       row * Shape::kToldBytes);
  }
};

/// Steps before the first row of windows: two rows enter in each.
template <class Shape>
__device__ __forceinline__ int first_steps(const SeenRows<Shape>& seen) {
  return (min(seen.top + Shape::kW, seen.end) - seen.begin + 1) / 2;
}

/// A warp that counts rows that enter or leave. At first both let rows enter, by turns.
template <class Shape, bool kEnters, bool kWhole>
__device__ __forceinline__ void count_rows(const BinImage& image, const Strip<int>& strip,
                                           const SeenRows<Shape>& seen, unsigned char* memory,
                                           const TeamPlace<Shape>& place) {
  using Windows = FourWindows<Shape>;
  constexpr int kW = Shape::kW;
  const int left = strip.column + 4 * place.lane - Shape::kHalf;
  Windows windows(memory, place.team, place.lane, left, image.w);
  unsigned raw[Windows::kRaw];
  int step = 0;
  const auto tell = [&] {
    reinterpret_cast<uint2*>(place.told(memory, place.role, step))[place.lane] =
        make_uint2(windows.sums[0], windows.sums[1]);
    meet(place.team, Shape::kTeam);
    ++step;
  };
  const auto take = [&](BinRows<Shape>& rows, bool more) {
#pragma unroll
    for (int i = 0; i < Windows::kRaw; ++i) raw[i] = rows.ahead[i];
    rows.fetch(more);
  };

  const int steps = first_steps(seen), last = min(seen.top + kW, seen.end);
  int row = seen.begin + (kEnters ? 0 : 1);
  BinRows<Shape> first(image, row, left, 2);
  first.fetch(row < last);
#pragma unroll 1
  for (int i = 0; i < steps; ++i, row += 2) {
    take(first, row + 2 < last);
    if (row < last) windows.template update<true, kWhole>(raw);
    tell();
  }

  row = kEnters ? seen.top + kW : seen.top;
  const int count = strip.last - strip.first - 1;
  const auto there = [&](int at) { return at >= seen.begin && at < seen.end; };
  BinRows<Shape> rows(image, max(row, seen.begin), left, 1);
  rows.fetch(count > 0 && there(row));
#pragma unroll 1
  for (int i = 0; i < count; ++i, ++row) {
    take(rows, i + 1 < count && there(row + 1));
    if (there(row)) windows.template update<kEnters, kWhole>(raw);
    tell();
  }
}

/// The sum of T over the bins of the window around (y, x), by a whole warp, in all lanes. `counts` are zero before and
/// behind.
template <class Shape>
__device__ __forceinline__ std::int64_t count_anew(const BinImage& image, int y, int x, unsigned* counts,
                                                   const std::int64_t* table) {
  constexpr int kPixels = Shape::kW * Shape::kW, kRounds = (kPixels + kWarp - 1) / kWarp;
  int bin[kRounds];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int pixel = static_cast<int>(threadIdx.x % kWarp) + i * kWarp;
    const int row = y - Shape::kHalf + pixel / Shape::kW, column = x - Shape::kHalf + pixel % Shape::kW;
    const bool there = pixel < kPixels && row >= 0 && row < image.h && column >= 0 && column < image.w;
    bin[i] = there ? image.bins[row * image.pitch + column] : -1;
  }
  std::int64_t sum = 0;
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    if (bin[i] < 0) continue;
    const unsigned count = atomicAdd(counts + bin[i], 1U);
    sum += table[count + 1] - table[count];
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    if (bin[i] >= 0) counts[bin[i]] = 0;
  }
  __syncwarp();
  const unsigned low = __reduce_add_sync(kAll, static_cast<unsigned>(sum & 0xFFFFFF));
  const unsigned high = __reduce_add_sync(kAll, static_cast<unsigned>(sum >> 24));
  return (static_cast<std::int64_t>(high) << 24) + low;
}

/// Whether the convolution has a NaN in the window around (y, x): as window_has_nan, with few registers.
template <int kW>
__device__ __forceinline__ bool finds_nan(const ConvImage& image, int y, int x) {
  bool nan = false;
#pragma unroll 1
  for (int i = 0; i < kW * kW; ++i) {
    const int row = y - kW / 2 + i / kW, column = x - kW / 2 + i % kW;
    if (row < 0 || row >= static_cast<int>(image.h) || column < 0 || column >= static_cast<int>(image.w)) {
      continue;
    }
    float sum = 0;
#pragma unroll 1
    for (int t = 0; t < 9; ++t) {
      const int above = row + t / 3 - static_cast<int>(image.pad_y);
      const int beside = column + t % 3 - static_cast<int>(image.pad_x);
      if (above < 0 || above >= static_cast<int>(image.input_h) || beside < 0 ||
          beside >= static_cast<int>(image.input_w)) {
        continue;
      }
      sum = __fmaf_rn(image.k[t], image.x[above * image.input_w + beside], sum);
    }
    nan |= isnan(sum);
  }
  return nan;
}

/// A warp of a team that labels: a pair of windows a lane, row by row, and their votes. A word has both.
template <class Shape>
struct PairLabels {
  static constexpr unsigned kOwn = 4, kTogether = 16;

  const LabelJob& job;
  const ConvImage& image;
  const BinImage& bins;
  const Strip<int>& strip;
  unsigned char* memory;
  int pair, column, counts;  // of a team; of the first window; where one window is counted anew
  bool nan;                  // there may be some
  unsigned flags =
      0;  // bit k: window k is around a pixel of the image; kOwn << k: this strip writes its label;
          // kTogether: both at once
  unsigned may = 0;  // halves of windows that are not at the image's sides
  int rows = 0;      // of a window, that lie in the image
  PairJudge judge[2];
  FollowedPair sums;
  unsigned here = 0, here_three = 0, above_three = 0;

  __device__ __forceinline__ PairLabels(const LabelJob& job, const ConvImage& image, const BinImage& bins,
                                        const Strip<int>& strip, unsigned char* memory,
                                        const TeamPlace<Shape>& place)
      : job(job),
        image(image),
        bins(bins),
        strip(strip),
        memory(memory),
        pair(place.lane + (place.role - Shape::kCounting) * (kWarp - 2)),
        column(strip.column + 2 * pair),
        counts(Shape::kAnew + (place.team * 2 + place.role - Shape::kCounting) * Shape::kAnewBins * 4),
        nan(may_have_nan<Shape>(bins, strip)) {
    const bool mine = place.lane > 0 && place.lane < kWarp - 1;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int x = column + k;
      const bool inside = x >= 0 && x < bins.w;
      if (inside) flags |= 1U << k;
      if (inside && mine) flags |= kOwn << k;
      if (x > 0 && x + 1 < bins.w) may |= 0xFFFFU << (16 * k);
    }
    const bool aligned = bins.w % 2 == 0 && reinterpret_cast<std::uintptr_t>(job.out) % 2 == 0;
    if (aligned && flags / kOwn == 3) flags |= kTogether;
  }

  /// Windows around no pixel are never in doubt.
  __device__ __forceinline__ PairJudge judge_of(int k) const {
    const int pixels = rows * inside_of(column + k, Shape::kW, bins.w);
    const auto* const from = reinterpret_cast<const uint4*>(memory + Shape::kJudges) + 2 * pixels;
    const uint4 a = from[0], b = from[1];
    const int there = (flags >> k & 1U) != 0 ? -1 : 0;
    return PairJudge{
        static_cast<int>(a.x),
        {static_cast<int>(a.y), static_cast<int>(a.z), static_cast<int>(a.w)},
        {static_cast<int>(b.x) & there, static_cast<int>(b.y) & there, static_cast<int>(b.z) & there},
        0};
  }

  /// Takes what the warps that count have told of a step. `slides`: in it rows have left, too.
  __device__ __forceinline__ void listen(const TeamPlace<Shape>& place, int step, bool slides) {
    const unsigned word = place.told(memory, 0, step)[pair] + place.told(memory, 1, step)[pair];
    slides ? sums.slide(word) : sums.grow(word);
  }

  /// Windows in doubt are counted by the warp together, one after the other, and those with a NaN have label 0.
  __device__ __forceinline__ unsigned settle(int y, const bool (&doubts)[2], unsigned bits) const {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const unsigned both = (doubts[0] ? 1U : 0U) | (doubts[1] ? 2U : 0U);
#pragma unroll 1
    for (int k = 0; k < 2; ++k) {
      unsigned bit = bits >> (16 * k) & 0xFFFFU;
      for (unsigned lanes = __ballot_sync(kAll, (both >> k & 1U) != 0); lanes != 0; lanes &= lanes - 1) {
        const int of = __ffs(static_cast<int>(lanes)) - 1, x = column - 2 * lane + 2 * of + k;
        const std::int64_t sum =
            count_anew<Shape>(bins, y, x, reinterpret_cast<unsigned*>(memory + counts), job.table);
        if (lane != of) continue;
        Finish finish;
        finish.set(rows * inside_of(x, Shape::kW, bins.w), job.table);
        bit = segment::bit_of(finish(sum), job.thresholds);
      }
      if (nan && (flags >> k & 1U) != 0 && finds_nan<Shape::kW>(image, y, column + k)) bit = 1;
      bits = (bits & ~(0xFFFFU << (16 * k))) | bit << (16 * k);
    }
    return bits;
  }

  /// Labels of row y, then those of the row above it vote.
  __device__ __forceinline__ void take(int y) {
    const int now = inside_of(y, Shape::kW, bins.h);
    if (now != rows) {
      rows = now;
#pragma unroll
      for (int k = 0; k < 2; ++k) judge[k] = judge_of(k);
    }
    const bool doubts[2] = {judge[0].doubts(sums.sum[0]), judge[1].doubts(sums.sum[1])};
    unsigned below = judge[0].bit(sums.sum[0]) | judge[1].bit(sums.sum[1]) << 16;
    if (__any_sync(kAll, doubts[0] | doubts[1] | nan)) below = settle(y, doubts, below);
    const unsigned left = __shfl_up_sync(kAll, below, 1), right = __shfl_down_sync(kAll, below, 1);
    const unsigned three =
        below + __funnelshift_r(below, right, 16) + __funnelshift_l(left, below, 16);  // with both neighbours
    if (y > strip.count_first) emit(y - 1, three);
    above_three = here_three, here_three = three, here = below;
  }

  /// Row y, whose labels are in `here`.
  __device__ __forceinline__ void emit(int y, unsigned below_three) const {
    const unsigned around = above_three + here_three + below_three - here;
    const unsigned inner = y > 0 && y + 1 < bins.h ? may : 0;
    const unsigned labels = segment::labels_of(segment::vote(here, around, inner));
    std::uint8_t* const row = job.out + static_cast<std::int64_t>(y) * bins.w + column;
    if ((flags & kTogether) != 0) {
      *reinterpret_cast<std::uint16_t*>(row) = static_cast<std::uint16_t>(labels | labels >> 8);
    } else {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        if ((flags & kOwn << k) != 0) row[k] = static_cast<std::uint8_t>(labels >> (16 * k));
      }
    }
  }

  /// After the last row: the image's last one has nothing below it.
  __device__ __forceinline__ void end() const {
    if (strip.count_last == bins.h) emit(bins.h - 1, 0);
  }
};

template <class Shape>
__device__ __forceinline__ void label_rows(const LabelJob& job, const ConvImage& image, const BinImage& bins,
                                           const Strip<int>& strip, const SeenRows<Shape>& seen,
                                           unsigned char* memory, const TeamPlace<Shape>& place) {
  PairLabels<Shape> labels(job, image, bins, strip, memory, place);
  const int before = first_steps(seen) - 1;  // steps that complete no row
  int y = strip.first;
#pragma unroll 1
  for (int step = 0; y < strip.last; ++step) {
    meet(place.team, Shape::kTeam);
    labels.listen(place, step, step > before);
    if (step >= before) labels.take(y++);
  }
  labels.end();
}

/// The strip of a team; nothing in it: there is none. Neighbours go to different CTAs, so that none has many at the sides.
template <class Shape>
__device__ __forceinline__ Strip<int> team_strip(const TeamCut& cut, const BinImage& bins, int team) {
  const int number = team * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
  if (number >= cut.strips) return Strip<int>{};
  const TeamCut::Place place = cut.place(number);
  const int last = min(place.first + place.rows, bins.h);
  return Strip<int>{.column = place.column * Shape::kOwn - Shape::kOwnFirst,
                    .first = max(place.first - 1, 0),
                    .last = min(last + 1, bins.h),
                    .count_first = place.first,
                    .count_last = last,
                    .own_first = Shape::kOwnFirst,
                    .own_last = Shape::kOwnFirst + Shape::kOwn};
}

/// What prepare_fours leaves. Before a barrier of the CTA.
template <class Shape>
__device__ __forceinline__ void prepare_teams(unsigned char* memory, const uint4* tables) {
  prepare_fours<Shape>(memory, tables);
  auto* const counts = reinterpret_cast<unsigned*>(memory + Shape::kAnew);
  for (int i = threadIdx.x; i < Shape::kTeams * 2 * Shape::kAnewBins; i += Shape::kThreads) counts[i] = 0;
}

/// A team labels its strip.
template <class Shape>
__device__ __forceinline__ void label_strip(const LabelJob& job, const ConvImage& image, const BinImage& bins,
                                            const Strip<int>& strip, unsigned char* memory,
                                            const TeamPlace<Shape>& place) {
  const SeenRows<Shape> seen(bins, strip);
  if (place.role >= Shape::kCounting) {
    label_rows(job, image, bins, strip, seen, memory, place);
  } else if (place.role == 0) {
    seen.whole ? count_rows<Shape, true, true>(bins, strip, seen, memory, place)
               : count_rows<Shape, true, false>(bins, strip, seen, memory, place);
  } else {
    seen.whole ? count_rows<Shape, false, true>(bins, strip, seen, memory, place)
               : count_rows<Shape, false, false>(bins, strip, seen, memory, place);
  }
}

}  // namespace fulcrum::backends::cuda::entropy
