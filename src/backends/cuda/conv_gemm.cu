// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See conv_gemm.h. The product of the weights (channels x depth) with the
// windows of the image (depth x positions), whose second operand is read from
// the image as it is needed. Slabs of eight depths of both lie in a ring in
// shared memory, into which asynchronous copies of single elements bring the
// next ones. Taps outside of the image are zeros.
#include "backends/cuda/conv_gemm.h"

#include <limits>

namespace fulcrum::backends::cuda {
namespace {

constexpr int kSlab = 8;    // depths that arrive together
constexpr int kStages = 4;  // slabs in the ring
constexpr int kVector = 4;

/// Brings one element, or a zero, without waiting for it.
__device__ inline void copy_async(float* shared, const float* from, bool valid) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(valid ? 4 : 0));
}
__device__ inline void close_slab() { asm volatile("cp.async.commit_group;"); }
/// Until the oldest slab of the ring is there.
__device__ inline void wait_for_slab() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kStages - 2) : "memory");
}

/// What every thread needs to know, in the index type of the kernel.
template <class Index>
struct ConvGeometry {
  Index h, w, kh, kw, stride_y, stride_x, pad_y, pad_x, y_w;
  Index plane, row_step,
      channel_step;  // of the image: a channel, and from the end of a window's
                     // row to the next one
  Index depth, out;
  // How far the place inside a window moves when a thread's depth moves past
  // the other threads' of its slab.
  Index skip_channels, skip_rows, skip_columns;
  int64_t image, y_plane, positions;
  int channel_tiles;
};

/// A place inside the windows: channel, row and column as one depth, and the
/// element it stands for.
template <class Index>
struct Tap {
  Index row = 0, column = 0;
  int64_t offset = 0;

  __device__ void step(const ConvGeometry<Index>& g) {
    ++column;
    ++offset;
    if (column < g.kw) return;
    column = 0;
    offset += g.row_step;
    if (++row < g.kh) return;
    row = 0;
    offset += g.channel_step;
  }
  __device__ void skip(const ConvGeometry<Index>& g) {
    column += g.skip_columns;
    row += g.skip_rows;
    offset += int64_t{g.skip_channels} * g.plane + int64_t{g.skip_rows} * g.w + g.skip_columns;
    if (column >= g.kw) {
      column -= g.kw;
      ++row;
      offset += g.row_step;
    }
    if (row >= g.kh) {
      row -= g.kh;
      offset += g.channel_step;
    }
  }
};

/// kChannels x kPositions outputs a CTA, kRows x kColumns a thread.
template <int kChannels, int kPositions, int kRows, int kColumns, class Index>
struct ConvCta {
  static constexpr int kAcross = kPositions / kColumns, kDown = kChannels / kRows, kThreads = kAcross * kDown;
  static constexpr int kTapThreads = kThreads / kPositions;  // threads that share a position's depths
  static constexpr int kTaps = kSlab / kTapThreads;          // depths of one of them
  static constexpr int kWeights = kChannels * kSlab / kThreads;
  static constexpr int kWeightThreads = kSlab / kWeights;  // threads along a channel's depths
  static constexpr int kWeightPitch = kChannels + kVector, kWindowPitch = kPositions + kVector;
  static_assert(kTapThreads >= 1 && kTaps * kTapThreads == kSlab && kWeights * kWeightThreads == kSlab);
  static_assert(kRows % kVector == 0 && kColumns % kVector == 0);

  struct Shared {
    alignas(16) float weights[kStages][kSlab * kWeightPitch];
    alignas(16) float windows[kStages][kSlab * kWindowPitch];
  };

  const ConvGeometry<Index>& g;
  Shared& shared;
  int64_t first_position;
  Index first_channel;

  const float *image_begin, *weights_begin;

  // The thread's part of loading.
  const float* corner = nullptr;  // the element under its window's first tap,
                                  // which may lie outside of the image
  Index corner_y = 0, corner_x = 0;
  bool has_position = false;
  Tap<Index> tap;
  Index tap_depth = 0;
  const float* weight = nullptr;
  bool has_channel = false;
  Index weight_depth = 0;
  float sums[kRows][kColumns] = {};

  __device__ ConvCta(const ConvGeometry<Index>& geometry, Shared& memory, const float* x, const float* k)
      : g(geometry), shared(memory), image_begin(x), weights_begin(k) {
    const int64_t tile = blockIdx.x;
    first_channel = static_cast<Index>(tile % g.channel_tiles) * kChannels;
    first_position = tile / g.channel_tiles * kPositions;
    const int thread = static_cast<int>(threadIdx.x);
    const int64_t position = first_position + thread % kPositions;
    has_position = position < g.positions;
    const int64_t image = position / g.y_plane, inside = position % g.y_plane;
    corner_y = static_cast<Index>(inside / g.y_w) * g.stride_y - g.pad_y;
    corner_x = static_cast<Index>(inside % g.y_w) * g.stride_x - g.pad_x;
    corner = x + image * g.image + int64_t{corner_y} * g.w + corner_x;
    tap_depth = thread / kPositions * kTaps;
    for (int i = 0; i < static_cast<int>(tap_depth); ++i) tap.step(g);
    const Index channel = first_channel + thread / kWeightThreads;
    has_channel = channel < g.out;
    weight_depth = thread % kWeightThreads * kWeights;
    weight = k + int64_t{channel} * g.depth + weight_depth;
  }

