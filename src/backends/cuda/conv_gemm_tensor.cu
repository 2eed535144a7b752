// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The convolution of conv_gemm.h on tensor cores, operands rounded to tf32, sums in f32.
#include "backends/cuda/conv_gemm.h"
#include "backends/cuda/conv_windows.cuh"

namespace fulcrum::backends::cuda {
namespace {

constexpr int kMmaChannels = 16, kMmaPositions = 8;  // of one mma; its depths are a slab
constexpr int kGap = 8;                              // four depths of eight neighbours lie in 32 banks then
constexpr int kThreads = 128, kWarps = 4;

__device__ __forceinline__ uint32_t tf32_of(float value) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ void multiply_add(float (&sums)[4], const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// kWarpsDown of the four warps share the channels of a CTA, the others its positions.
template <int kChannels, int kPositions, int kWarpsDown>
struct TensorCta {
  static constexpr int kDown = kChannels / kWarpsDown / kMmaChannels;
  static constexpr int kAcross = kPositions / (kWarps / kWarpsDown) / kMmaPositions;
  static_assert(kDown >= 1 && kAcross >= 1);
  using Loader = conv::ConvLoader<kChannels, kPositions, kThreads, kGap, int32_t>;

  float sums[kDown][kAcross][4] = {};

  /// Of this thread's share of an mma: the channel (and the one eight below), the position (and the next one) and the
  /// depth (and the one four behind).
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int channel_of(int down) {
    return (warp() % kWarpsDown * kDown + down) * kMmaChannels + lane() / 4;
  }
  __device__ static int first_position_of(int across) {
    return (warp() / kWarpsDown * kAcross + across) * kMmaPositions;
  }

  __device__ void multiply(const typename Loader::Shared& shared, int stage) {
    constexpr int kWeightPitch = Loader::kWeightPitch, kWindowPitch = Loader::kWindowPitch;
    const float* weights = shared.weights[stage] + lane() % 4 * kWeightPitch;
    const float* windows = shared.windows[stage] + lane() % 4 * kWindowPitch + lane() / 4;
    uint32_t a[kDown][4], b[kAcross][2];
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
      const float* at = weights + channel_of(i);
      a[i][0] = tf32_of(at[0]);
      a[i][1] = tf32_of(at[8]);
      a[i][2] = tf32_of(at[4 * kWeightPitch]);
      a[i][3] = tf32_of(at[4 * kWeightPitch + 8]);
    }
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const float* at = windows + first_position_of(j);
      b[j][0] = tf32_of(at[0]);
      b[j][1] = tf32_of(at[4 * kWindowPitch]);
    }
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
#pragma unroll
      for (int i = 0; i < kDown; ++i) multiply_add(sums[i][j], a[i], b[j]);
    }
  }

  /// Where whole pairs of positions are neighbours in y, they are written as one.
  __device__ void write(const Loader& loader, float* y, bool whole_pairs) const {
    const auto& g = loader.g;
#pragma unroll
    for (int j = 0; j < kAcross; ++j) {
      const int64_t position = loader.first_position + first_position_of(j) + lane() % 4 * 2;
      const int64_t image = position / g.y_plane, inside = position % g.y_plane;
#pragma unroll
      for (int half = 0; half < 2 * kDown; ++half) {
        const int32_t channel = loader.first_channel + channel_of(half / 2) + half % 2 * 8;
        const float first = sums[half / 2][j][half % 2 * 2], second = sums[half / 2][j][half % 2 * 2 + 1];
        if (channel >= g.out || position >= g.positions) continue;
        float* to = y + (image * g.out + channel) * g.y_plane + inside;
        if (whole_pairs) {
          *reinterpret_cast<float2*>(to) = make_float2(first, second);
          continue;
        }
        *to = first;
        if (position + 1 >= g.positions) continue;
        const int64_t next = position + 1;
        y[(next / g.y_plane * g.out + channel) * g.y_plane + next % g.y_plane] = second;
      }
    }
  }
};

template <int kChannels, int kPositions, int kWarpsDown>
__global__ void __launch_bounds__(kThreads)
    conv2d_channels_tensor(const conv::ConvGeometry<int32_t> g, const float* __restrict__ x,
                           const float* __restrict__ k, float* __restrict__ y, bool whole_pairs) {
  using Cta = TensorCta<kChannels, kPositions, kWarpsDown>;
  __shared__ typename Cta::Loader::Shared shared;
  typename Cta::Loader loader(g, shared, x, k);
  Cta cta;
  loader.walk([&](int stage) { cta.multiply(shared, stage); });
  cta.write(loader, y, whole_pairs);
}

template <int kChannels, int kPositions, int kWarpsDown>
fulcrum_status launch_tile(const ConvShape& s, const ConvOperands& o, cudaStream_t stream) {
  using Cta = TensorCta<kChannels, kPositions, kWarpsDown>;
  const auto g = conv::geometry_of<int32_t>(s, kChannels, Cta::Loader::kTaps);
  const int64_t tiles = (s.positions() + kPositions - 1) / kPositions * g.channel_tiles;
  if (tiles > std::numeric_limits<int32_t>::max())
    return failed(FULCRUM_UNSUPPORTED, "conv2d_channels: more tiles than a grid has");
  const bool whole_pairs = g.y_plane % 2 == 0 && reinterpret_cast<uintptr_t>(o.y) % sizeof(float2) == 0;
  conv2d_channels_tensor<kChannels, kPositions, kWarpsDown>
      <<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(g, o.x, o.k, o.y, whole_pairs);
  return launched("conv2d_channels in tf32");
}

}  // namespace

bool conv_tensor_takes(const ConvShape& s) { return conv::is_small(s); }

fulcrum_status enqueue_conv_tensor(const ConvShape& s, const ConvOperands& o, ConvTile tile,
                                   cudaStream_t stream) {
  if (s.outputs() == 0) return done();
  switch (tile) {
    case ConvTile::channels64_positions128:
      return launch_tile<64, 128, 2>(s, o, stream);
    case ConvTile::channels32_positions128:
      return launch_tile<32, 128, 1>(s, o, stream);
    default:
      return launch_tile<32, 64, 2>(s, o, stream);
  }
}

}  // namespace fulcrum::backends::cuda
