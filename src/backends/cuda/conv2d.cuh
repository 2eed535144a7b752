// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Single-channel convolution on the device. An output is one chain of fma over its taps in row-major order, and taps in
// the padding are skipped, so the bits are those of the CPU. Three forms: square kernels of 3, 5 and 7 with the columns
// padded to equal width keep rows in registers; other kernels with strides of 1 go through tiles in shared memory; other
// strides read pixels one by one. A note takes what a follower wants to know of the outputs (the fused pipeline).
#pragma once

#include <cstdint>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::conv {

using streaming::divide_up;
using streaming::follow;

inline constexpr int kWarp = 32;
inline constexpr int kColumns = 4 * kWarp;  // outputs of a warp along a row
inline constexpr int kLargest = 31;         // taps along an axis

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
  float4 own;
  float4 beside;  // lane 0: left of it; lane 31: right of it; kSide 1: only .x

  __device__ __forceinline__ void load(const float* row, std::int64_t column, bool there, bool has_left,
                                       bool has_right, int lane) {
    own = beside = make_float4(0, 0, 0, 0);
    if (!there) return;
    own = *reinterpret_cast<const float4*>(row + column);
    const bool left = lane == 0 && has_left, right = lane == kWarp - 1 && has_right;
    if constexpr (kSide == 1) {
      if (left || right) beside.x = row[left ? column - 1 : column + 4];
    } else {
      if (left || right) beside = *reinterpret_cast<const float4*>(row + (left ? column - 4 : column + 4));
    }
  }

  /// Pixels -kSide .. 3 + kSide of the thread's first.
  __device__ __forceinline__ void spread(float (&v)[4 + 2 * kSide], int lane) const {
    const float mine[4] = {own.x, own.y, own.z, own.w};
    const float outer[4] = {beside.x, beside.y, beside.z, beside.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) v[kSide + i] = mine[i];
#pragma unroll
    for (int i = 0; i < kSide; ++i) {
      const float left = __shfl_up_sync(0xFFFFFFFFU, mine[4 - kSide + i], 1);
      const float right = __shfl_down_sync(0xFFFFFFFFU, mine[i], 1);
      v[i] = lane == 0 ? outer[kSide == 1 ? 0 : 4 - kSide + i] : left;
      v[4 + kSide + i] = lane == kWarp - 1 ? outer[i] : right;
    }
  }
};

/// kSize x kSize taps; a warp makes kRows rows of 128 outputs and reads each input row once, kAhead of them in flight.
/// Wants w = wo a multiple of four and rows on 16-byte boundaries.
template <int kSize, int kRows, int kMostThreads, int kPerSm, class Note>
__global__ void __launch_bounds__(kMostThreads, kPerSm) conv_rows(Conv c, Note note) {
  constexpr int kSide = kSize / 2, kInputs = kRows + kSize - 1;
  constexpr int kAhead = kSize == 3 ? kInputs : 4;
  follow();
  note.begin(c);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const Place at = place_of(c, kColumns, static_cast<int>(blockDim.x) / kWarp * kRows);
  const std::int64_t first = at.row + warp * kRows, column = at.column + 4 * lane;
  const bool inside = column<c.w, has_left = column> 0, has_right = column + 4 < c.w;
  const float* image = c.x + at.image * c.h * c.w;
  const std::int64_t top = first - c.pad_y;

  float weight[kSize * kSize];
#pragma unroll
  for (int t = 0; t < kSize * kSize; ++t) weight[t] = c.k[t];
  Strip<kSide> strip[kInputs];
  const auto there = [&](int q) { return top + q >= 0 && top + q < c.h; };  // the same for all lanes
#pragma unroll
  for (int q = 0; q < kAhead; ++q) {
    strip[q].load(image + (top + q) * c.w, column, inside && there(q), has_left, has_right, lane);
  }
  float sum[kRows][4] = {};
#pragma unroll
  for (int q = 0; q < kInputs; ++q) {
    if (q + kAhead < kInputs) {
      strip[q + kAhead < kInputs ? q + kAhead : 0].load(
          image + (top + q + kAhead) * c.w, column, inside && there(q + kAhead), has_left, has_right, lane);
    }
    if (there(q)) {
      float v[4 + 2 * kSide];
      strip[q].spread(v, lane);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int i = q - r;  // tap row
        if (i < 0 || i >= kSize) continue;
#pragma unroll
        for (int j = 0; j < kSize; ++j) {
#pragma unroll
          for (int o = 0; o < 4; ++o) {
            const int from = o + j;
            const bool counts = from < kSide ? has_left : from >= 4 + kSide ? has_right : true;
            if (counts) sum[r][o] = __fmaf_rn(weight[i * kSize + j], v[from], sum[r][o]);
          }
        }
      }
    }
    const int r = q - (kSize - 1);  // complete
    if (r >= 0 && inside && first + r < c.ho) {
      float* to = c.y + (at.image * c.ho + first + r) * c.wo + column;
      *reinterpret_cast<float4*>(to) = make_float4(sum[r < 0 ? 0 : r][0], sum[r < 0 ? 0 : r][1],
                                                   sum[r < 0 ? 0 : r][2], sum[r < 0 ? 0 : r][3]);
#pragma unroll
      for (int o = 0; o < 4; ++o) note.take(sum[r < 0 ? 0 : r][o]);
    }
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
};

