// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d_channels as a product of matrices whose right side is never made: in the padded copy of an image the inputs
// of consecutive positions under one tap are consecutive (ops::ConvLayout), so a row of the right side is the image
// moved by that tap's offset. Tiles are several output channels by a few vectors of positions; each output is one
// chain of fmas over the taps in the order of the weights. Weights stay as they lie: a copy of them in the order of the
// tiles makes nothing faster that was measured.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/conv2d_channels.cpp"
#include <fulcrum/ops/conv2d_channels.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/simd/isa.h"
#include "backends/simd/vectors-inl.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

#ifndef FULCRUM_BACKENDS_SIMD_KERNELS_CONV2D_CHANNELS_
#define FULCRUM_BACKENDS_SIMD_KERNELS_CONV2D_CHANNELS_
namespace fulcrum::backends::simd {

/// Where in the padded image each tap reads.
struct ConvPlan {
  std::vector<std::uint32_t> offsets;
};

}  // namespace fulcrum::backends::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// As in matrix products: 8 * 3 + 3 + 1 of 32 registers with AVX-512, 6 * 2 + 2 + 1 of 16 elsewhere.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 6;
constexpr std::size_t kTileVectors = HWY_TARGET <= HWY_AVX3 ? 3 : 2;
constexpr std::size_t kTileColumns = kTileVectors * kLanes;
static_assert(kTileColumns <= ops::ConvLayout::kSlack);

/// Output channels of a block fall into tiles of sizes as even as can be.
struct ChannelTiles {
  std::size_t row, end, left;
  ChannelTiles(std::size_t first, std::size_t last)
      : row(first), end(last), left((last - first + kTileRows - 1) / kTileRows) {}
  /// Size of the next tile; 0 at the end.
  std::size_t next() const { return left == 0 ? 0 : (end - row + left - 1) / left; }
  void advance() {
    row += next();
    --left;
  }
};

/// Where the lanes of one vector of positions go in a channel of y.
struct Target {
  std::size_t at;     // of the first lane that is an output
  std::size_t count;  // lanes that are; they go side by side
  HWY_ALIGN std::int32_t lane[kLanes];
};

struct Tile {
  const float* weights;  // a row of `depth` for each output channel
  const float* image;
  const std::uint32_t* offsets;
  std::size_t depth;
  float* y;
  std::size_t channel_floats;
  const Target* targets;
};

template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void multiply(const Tile& tile) {
  const Float d;
  Floats sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
  }
  const float* weights = tile.weights;
  for (std::size_t k = 0; k < tile.depth; ++k, ++weights) {
    const float* from = tile.image + tile.offsets[k];
    Floats right[kVectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, from + v * kLanes);
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto left = hn::Set(d, weights[i * tile.depth]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t v = 0; v < kVectors; ++v) {
    const Target& target = tile.targets[v];
    float* y = tile.y + target.at;
    HWY_UNROLL(8)
    for (std::size_t i = 0; i < kRows; ++i, y += tile.channel_floats) {
      if (target.count == kLanes) {
        hn::StoreU(sum[i][v], d, y);
      } else if (target.count > 0) {
        store_first(hn::TableLookupLanes(sum[i][v], hn::SetTableIndices(d, target.lane)), y, target.count);
      }
    }
  }
}

using Multiply = void (*)(const Tile&);
/// Entry (rows - 1) * kTileVectors + vectors - 1.
template <std::size_t... kIndex>
constexpr std::array<Multiply, sizeof...(kIndex)> tiles(std::index_sequence<kIndex...>) {
  return {multiply<kIndex / kTileVectors + 1, kIndex % kTileVectors + 1>...};
}
constexpr auto kTiles = tiles(std::make_index_sequence<kTileRows * kTileVectors>());

Target target_of(std::size_t position, std::size_t last, std::size_t width, std::size_t y_w) {
  Target target{.at = position / width * y_w + std::min(position % width, y_w), .count = 0, .lane = {}};
  for (std::size_t lane = 0; lane < kLanes && position + lane < last; ++lane) {
    if ((position + lane) % width < y_w) target.lane[target.count++] = static_cast<std::int32_t>(lane);
  }
  return target;
}

/// One image: positions [first, last) of channels [channel, channel_end).
void run_block(const ops::ConvSizes& s, const ConvPlan& plan, const float* weights, const float* image,
               float* y, std::size_t first, std::size_t last, std::size_t channel, std::size_t channel_end) {
  const auto width = static_cast<std::size_t>(ops::ConvLayout(s).width);
  const auto y_w = static_cast<std::size_t>(s.y_w);
  const auto channel_floats = static_cast<std::size_t>(s.y_h * s.y_w);
  for (std::size_t position = first; position < last; position += kTileColumns) {
    const std::size_t vectors = (std::min(kTileColumns, last - position) + kLanes - 1) / kLanes;
    Target targets[kTileVectors];
    for (std::size_t v = 0; v < vectors; ++v) targets[v] = target_of(position + v * kLanes, last, width, y_w);
    for (ChannelTiles rows(channel, channel_end); rows.next() > 0; rows.advance()) {
      kTiles[(rows.next() - 1) * kTileVectors + vectors - 1](
          Tile{.weights = weights + rows.row * plan.offsets.size(),
               .image = image + position,
               .offsets = plan.offsets.data(),
               .depth = plan.offsets.size(),
               .y = y + rows.row * channel_floats,
               .channel_floats = channel_floats,
               .targets = targets});
    }
  }
}

