// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Single-channel convolution on the device. An output is one chain of fma over its taps in row-major order, and taps in
// the padding are skipped, so the bits are those of the CPU. Square kernels of 3, 5 and 7 keep sums
// of several rows in registers while input rows pass by; other kernels with strides of 1 go through tiles in shared
// memory; other strides read pixels one by one. A note takes what a follower wants to know of the outputs (the fused pipeline).
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::conv {

using streaming::divide_up;
using streaming::follow;

inline constexpr int kWarp = 32;
inline constexpr int kColumns = 4 * kWarp;  // outputs of a warp along a row
inline constexpr int kLargest = 31;         // taps along an axis
inline constexpr int kBlockWarps = 4;       // of a CTA of conv_block

struct Conv {
  const float* x;
  const float* k;
  float* y;
  std::int64_t batch, h, w, kh, kw, stride_y, stride_x, pad_y, pad_x, ho, wo;
};

/// Outputs along one axis.
constexpr std::int64_t output_size(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                                   std::int64_t pad) {
  return (size + 2 * pad - kernel) / stride + 1;
}

/// Nothing to note.
struct NoNote {
  __device__ void begin(const Conv&) const {}
  __device__ void take(float) {}
  __device__ void end() const {}
};

/// A pack of `cta_columns` by `cta_rows` outputs of one image for each CTA, columns first, images last.
struct Place {
  std::int64_t image, row, column;
};
__device__ __forceinline__ Place place_of(const Conv& c, int cta_columns, int cta_rows) {
  const std::int64_t across = (c.wo + cta_columns - 1) / cta_columns, down = (c.ho + cta_rows - 1) / cta_rows;
  const std::int64_t block = blockIdx.x;
  return Place{block / across / down, block / across % down * cta_rows, block % across * cta_columns};
}

/// Four pixels of a row and those next to them that lie in other threads' hands: kSide on each side.
template <int kSide>
struct Strip {
  using Beside = std::conditional_t<kSide == 1, float, float4>;
  float4 own;
  Beside beside;  // lane 0: left of the warp; lane 31: right of it

  __device__ __forceinline__ void load(const float* from, bool there, bool has_beside, int beside_at) {
    own = make_float4(0, 0, 0, 0);
    beside = Beside{};
    if (there) own = *reinterpret_cast<const float4*>(from);
    if (there && has_beside) beside = *reinterpret_cast<const Beside*>(from + beside_at);
  }

  /// Pixels -kSide .. 3 + kSide of the thread's first.
  __device__ __forceinline__ void spread(float (&v)[4 + 2 * kSide], int lane) const {
    const float mine[4] = {own.x, own.y, own.z, own.w};
    float outer[4];
    if constexpr (kSide == 1) {
      outer[0] = outer[3] = beside;
    } else {
      outer[0] = beside.x, outer[1] = beside.y, outer[2] = beside.z, outer[3] = beside.w;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) v[kSide + i] = mine[i];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      const float left = __shfl_up_sync(0xFFFFFFFFU, mine[4 - kSide + i], 1);
      const float right = __shfl_down_sync(0xFFFFFFFFU, mine[i], 1);
      v[i] = lane == 0 ? outer[4 - kSide + i] : left;
      v[4 + kSide + i] = lane == kWarp - 1 ? outer[i] : right;
    }
  }
};

/// One input row under kSize rows of outputs: it is the last row of taps of the first of them, which is then complete,
/// and the first of the last. `partial` has the sums with 1, 2, ... rows of taps; pixel(o, j) is what output o has under
/// tap column j, counts(o, j) whether that lies in the image.
template <int kSize, class Pixel, class Counts>
__device__ __forceinline__ void add_row(const Pixel& pixel, const Counts& counts,
                                        const float (&weight)[kSize * kSize], float (&partial)[kSize - 1][4],
                                        float (&complete)[4]) {
#pragma unroll
  for (int i = kSize - 1; i >= 0; --i) {  // tap row
#pragma unroll
    for (int o = 0; o < 4; ++o) {
      float sum = i == 0 ? 0 : partial[i == 0 ? 0 : i - 1][o];
#pragma unroll
      for (int j = 0; j < kSize; ++j) {
        if (counts(o, j)) sum = __fmaf_rn(weight[i * kSize + j], pixel(o, j), sum);
      }
      (i == kSize - 1 ? complete : partial[i == kSize - 1 ? 0 : i])[o] = sum;
    }
  }
}

