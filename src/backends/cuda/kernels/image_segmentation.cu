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

constexpr int kWarp = 32, kWarps = 4;
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

template <int kRows, bool kAligned>
__global__ void __launch_bounds__(kWarps* kWarp, kRows == 8 ? 6 : 8) label_and_vote(Image image) {
  follow();
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int64_t across = (image.w + kColumns - 1) / kColumns;
  const std::int64_t first = (blockIdx.x / across * kWarps + warp) * kRows;
  const std::int64_t column = blockIdx.x % across * kColumns + 4 * lane;
  if (first >= image.h) return;  // the whole warp

  float4 x[kRows + 2];
  float beside[kRows + 2];
  const std::int64_t beside_at = lane == 0 ? column - 1 : column + 4;
  const bool has_beside = (lane == 0 || lane == kWarp - 1) && beside_at >= 0 && beside_at < image.w;
#pragma unroll
  for (int q = 0; q < kRows + 2; ++q) {
    const std::int64_t y = first + q - 1;
    const bool there = y >= 0 && y < image.h;
    x[q] = there ? load_four<kAligned>(image.x + y * image.w, column, image.w) : make_float4(0, 0, 0, 0);
    beside[q] = there && has_beside ? image.x[y * image.w + beside_at] : 0;
  }

  unsigned may[2] = {};  // pixels that have eight neighbours, as far as columns tell
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const bool inner = image.smooth && column + i > 0 && column + i + 1 < image.w;
    if (inner) may[i / 2] |= 0xFFFFU << (16 * (i % 2));
  }
  Row above = row_of(x[0], beside[0], image.thresholds, lane);
  Row here = row_of(x[1], beside[1], image.thresholds, lane);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t y = first + r;
    const Row below = row_of(x[r + 2], beside[r + 2], image.thresholds, lane);
    const bool inner = y > 0 && y + 1 < image.h;
    unsigned labels[2];
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const unsigned around = above.three[p] + here.three[p] + below.three[p] - here.own[p];
      labels[p] = segment::labels_of(segment::vote(here.own[p], around, inner ? may[p] : 0));
    }
    const unsigned packed = __byte_perm(labels[0], labels[1], 0x6420);
    std::uint8_t* to = image.out + y * image.w + column;
    if (y < image.h && column < image.w) {
      if constexpr (kAligned) {
        *reinterpret_cast<unsigned*>(to) = packed;
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (column + i < image.w) to[i] = static_cast<std::uint8_t>(packed >> (8 * i));
        }
      }
    }
    above = here, here = below;
  }
}

template <int kRows>
fulcrum_status launch_rows(const Image& image, bool overlaps, void* stream, std::int64_t count) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(image.x) | 4 * reinterpret_cast<std::uintptr_t>(image.out);
  const bool aligned = image.w % 4 == 0 && bits % 16 == 0;
  const std::int64_t ctas = divide_up(image.w, kColumns) * divide_up(image.h, kWarps * kRows);
  const Launch shape{ctas, kWarps * kWarp, overlaps && can_follow(nullptr) != 0};
  return launch(aligned ? label_and_vote<kRows, true> : label_and_vote<kRows, false>, shape, stream, count,
                image);
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
  if constexpr (kRows > 0) {
    return launch_rows<kRows>(image, kOverlaps, stream, count);
  } else {
    const std::int64_t strips = divide_up(image.w, kColumns) * image.h, sms = device().sms;
    if (strips >= 128 * sms) return launch_rows<8>(image, kOverlaps, stream, count);
    if (strips >= 32 * sms) return launch_rows<4>(image, kOverlaps, stream, count);
    return launch_rows<1>(image, kOverlaps, stream, count);
  }
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
      make_kernel<run<8, true>>("rows8", false), make_kernel<run<4, true>>("rows4", false)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
