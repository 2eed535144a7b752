// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See conv_gemm.h.
#include "backends/cuda/conv_gemm.h"

#include "backends/cuda/conv_windows.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kVector = 4;

/// kRows x kColumns outputs a thread.
template <int kChannels, int kPositions, int kRows, int kColumns, class Index>
struct ConvCta {
  static constexpr int kAcross = kPositions / kColumns, kDown = kChannels / kRows, kThreads = kAcross * kDown;
  static constexpr int kWarpAcross = 8, kWarpDown = 4, kWarpsAcross = kAcross / kWarpAcross;
  static_assert(kRows % kVector == 0 && kColumns % kVector == 0);
  static_assert(kWarpsAcross * kWarpAcross == kAcross && kDown % kWarpDown == 0);
  using Loader = conv::ConvLoader<kChannels, kPositions, kThreads, kVector, Index>;

  float sums[kRows][kColumns] = {};

  /// A thread's channels and positions lie in groups of four, so that a group is one read of 16 bytes; the threads of a
  /// warp read eight neighbouring groups of positions and four of channels.
  __device__ static int channel_of(int row) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int down = warp / kWarpsAcross * kWarpDown + lane / kWarpAcross;
    return row / kVector * (kVector * kDown) + down * kVector + row % kVector;
  }
  __device__ static int position_of(int column) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int across = warp % kWarpsAcross * kWarpAcross + lane % kWarpAcross;
    return column / kVector * (kVector * kAcross) + across * kVector + column % kVector;
  }

  __device__ void multiply(const typename Loader::Shared& shared, int stage) {
#pragma unroll
    for (int depth = 0; depth < conv::kSlab; ++depth) {
      float a[kRows], b[kColumns];
      const float* weight_row = shared.weights[stage] + depth * Loader::kWeightPitch;
      const float* window_row = shared.windows[stage] + depth * Loader::kWindowPitch;
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
  __device__ void write(const Loader& loader, float* y, bool whole_groups) const {
    const auto& g = loader.g;
#pragma unroll
    for (int j = 0; j < kColumns; j += kVector) {
      const int64_t position = loader.first_position + position_of(j);
      const int64_t image = position / g.y_plane, inside = position % g.y_plane;
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const Index channel = loader.first_channel + channel_of(i);
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
    conv2d_channels_gemm(const conv::ConvGeometry<Index> g, const float* __restrict__ x,
                         const float* __restrict__ k, float* __restrict__ y, bool whole_groups) {
  using Cta = ConvCta<kChannels, kPositions, kRows, kColumns, Index>;
  __shared__ typename Cta::Loader::Shared shared;
  typename Cta::Loader loader(g, shared, x, k);
  Cta cta;
  loader.walk([&](int stage) { cta.multiply(shared, stage); });
  cta.write(loader, y, whole_groups);
}

template <int kChannels, int kPositions, int kRows, int kColumns, class Index>
fulcrum_status launch_tile(const ConvShape& s, const ConvOperands& o, cudaStream_t stream) {
  using Cta = ConvCta<kChannels, kPositions, kRows, kColumns, Index>;
  const auto g = conv::geometry_of<Index>(s, kChannels, Cta::Loader::kTaps);
  const int64_t tiles = (s.positions() + kPositions - 1) / kPositions * g.channel_tiles;
  if (tiles > std::numeric_limits<int32_t>::max())
    return failed(FULCRUM_UNSUPPORTED, "conv2d_channels: more tiles than a grid has");
  const bool whole_groups =
      g.y_plane % kVector == 0 && reinterpret_cast<uintptr_t>(o.y) % sizeof(float4) == 0;
  conv2d_channels_gemm<kChannels, kPositions, kRows, kColumns, Index>
      <<<static_cast<unsigned>(tiles), Cta::kThreads, 0, stream>>>(g, o.x, o.k, o.y, whole_groups);
  return launched("conv2d_channels");
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
  if (!conv::is_small(s)) return launch_tile<64, 128, 8, 8, int64_t>(s, o, stream);
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