/// A row without pixels under kSize rows of outputs.
template <int kSize>
__device__ __forceinline__ void skip_row(float (&partial)[kSize - 1][4], float (&complete)[4]) {
#pragma unroll
  for (int o = 0; o < 4; ++o) {
    complete[o] = partial[kSize - 2][o];
#pragma unroll
    for (int i = kSize - 2; i > 0; --i) partial[i][o] = partial[i - 1][o];
    partial[0][o] = 0;
  }
}

/// The rows of a warp: outputs [first, first + count) of an image; input rows from the first one's first tap row on, of
/// which [begin, end) are in the image.
struct WarpRows {
  std::int64_t first, top;
  int count, begin, end;

  __device__ __forceinline__ WarpRows(const Conv& c, std::int64_t row, int rows)
      : first(row),
        top(row - c.pad_y),
        count(static_cast<int>(min(static_cast<std::int64_t>(rows), c.ho - row))),
        begin(static_cast<int>(max(c.pad_y - row, std::int64_t{0}))),
        end(static_cast<int>(min(c.h - top, count + c.kh - 1))) {}
  __device__ __forceinline__ bool has(int q) const { return q >= begin && q < end; }
};

/// kSize x kSize taps; a warp makes `rows` rows of 128 outputs and reads each input row once, kAhead of them in flight.
/// Wants w = wo a multiple of four and rows on 16-byte boundaries. The loop is kept short: instructions that are run
/// once for each row of a long list cost more to fetch than they save.
template <int kSize, int kAhead, int kPerSm, class Note>
__global__ void __launch_bounds__(256, kPerSm) conv_rows(Conv c, int rows, Note note) {
  constexpr int kSide = kSize / 2;
  follow();
  note.begin(c);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const Place at = place_of(c, kColumns, static_cast<int>(blockDim.x) / kWarp * rows);
  const WarpRows r(c, at.row + warp * rows, rows);
  const std::int64_t column = at.column + 4 * lane;
  const bool inside = column<c.w, has_left = column> 0, has_right = column + 4 < c.w;
  const bool has_beside = (lane == 0 && has_left) || (lane == kWarp - 1 && has_right);
  const int beside_at = lane > 0 ? 4 : kSide == 1 ? -1 : -4;
  const float* from = c.x + (at.image * c.h + r.top) * c.w + column;
  float* to = c.y + (at.image * c.ho + r.first) * c.wo + column;

  float weight[kSize * kSize];
#pragma unroll
  for (int t = 0; t < kSize * kSize; ++t) weight[t] = c.k[t];
  Strip<kSide> strip[kAhead];
#pragma unroll
  for (int q = 0; q < kAhead; ++q) {
    strip[q].load(from, inside && r.has(q), has_beside, beside_at);
    from += c.w;
  }
  float partial[kSize - 1][4] = {};
  const auto counts = [&](int o, int j) {
    return o + j < kSide ? has_left : o + j >= 4 + kSide ? has_right : true;
  };
#pragma unroll 1
  for (int base = 0; base < r.count + kSize - 1; base += kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const int q = base + u;
      float v[4 + 2 * kSide], complete[4];
      strip[u].spread(v, lane);
      strip[u].load(from, inside && r.has(q + kAhead), has_beside, beside_at);
      from += c.w;
      if (r.has(q)) {  // the same for all lanes
        add_row<kSize>([&](int o, int j) { return v[o + j]; }, counts, weight, partial, complete);
      } else {
        skip_row<kSize>(partial, complete);
      }
      if (q < kSize - 1 || q >= r.count + kSize - 1) continue;
      if (inside) {
        *reinterpret_cast<float4*>(to) = make_float4(complete[0], complete[1], complete[2], complete[3]);
#pragma unroll
        for (int o = 0; o < 4; ++o) note.take(complete[o]);
      }
      to += c.wo;
    }
  }
  note.end();
}