  __device__ bool is_inside() const {
    using Unsigned = std::conditional_t<sizeof(Index) == 4, uint32_t, uint64_t>;
    return static_cast<Unsigned>(corner_y + tap.row) < static_cast<Unsigned>(g.h) &&
           static_cast<Unsigned>(corner_x + tap.column) < static_cast<Unsigned>(g.w);
  }

  /// Sends for the next slab.
  __device__ void fetch(int stage) {
    const int thread = static_cast<int>(threadIdx.x);
    float* window = shared.windows[stage] + thread / kPositions * kTaps * kWindowPitch + thread % kPositions;
#pragma unroll
    for (int i = 0; i < kTaps; ++i) {
      const bool valid = has_position && tap_depth + i < g.depth && is_inside();
      copy_async(window + i * kWindowPitch, valid ? corner + tap.offset : image_begin, valid);
      tap.step(g);
    }
    tap_depth += kSlab;
    if constexpr (kTapThreads > 1) tap.skip(g);
    float* channel =
        shared.weights[stage] + thread % kWeightThreads * kWeights * kWeightPitch + thread / kWeightThreads;
#pragma unroll
    for (int i = 0; i < kWeights; ++i) {
      const bool valid = has_channel && weight_depth + i < g.depth;
      copy_async(channel + i * kWeightPitch, valid ? weight + i : weights_begin, valid);
    }
    weight_depth += kSlab;
    weight += kSlab;
  }

  /// A thread's channels and positions lie in groups of four, so that a group
  /// is one read of 16 bytes and the threads of a warp read neighbours.
  __device__ static int channel_of(int row) {
    return row / kVector * (kVector * kDown) + static_cast<int>(threadIdx.x) / kAcross * kVector +
           row % kVector;
  }
  __device__ static int position_of(int column) {
    return column / kVector * (kVector * kAcross) + static_cast<int>(threadIdx.x) % kAcross * kVector +
           column % kVector;
  }

  __device__ void multiply(int stage) {
#pragma unroll
    for (int depth = 0; depth < kSlab; ++depth) {
      float a[kRows], b[kColumns];
      const float* weight_row = shared.weights[stage] + depth * kWeightPitch;
      const float* window_row = shared.windows[stage] + depth * kWindowPitch;
#pragma unroll
      for (int i = 0; i < kRows; i += kVector)
        *reinterpret_cast<float4*>(a + i) = *reinterpret_cast<const float4*>(weight_row + channel_of(i));
#pragma unroll
      for (int j = 0; j < kColumns; j += kVector)
        *reinterpret_cast<float4*>(b + j) = *reinterpret_cast<const float4*>(window_row + position_of(j));
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
#pragma unroll
        for (int j = 0; j < kColumns; ++j) sums[i][j] = __fmaf_rn(a[i], b[j], sums[i][j]);
      }
    }
  }

  /// Where whole groups of four positions are neighbours in y, they are written
  /// as one.
  __device__ void write(float* y, bool whole_groups) const {
#pragma unroll
    for (int j = 0; j < kColumns; j += kVector) {
      const int64_t position = first_position + position_of(j);
      const int64_t image = position / g.y_plane, inside = position % g.y_plane;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const Index channel = first_channel + channel_of(i);
        if (channel >= g.out) continue;
        float* to = y + (image * g.out + channel) * g.y_plane + inside;
        if (whole_groups) {
          if (position < g.positions)
            *reinterpret_cast<float4*>(to) =
                make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
          continue;
        }
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          if (position + v >= g.positions) continue;
          const int64_t next = position + v;
          y[(next / g.y_plane * g.out + channel) * g.y_plane + next % g.y_plane] = sums[i][j + v];
        }
      }
    }
  }
};

