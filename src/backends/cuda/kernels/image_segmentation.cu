// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// image_segmentation on the device in one pass over memory: a warp makes rows of 128 labels, four a thread, holds the
// labels of the rows above and below, takes those beside it by shuffles, and votes on them. Labels of the first pass
// that other warps need too are computed by each of them.
#include "backends/cuda/segment.cuh"

#include <span>

#include "backends/cuda/streaming.cuh"

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace streaming;
using segment::Thresholds;

constexpr int kWarp = 32, kWarps = 8;
constexpr int kColumns = 4 * kWarp;

struct Image {
  const float* x;
  std::uint8_t* out;
  std::int64_t h, w;
  Thresholds thresholds;
  bool smooth;
};

/// Labels of four pixels of a row as bits, two in a word, and the sums of three neighbours along the row.
struct Row {
  unsigned own[2], three[2];
};

template <bool kAligned>
__device__ __forceinline__ float4 load_four(const float* row, std::int64_t column, std::int64_t w) {
  if constexpr (kAligned) {
    return column < w ? *reinterpret_cast<const float4*>(row + column) : make_float4(0, 0, 0, 0);
  } else {
    return make_float4(column < w ? row[column] : 0, column + 1 < w ? row[column + 1] : 0,
                       column + 2 < w ? row[column + 2] : 0, column + 3 < w ? row[column + 3] : 0);
  }
}

template <bool kAligned>
__device__ __forceinline__ void store_four(std::uint8_t* to, unsigned labels, std::int64_t column,
                                           std::int64_t w) {
  if constexpr (kAligned) {
    *reinterpret_cast<unsigned*>(to) = labels;
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (column + i < w) to[i] = static_cast<std::uint8_t>(labels >> (8 * i));
    }
  }
}

__device__ __forceinline__ Row row_of(float4 x, float beside, const Thresholds& t, int lane) {
  Row row;
  row.own[0] = segment::bit_of(x.x, t) | segment::bit_of(x.y, t) << 16;
  row.own[1] = segment::bit_of(x.z, t) | segment::bit_of(x.w, t) << 16;
  const unsigned outer = segment::bit_of(beside, t);
  unsigned left = __shfl_up_sync(0xFFFFFFFFU, row.own[1] >> 16, 1);
  unsigned right = __shfl_down_sync(0xFFFFFFFFU, row.own[0] & 0xFFFFU, 1);
  if (lane == 0) left = outer;
  if (lane == kWarp - 1) right = outer;
  const unsigned middle = __funnelshift_r(row.own[0], row.own[1], 16);  // pixels 1 and 2
  row.three[0] = (left | row.own[0] << 16) + row.own[0] + middle;
  row.three[1] = middle + row.own[1] + (row.own[1] >> 16 | right << 16);
  return row;
}

/// What a thread has of a row before it is labelled.
struct Pixels {
  float4 own;
  float beside;  // lane 0: left of the warp; lane 31: right of it
};

/// A warp makes `rows` rows of 128 labels; two rows of pixels are in flight.
template <bool kAligned>
__global__ void __launch_bounds__(kWarps* kWarp, 4) label_and_vote(Image image, int rows) {
  constexpr int kAhead = 2;
  follow();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t across = (image.w + kColumns - 1) / kColumns;
  const std::int64_t first = (blockIdx.x / across * kWarps + warp) * rows;
  const std::int64_t column = blockIdx.x % across * kColumns + 4 * lane;
  if (first >= image.h) return;  // the whole warp

  const std::int64_t beside_at = lane == 0 ? column - 1 : column + 4;
  const bool has_beside = (lane == 0 || lane == kWarp - 1) && beside_at >= 0 && beside_at < image.w;
  const std::int64_t last = min(first + rows, image.h);
  const auto load = [&](std::int64_t y) {
    Pixels pixels{make_float4(0, 0, 0, 0), 0};
    if (y < 0 || y >= image.h || y > last) return pixels;
    pixels.own = load_four<kAligned>(image.x + y * image.w, column, image.w);
    if (has_beside) pixels.beside = image.x[y * image.w + beside_at];
    return pixels;
  };
  unsigned may[2] = {};  // pixels that have eight neighbours, as far as columns tell
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool inner = image.smooth && column + i > 0 && column + i + 1 < image.w;
    if (inner) may[i / 2] |= 0xFFFFU << (16 * (i % 2));
  }
  Pixels next[kAhead];
#pragma unroll
  for (int u = 0; u < kAhead; ++u) next[u] = load(first - 1 + u);
  Row above = {}, here = {};
  std::uint8_t* to = image.out + (first - 2) * image.w + column;
#pragma unroll 1
  for (std::int64_t base = first - 1; base <= last; base += kAhead) {
#pragma unroll
    for (int u = 0; u < kAhead; ++u) {
      const std::int64_t y = base + u;  // of `below`
      const Row below = row_of(next[u].own, next[u].beside, image.thresholds, lane);
      next[u] = load(y + kAhead);
      const bool inner = y > 1 && y < image.h;
      unsigned labels[2];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        const unsigned around = above.three[p] + here.three[p] + below.three[p] - here.own[p];
        labels[p] = segment::labels_of(segment::vote(here.own[p], around, inner ? may[p] : 0));
      }
      above = here, here = below;
      if (y > first && y <= last && column < image.w) {
        store_four<kAligned>(to, __byte_perm(labels[0], labels[1], 0x6420), column, image.w);
      }
      to += image.w;
    }
  }
}

fulcrum_status launch_rows(const Image& image, int rows, bool overlaps, void* stream, std::int64_t count) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(image.x) | 4 * reinterpret_cast<std::uintptr_t>(image.out);
  const bool aligned = image.w % 4 == 0 && bits % 16 == 0;
  const std::int64_t ctas = divide_up(image.w, kColumns) * divide_up(image.h, kWarps * rows);
  const Launch shape{ctas, kWarps * kWarp, overlaps && can_follow(nullptr) != 0};
  return launch(aligned ? label_and_vote<true> : label_and_vote<false>, shape, stream, count, image, rows);
}

Image image_of(const fulcrum_args& a) {
  return Image{
      a.in<float>(0),    a.out<std::uint8_t>(1), a.dim[0], a.dim[1], segment::thresholds_of(a.scalar[0].f),
      a.scalar[1].i == 0};
}

/// kRows 0: few rows of a warp while the device is not full.
template <int kRows, bool kOverlaps>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const Image image = image_of(*a);
  if (image.h == 0 || image.w == 0) return done();
  const std::int64_t strips = divide_up(image.w, kColumns) * image.h, sms = device().sms;
  const int fitting = strips >= 512 * sms ? 16 : strips >= 128 * sms ? 8 : strips >= 32 * sms ? 4 : 1;
  return launch_rows(image, kRows > 0 ? kRows : fitting, kOverlaps, stream, count);
}

template <auto kEntry>
fulcrum_kernel make_kernel(const char* variant, bool everywhere) {
  return fulcrum_kernel{.variant = variant,
                        .level = 2,
                        .isa = isa,
                        .supports = everywhere ? nullptr : can_follow,
                        .run = kEntry};
}

}  // namespace

std::span<const fulcrum_kernel> image_segmentation() {
  static const fulcrum_kernel kernels[] = {
      make_kernel<run<0, true>>("default", true), make_kernel<run<0, false>>("plain", false),
      make_kernel<run<8, true>>("rows8", false), make_kernel<run<32, true>>("rows32", false),
      make_kernel<run<4, true>>("rows4", false)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