/// The same for kernels of 3 x 3 and few rows of a warp: all loads go out before the first is used. The warps of a CTA
/// lie below each other or, kBeside, next to each other.
template <int kRows, bool kBeside, class Note>
__global__ void __launch_bounds__(kBlockWarps* kWarp, 7) conv_block(Conv c, Note note) {
  constexpr int kSize = 3, kInputs = kRows + kSize - 1;
  follow();
  note.begin(c);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const Place at =
      place_of(c, kBeside ? kBlockWarps * kColumns : kColumns, kBeside ? kRows : kBlockWarps * kRows);
  const WarpRows r(c, at.row + (kBeside ? 0 : warp * kRows), kRows);
  const std::int64_t column = at.column + (kBeside ? warp * kColumns : 0) + 4 * lane;
  const bool inside = column<c.w, has_left = column> 0, has_right = column + 4 < c.w;
  const bool has_beside = (lane == 0 && has_left) || (lane == kWarp - 1 && has_right);
  const float* from = c.x + (at.image * c.h + r.top) * c.w + column;
  float weight[kSize * kSize];
#pragma unroll
  for (int t = 0; t < kSize * kSize; ++t) weight[t] = c.k[t];
  Strip<1> strip[kInputs];
#pragma unroll
  for (int q = 0; q < kInputs; ++q) {
    strip[q].load(from + q * c.w, inside && r.has(q), has_beside, lane > 0 ? 4 : -1);
  }
  float partial[kSize - 1][4] = {};
  float* to = c.y + (at.image * c.ho + r.first) * c.wo + column;
  const auto counts = [&](int o, int j) { return o + j < 1 ? has_left : o + j > 4 ? has_right : true; };
#pragma unroll
  for (int q = 0; q < kInputs; ++q) {
    float complete[4];
    if (r.has(q)) {  // the same for all lanes
      float v[6];
      strip[q].spread(v, lane);
      add_row<kSize>([&](int o, int j) { return v[o + j]; }, counts, weight, partial, complete);
    } else {
      skip_row<kSize>(partial, complete);
    }
    if (q < kSize - 1 || q >= r.count + kSize - 1 || !inside) continue;
    *reinterpret_cast<float4*>(to + (q - kSize + 1) * c.wo) =
        make_float4(complete[0], complete[1], complete[2], complete[3]);
#pragma unroll
    for (int o = 0; o < 4; ++o) note.take(complete[o]);
  }
  note.end();
}

/// The same without a wish for alignment or padding: a lane's four outputs lie 32 apart, and each reads its own pixels.
template <int kSize, class Note>
__global__ void __launch_bounds__(256, kSize == 3 ? 3 : 2) conv_loose(Conv c, int rows, Note note) {
  follow();
  note.begin(c);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const Place at = place_of(c, kColumns, static_cast<int>(blockDim.x) / kWarp * rows);
  const WarpRows r(c, at.row + warp * rows, rows);
  const std::int64_t column = at.column + lane, left = column - c.pad_x;
  const bool inner = at.column >= c.pad_x && at.column - c.pad_x + kColumns + kSize - 1 <= c.w;
  const float* from = c.x + (at.image * c.h + r.top) * c.w + left;
  float* to = c.y + (at.image * c.ho + r.first) * c.wo + column;
  unsigned inside = 0;  // bit kSize o + j: the image has a pixel under tap column j of output o
#pragma unroll
  for (int t = 0; t < 4 * kSize; ++t) {
    const std::int64_t x = left + kWarp * (t / kSize) + t % kSize;
    if (x >= 0 && x < c.w) inside |= 1U << t;
  }
  const auto counts = [&](int o, int j) { return inner || (inside >> (kSize * o + j) & 1) != 0; };

  float weight[kSize * kSize];
#pragma unroll
  for (int t = 0; t < kSize * kSize; ++t) weight[t] = c.k[t];
  float next[4][kSize], partial[kSize - 1][4] = {};
  const auto load = [&](int q) {
#pragma unroll
    for (int o = 0; o < 4; ++o) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) next[o][j] = r.has(q) && counts(o, j) ? from[kWarp * o + j] : 0;
    }
    from += c.w;
  };
  load(0);
#pragma unroll 1
  for (int q = 0; q < r.count + kSize - 1; ++q) {
    float v[4][kSize], complete[4];
#pragma unroll
    for (int o = 0; o < 4; ++o) {
#pragma unroll
      for (int j = 0; j < kSize; ++j) v[o][j] = next[o][j];
    }
    load(q + 1);
    if (r.has(q)) {
      add_row<kSize>([&](int o, int j) { return v[o][j]; }, counts, weight, partial, complete);
    } else {
      skip_row<kSize>(partial, complete);
    }
    if (q < kSize - 1) continue;
#pragma unroll
    for (int o = 0; o < 4; ++o) {
      if (column + kWarp * o >= c.wo) continue;
      to[kWarp * o] = complete[o];
      note.take(complete[o]);
    }
    to += c.wo;
  }
  note.end();
}

