// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d on the device: which form of conv2d.cuh a call takes.
#include "backends/cuda/conv2d.cuh"

#include <span>

namespace fulcrum::backends::cuda::kernels {
namespace {

using namespace conv;

enum Dim { kBatch, kH, kW, kKh, kKw };
enum Scalar { kStrideY, kStrideX, kPadY, kPadX };

Conv conv_of(const fulcrum_args& a) {
  Conv c{.x = a.in<float>(0),
         .k = a.in<float>(1),
         .y = a.out<float>(2),
         .batch = a.dim[kBatch],
         .h = a.dim[kH],
         .w = a.dim[kW],
         .kh = a.dim[kKh],
         .kw = a.dim[kKw],
         .stride_y = a.scalar[kStrideY].i,
         .stride_x = a.scalar[kStrideX].i,
         .pad_y = a.scalar[kPadY].i,
         .pad_x = a.scalar[kPadX].i};
  c.ho = output_size(c.h, c.kh, c.stride_y, c.pad_y);
  c.wo = output_size(c.w, c.kw, c.stride_x, c.pad_x);
  return c;
}

/// Any stride, and kernels that would need a tile where there are few: an output a thread.
__global__ void __launch_bounds__(kTileThreads) conv_strided(Conv c) {
  __shared__ float weight[kLargest * kLargest];
  follow();
  for (int i = threadIdx.x; i < c.kh * c.kw; i += kTileThreads) weight[i] = c.k[i];
  __syncthreads();
  const std::int64_t output = static_cast<std::int64_t>(blockIdx.x) * kTileThreads + threadIdx.x;
  if (output >= c.batch * c.ho * c.wo) return;
  const std::int64_t row = output / c.wo, image = row / c.ho;
  const std::int64_t top = row % c.ho * c.stride_y - c.pad_y, left = output % c.wo * c.stride_x - c.pad_x;
  const int kw = static_cast<int>(c.kw);
  const int first_row = static_cast<int>(max(std::int64_t{0}, -top)),
            last_row = static_cast<int>(min(c.kh, c.h - top));
  const int first_column = static_cast<int>(max(std::int64_t{0}, -left)),
            last_column = static_cast<int>(min(c.kw, c.w - left));
  const float* window = c.x + (image * c.h + top) * c.w + left;
  float sum = 0;
  for (int i = first_row; i < last_row; ++i) {
    for (int j = first_column; j < last_column; ++j) {
      sum = __fmaf_rn(weight[i * kw + j], window[i * c.w + j], sum);
    }
  }
  c.y[output] = sum;
}

fulcrum_status run_strided(const Conv& c, void* stream, std::int64_t count) {
  const std::int64_t ctas = divide_up(c.batch * c.ho * c.wo, kTileThreads);
  return streaming::launch(conv_strided,
                           streaming::Launch{ctas, kTileThreads, streaming::can_follow(nullptr) != 0}, stream,
                           count, c);
}

/// Whether the tiles of a call would leave most of the device idle: 89 x 7 pixels under 7 x 7 taps are three.
bool has_few_tiles(const Conv& c) {
  const std::int64_t tiles = divide_up(c.wo, kColumns) * divide_up(c.ho, kTileRows) * c.batch;
  return !fits_rows(c) && !fits_loose(c) && 2 * tiles < device().sms;
}

template <bool kOverlaps>
fulcrum_status run(const fulcrum_args* a, void* stream, std::int64_t count) {
  const Conv c = conv_of(*a);
  if (c.batch == 0) return done();
  if (c.stride_y != 1 || c.stride_x != 1 || has_few_tiles(c)) return run_strided(c, stream, count);
  return enqueue(c, kOverlaps, NoNote{}, stream, count);
}

/// Rows of a warp fixed; what does not fit the rows form goes the usual way.
template <int kRows, int kWarps, bool kBeside = false>
fulcrum_status run_rows(const fulcrum_args* a, void* stream, std::int64_t count) {
  const Conv c = conv_of(*a);
  if (c.batch == 0 || c.kh != 3 || !fits_rows(c)) return run<true>(a, stream, count);
  return enqueue_rows(c, RowShape{kRows, kWarps, kBeside}, true, NoNote{}, stream, count);
}

template <auto kEntry>
fulcrum_kernel make_kernel(const char* variant, bool everywhere) {
  return fulcrum_kernel{.variant = variant,
                        .level = 2,
                        .isa = streaming::isa,
                        .supports = everywhere ? nullptr : streaming::can_follow,
                        .run = kEntry};
}

}  // namespace

std::span<const fulcrum_kernel> conv2d() {
  static const fulcrum_kernel kernels[] = {
      make_kernel<run<true>>("default", true), make_kernel<run<false>>("plain", false),
      make_kernel<run_rows<4, 4, true>>("beside", false), make_kernel<run_rows<2, 4>>("rows2", false)};
  return kernels;
}

}  // namespace fulcrum::backends::cuda::kernels