template <int kChannels, int kPositions, int kRows, int kColumns, class Index>
__global__ void __launch_bounds__(kPositions / kColumns * (kChannels / kRows))
    conv2d_channels_gemm(const ConvGeometry<Index> g, const float* __restrict__ x,
                         const float* __restrict__ k, float* __restrict__ y, bool whole_groups) {
  using Cta = ConvCta<kChannels, kPositions, kRows, kColumns, Index>;
  __shared__ typename Cta::Shared shared;
  Cta cta(g, shared, x, k);
  const int64_t slabs = (int64_t{g.depth} + kSlab - 1) / kSlab;
  for (int stage = 0; stage < kStages - 1; ++stage) {
    cta.fetch(stage);  // behind the last depth it brings zeros
    close_slab();
  }
  int stage = 0;
  for (int64_t slab = 0; slab < slabs; ++slab) {
    wait_for_slab();
    __syncthreads();  // what all threads sent for is there, and the slab before
                      // this one is used up
    cta.fetch(stage == 0 ? kStages - 1 : stage - 1);
    close_slab();
    cta.multiply(stage);
    stage = stage == kStages - 1 ? 0 : stage + 1;
  }
  asm volatile("cp.async.wait_all;" ::
                   : "memory");  // nothing may arrive in memory that is another CTA's by then
  cta.write(y, whole_groups);
}

template <class Index>
ConvGeometry<Index> geometry_of(const ConvShape& s, int channels, int taps) {
  const int64_t skipped = kSlab - taps;  // depths of the other threads
  return ConvGeometry<Index>{
      .h = static_cast<Index>(s.h),
      .w = static_cast<Index>(s.w),
      .kh = static_cast<Index>(s.kh),
      .kw = static_cast<Index>(s.kw),
      .stride_y = static_cast<Index>(s.stride_y),
      .stride_x = static_cast<Index>(s.stride_x),
      .pad_y = static_cast<Index>(s.pad_y),
      .pad_x = static_cast<Index>(s.pad_x),
      .y_w = static_cast<Index>(s.y_w),
      .plane = static_cast<Index>(s.h * s.w),
      .row_step = static_cast<Index>(s.w - s.kw),
      .channel_step = static_cast<Index>(s.h * s.w - s.kh * s.w),
      .depth = static_cast<Index>(s.depth()),
      .out = static_cast<Index>(s.out),
      .skip_channels = static_cast<Index>(skipped / (s.kh * s.kw)),
      .skip_rows = static_cast<Index>(skipped / s.kw % s.kh),
      .skip_columns = static_cast<Index>(skipped % s.kw),
      .image = s.in * s.h * s.w,
      .y_plane = s.y_h * s.y_w,
      .positions = s.positions(),
      .channel_tiles = static_cast<int>((s.out + channels - 1) / channels),
  };
}

template <int kChannels, int kPositions, int kRows, int kColumns, class Index>
fulcrum_status launch_tile(const ConvShape& s, const ConvOperands& o, cudaStream_t stream) {
  using Cta = ConvCta<kChannels, kPositions, kRows, kColumns, Index>;
  const auto g = geometry_of<Index>(s, kChannels, Cta::kTaps);
  const int64_t tiles = (s.positions() + kPositions - 1) / kPositions * g.channel_tiles;
  if (tiles > std::numeric_limits<int32_t>::max())
    return failed(FULCRUM_UNSUPPORTED, "conv2d_channels: more tiles than a grid has");
  const bool whole_groups =
      g.y_plane % kVector == 0 && reinterpret_cast<uintptr_t>(o.y) % sizeof(float4) == 0;
  conv2d_channels_gemm<kChannels, kPositions, kRows, kColumns, Index>
      <<<static_cast<unsigned>(tiles), Cta::kThreads, 0, stream>>>(g, o.x, o.k, o.y, whole_groups);
  return launched("conv2d_channels");
}

/// Whether all that the 32-bit kernel counts stays below 2^31, with room for a
/// slab more.
bool is_small(const ConvShape& s) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  return s.in * s.h * s.w < kMost && s.depth() < kMost && s.out < kMost && s.y_h * s.stride_y < kMost &&
         s.y_w * s.stride_x < kMost;
}

}  // namespace

ConvTile conv_tile_for(const ConvShape& s) {
  const auto tiles = [&s](int64_t channels, int64_t positions) {
    return (s.out + channels - 1) / channels * ((s.positions() + positions - 1) / positions);
  };
  if (s.out > 32 && tiles(64, 128) >= device().sms) return ConvTile::channels64_positions128;
  if (tiles(32, 128) >= device().sms) return ConvTile::channels32_positions128;
  return ConvTile::channels32_positions64;
}

fulcrum_status enqueue_conv(const ConvShape& s, const ConvOperands& o, ConvTile tile, cudaStream_t stream) {
  if (s.outputs() == 0) return done();
  if (!is_small(s)) return launch_tile<64, 128, 8, 8, int64_t>(s, o, stream);
  switch (tile) {
    case ConvTile::channels64_positions128:
      return launch_tile<64, 128, 8, 8, int32_t>(s, o, stream);
    case ConvTile::channels32_positions128:
      return launch_tile<32, 128, 4, 8, int32_t>(s, o, stream);
    default:
      return launch_tile<32, 64, 4, 4, int32_t>(s, o, stream);
  }
}

}  // namespace fulcrum::backends::cuda