inline constexpr int kTileThreads = 256;
inline constexpr int kTileRows = 32;  // four of each warp
inline constexpr int kTilePerThread = 4;

/// Shared memory of a tile: the pixels under it, and the weights.
inline std::size_t tile_bytes(std::int64_t kh, std::int64_t kw) {
  return sizeof(float) * static_cast<std::size_t>((kTileRows + kh - 1) * (kColumns + kw - 1) + kh * kw);
}

/// A warp's four rows of 128 outputs out of the tile: each pixel of it serves four rows. kBorder: some taps lie left or
/// right of the image.
template <bool kBorder>
__device__ __forceinline__ void add_taps(const Conv& c, const float* tile, const float* weight, int pitch,
                                         std::int64_t top, std::int64_t left, int lane,
                                         float (&sum)[kTilePerThread][kTilePerThread]) {
  const int kh = static_cast<int>(c.kh), kw = static_cast<int>(c.kw);
  for (int q = 0; q < kh + kTilePerThread - 1; ++q) {
    if (top + q < 0 || top + q >= c.h) continue;
    for (int j = 0; j < kw; ++j) {
      float v[kTilePerThread];
#pragma unroll
      for (int o = 0; o < kTilePerThread; ++o) v[o] = tile[q * pitch + lane + kWarp * o + j];
#pragma unroll
      for (int r = 0; r < kTilePerThread; ++r) {
        if (q - r < 0 || q - r >= kh) continue;
        const float by = weight[(q - r) * kw + j];
#pragma unroll
        for (int o = 0; o < kTilePerThread; ++o) {
          const std::int64_t at = left + lane + kWarp * o + j;
          if (!kBorder || (at >= 0 && at < c.w)) sum[r][o] = __fmaf_rn(by, v[o], sum[r][o]);
        }
      }
    }
  }
}

/// Strides of 1, any kernel, any alignment: tiles of 32 rows of 128 outputs.
template <class Note>
__global__ void __launch_bounds__(kTileThreads) conv_tiles(Conv c, Note note) {
  extern __shared__ float tile[];
  follow();
  note.begin(c);
  const int thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;
  const int pitch = kColumns + static_cast<int>(c.kw) - 1, rows = kTileRows + static_cast<int>(c.kh) - 1;
  const Place at = place_of(c, kColumns, kTileRows);
  const std::int64_t top = at.row - c.pad_y, left = at.column - c.pad_x;
  const float* image = c.x + at.image * c.h * c.w;
  float* weight = tile + rows * pitch;
  for (int i = warp; i < rows; i += kTileThreads / kWarp) {
    const bool there = top + i >= 0 && top + i < c.h;
    for (int j = lane; j < pitch; j += kWarp) {
      const bool inside = there && left + j >= 0 && left + j < c.w;
      tile[i * pitch + j] = inside ? image[(top + i) * c.w + left + j] : 0;
    }
  }
  for (int i = thread; i < c.kh * c.kw; i += kTileThreads) weight[i] = c.k[i];
  __syncthreads();

  float sum[kTilePerThread][kTilePerThread] = {};
  const int first = warp * kTilePerThread;
  if (left >= 0 && left + pitch <= c.w) {
    add_taps<false>(c, tile + first * pitch, weight, pitch, top + first, left, lane, sum);
  } else {
    add_taps<true>(c, tile + first * pitch, weight, pitch, top + first, left, lane, sum);
  }
#pragma unroll
  for (int r = 0; r < kTilePerThread; ++r) {
    const std::int64_t row = at.row + first + r;
#pragma unroll
    for (int o = 0; o < kTilePerThread; ++o) {
      const std::int64_t column = at.column + lane + kWarp * o;
      if (row >= c.ho || column >= c.wo) continue;
      c.y[(at.image * c.ho + row) * c.wo + column] = sum[r][o];
      note.take(sum[r][o]);
    }
  }
  note.end();
}