inline bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

inline bool fits_rows(const Conv& c) {
  const bool square = c.kh == c.kw && (c.kh == 3 || c.kh == 5 || c.kh == 7);
  return square && c.stride_y == 1 && c.stride_x == 1 && 2 * c.pad_x == c.kw - 1 && c.w % 4 == 0 &&
         is_aligned(c.x) && is_aligned(c.y);
}

inline RowShape row_shape(const Conv& c) {
  const std::int64_t strips = divide_up(c.wo, kColumns) * c.batch * c.ho, sms = device().sms;
  if (strips >= 128 * sms) return RowShape{8, 8};
  if (strips >= 32 * sms) return RowShape{4, 8};
  return strips >= 16 * sms ? RowShape{2, 4} : RowShape{1, 4};
}

template <int kSize, int kRows, class Note>
fulcrum_status launch_rows(const Conv& c, int warps, bool overlaps, const Note& note, void* stream,
                           std::int64_t count) {
  const std::int64_t ctas = divide_up(c.wo, kColumns) * divide_up(c.ho, warps * kRows) * c.batch;
  const streaming::Launch shape{ctas, warps * kWarp, overlaps && streaming::can_follow(nullptr) != 0};
  constexpr int kPerSm = kSize > 3 ? 1 : kRows == 8 ? 2 : 3;
  return streaming::launch(conv_rows<kSize, kRows, 256, kPerSm, Note>, shape, stream, count, c, note);
}

/// `chosen`: rows 0: by the shape.
template <class Note>
fulcrum_status enqueue_rows(const Conv& c, RowShape chosen, bool overlaps, const Note& note, void* stream,
                            std::int64_t count) {
  const RowShape s = chosen.rows > 0 ? chosen : row_shape(c);
  const auto go = [&](auto launcher) { return launcher(c, s.warps, overlaps, note, stream, count); };
  if (c.kh == 3) {
    if (s.rows == 8) return go(launch_rows<3, 8, Note>);
    if (s.rows == 4) return go(launch_rows<3, 4, Note>);
    return s.rows == 2 ? go(launch_rows<3, 2, Note>) : go(launch_rows<3, 1, Note>);
  }
  if (c.kh == 5) return s.rows >= 4 ? go(launch_rows<5, 8, Note>) : go(launch_rows<5, 2, Note>);
  return s.rows >= 4 ? go(launch_rows<7, 8, Note>) : go(launch_rows<7, 2, Note>);
}

/// `count` calls of strides 1 and a batch that is not empty.
template <class Note>
fulcrum_status enqueue(const Conv& c, bool overlaps, const Note& note, void* stream, std::int64_t count) {
  if (fits_rows(c)) return enqueue_rows(c, RowShape{0, 0}, overlaps, note, stream, count);
  const std::int64_t ctas = divide_up(c.wo, kColumns) * divide_up(c.ho, kTileRows) * c.batch;
  const streaming::Launch shape{ctas, kTileThreads, overlaps && streaming::can_follow(nullptr) != 0, 1,
                                tile_bytes(c.kh, c.kw)};
  return streaming::launch(conv_tiles<Note>, shape, stream, count, c, note);
}

}  // namespace fulcrum::backends::cuda::conv