void run_pieces(const fulcrum_args& a, const ConvPlan& plan, std::int64_t begin, std::int64_t end,
                const float* images) {
  const ops::ConvSizes s(a);
  const ops::ConvLayout layout(s);
  const std::int64_t channel_blocks = ops::conv_channel_blocks(s), blocks = ops::conv_position_blocks(s);
  const std::int64_t positions = ops::conv_block_positions(s);
  for (std::int64_t piece = begin; piece < end; ++piece) {
    const std::int64_t image = piece / channel_blocks / blocks;
    const std::int64_t position = piece / channel_blocks % blocks * positions;
    const std::int64_t channel = piece % channel_blocks * ops::kConvChannels;
    run_block(s, plan, a.in<float>(1), images + image * layout.image,
              a.out<float>(2) + image * s.out * s.y_h * s.y_w, static_cast<std::size_t>(position),
              static_cast<std::size_t>(std::min(position + positions, layout.positions(s))),
              static_cast<std::size_t>(channel),
              static_cast<std::size_t>(std::min(channel + ops::kConvChannels, s.out)));
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_pieces);

/// Offsets are 32 bits wide.
int supports(const fulcrum_args* a) {
  return ops::ConvLayout(ops::ConvSizes(*a)).image <= std::numeric_limits<std::uint32_t>::max();
}

fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  const ops::ConvSizes s(*a);
  const ops::ConvLayout layout(s);
  auto plan = std::make_unique<ConvPlan>();
  plan->offsets.reserve(static_cast<std::size_t>(s.depth()));
  for (std::int64_t c = 0; c < s.in; ++c) {
    for (std::int64_t r = 0; r < s.kh; ++r) {
      for (std::int64_t t = 0; t < s.kw; ++t) {
        const std::int64_t plane = r % s.stride_y * layout.phases_x + t % s.stride_x;
        plan->offsets.push_back(static_cast<std::uint32_t>(c * layout.channel + plane * layout.plane +
                                                           r / s.stride_y * layout.width + t / s.stride_x));
      }
    }
  }
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<ConvPlan*>(plan); }

/// One row of one plane: every stride-th pixel of a row of the image, zeros around it.
void pad_row(const float* from, std::int64_t first, std::int64_t stride, std::int64_t size, float* to,
             std::int64_t width) {
  const std::int64_t left = std::clamp<std::int64_t>((-first + stride - 1) / stride, 0, width);
  const std::int64_t right = std::clamp<std::int64_t>((size - first + stride - 1) / stride, left, width);
  std::fill(to, to + left, 0.0F);
  if (stride == 1) {
    std::copy(from + first + left, from + first + right, to + left);
  } else {
    for (std::int64_t i = left; i < right; ++i) to[i] = from[first + i * stride];
  }
  std::fill(to + right, to + width, 0.0F);
}

/// Channels [begin, end), counted over all images of the call, into their padded copies.
void pad_channels(const fulcrum_args& a, std::int64_t begin, std::int64_t end, float* images) {
  const ops::ConvSizes s(a);
  const ops::ConvLayout layout(s);
  for (std::int64_t channel = begin; channel < end; ++channel) {
    const float* x = a.in<float>(0) + channel * s.h * s.w;
    float* to = images + channel / s.in * layout.image + channel % s.in * layout.channel;
    for (std::int64_t plane = 0; plane < layout.phases_y * layout.phases_x; ++plane) {
      for (std::int64_t row = 0; row < layout.height; ++row, to += layout.width) {
        const std::int64_t y = row * s.stride_y + plane / layout.phases_x - s.pad_y;
        const std::int64_t size = y >= 0 && y < s.h ? s.w : 0;  // rows outside of the image are all zeros
        pad_row(x + y * s.w * (size > 0), plane % layout.phases_x - s.pad_x, s.stride_x, size, to,
                layout.width);
      }
    }
    if (channel % s.in == s.in - 1) std::fill(to, to + ops::ConvLayout::kSlack, 0.0F);
  }
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  const auto& plan = *static_cast<const ConvPlan*>(a->plan);
  if (phase == 0) return pad_channels(*a, begin, end, static_cast<float*>(scratch));
  HWY_DYNAMIC_DISPATCH(run_pieces)(*a, plan, begin, end, static_cast<const float*>(scratch));
}

/// One image at a time, whose copy then stays in the cache.
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const ops::ConvSizes s(*a);
  const ops::ConvLayout layout(s);
  const std::int64_t pieces = ops::conv_position_blocks(s) * ops::conv_channel_blocks(s);
  float* image = s.n > 0 ? workspace(static_cast<std::size_t>(layout.image)) : nullptr;
  if (s.n > 0 && !image) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for a padded image"};
  for (std::int64_t call = 0; call < count; ++call) {
    fulcrum_args one = *a;
    one.dim[0] = 1;
    for (std::int64_t i = 0; i < s.n; ++i) {
      one.ptr[0] = static_cast<float*>(a->ptr[0]) + i * s.in * s.h * s.w;
      one.ptr[2] = static_cast<float*>(a->ptr[2]) + i * s.out * s.y_h * s.y_w;
      pad_channels(one, 0, s.in, image);
      partial(&one, 1, 0, pieces, image);
    }
  }
  return done();
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> conv2d_channels() {
  static const fulcrum_kernel kernels[] = {{.variant = "default",
                                            .level = 1,
                                            .isa = isa_name,
                                            .supports = supports,
                                            .plan = make_plan,
                                            .drop = drop_plan,
                                            .run = run,
                                            .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