/// How the rows form is cut: rows of a warp and warps of a CTA. Small images get as many CTAs as they can fill.
struct RowShape {
  int rows, warps;
  bool beside = false;  // the warps of a CTA lie next to each other, not below
};

inline bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

inline bool fits_loose(const Conv& c) {
  return c.kh == c.kw && (c.kh == 3 || c.kh == 5) && c.stride_y == 1 && c.stride_x == 1;
}
inline bool fits_rows(const Conv& c) {
  const bool square = c.kh == c.kw && (c.kh == 3 || c.kh == 5 || c.kh == 7);
  return square && c.stride_y == 1 && c.stride_x == 1 && 2 * c.pad_x == c.kw - 1 && c.w % 4 == 0 &&
         is_aligned(c.x) && is_aligned(c.y);
}

inline RowShape row_shape(const Conv& c) {
  const std::int64_t strips = divide_up(c.wo, kColumns) * c.batch * c.ho, sms = device().sms;
  if (strips >= 32 * sms) return RowShape{c.kh > 3 ? 8 : 4, 4};
  return strips >= 16 * sms ? RowShape{2, 4} : RowShape{1, 4};
}

/// Images that no cache holds are read and written in rows as long as a CTA can.
inline bool wants_long_rows(const Conv& c) {
  constexpr std::int64_t kStripsOfSm = 256;
  return c.wo >= 2 * kBlockWarps * kColumns &&
         divide_up(c.wo, kColumns) * c.batch * c.ho >= kStripsOfSm * device().sms;
}

template <class Note, class... More>
fulcrum_status launch_form(void (*kernel)(Conv, More...), const Conv& c, const RowShape& s, bool overlaps,
                           void* stream, std::int64_t count, const More&... more) {
  const int along = s.beside ? s.warps : 1, down = s.beside ? 1 : s.warps;
  const std::int64_t ctas = divide_up(c.wo, kColumns * along) * divide_up(c.ho, down * s.rows) * c.batch;
  const streaming::Launch shape{ctas, s.warps * kWarp, overlaps && streaming::can_follow(nullptr) != 0};
  return streaming::launch(kernel, shape, stream, count, c, more...);
}

/// `chosen`: rows 0: by the shape.
template <class Note>
fulcrum_status enqueue_rows(const Conv& c, RowShape chosen, bool overlaps, const Note& note, void* stream,
                            std::int64_t count) {
  RowShape s = chosen.rows > 0 ? chosen : row_shape(c);
  if (c.kh == 3) {
    if (chosen.rows == 0) s.beside = wants_long_rows(c);
    auto kernel = s.rows == 4   ? conv_block<4, false, Note>
                  : s.rows == 2 ? conv_block<2, false, Note>
                                : conv_block<1, false, Note>;
    if (s.beside) kernel = conv_block<4, true, Note>;
    return launch_form<Note>(kernel, c, s, overlaps, stream, count, note);
  }
  const auto kernel = c.kh == 5 ? conv_rows<5, 2, 2, Note> : conv_rows<7, 2, 2, Note>;
  return launch_form<Note>(kernel, c, s, overlaps, stream, count, s.rows, note);
}

template <int kSize, class Note>
fulcrum_status launch_loose(const Conv& c, bool overlaps, const Note& note, void* stream,
                            std::int64_t count) {
  const RowShape s = row_shape(c);
  return launch_form<Note>(conv_loose<kSize, Note>, c, s, overlaps, stream, count, s.rows, note);
}

/// `count` calls of strides 1 and a batch that is not empty.
template <class Note>
fulcrum_status enqueue(const Conv& c, bool overlaps, const Note& note, void* stream, std::int64_t count) {
  if (fits_rows(c)) return enqueue_rows(c, RowShape{0, 0}, overlaps, note, stream, count);
  if (fits_loose(c)) {
    return c.kh == 3 ? launch_loose<3>(c, overlaps, note, stream, count)
                     : launch_loose<5>(c, overlaps, note, stream, count);
  }
  const std::int64_t ctas = divide_up(c.wo, kColumns) * divide_up(c.ho, kTileRows) * c.batch;
  const streaming::Launch shape{ctas, kTileThreads, overlaps && streaming::can_follow(nullptr) != 0, 1,
                                tile_bytes(c.kh, c.kw)};
  return streaming::launch(conv_tiles<Note>, shape, stream, count, c, note);
}

}  // namespace fulcrum::backends::cuda::conv
