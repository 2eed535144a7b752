// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The walk of the device's convolution along the depth of its windows, on the host.
#include <gtest/gtest.h>

#include "backends/cuda/conv_taps.h"

namespace fulcrum::backends::cuda::conv {
namespace {

ConvShape shape_of(int64_t in, int64_t h, int64_t w, int64_t kh, int64_t kw) {
  return ConvShape{.n = 1, .in = in, .h = h, .w = w, .out = 1, .kh = kh, .kw = kw, .y_h = 1, .y_w = 1};
}

/// The tap of a depth, by division.
template <class Index>
void expect_tap(const Tap<Index>& tap, const ConvShape& s, int64_t depth) {
  const int64_t column = depth % s.kw, row = depth / s.kw % s.kh, channel = depth / (s.kw * s.kh);
  ASSERT_EQ(tap.depth, depth);
  ASSERT_EQ(tap.column, column) << "depth " << depth;
  ASSERT_EQ(tap.row, row) << "depth " << depth;
  ASSERT_EQ(tap.offset, channel * s.h * s.w + row * s.w + column) << "depth " << depth;
}

TEST(CudaConvTaps, StepsAndSkipsVisitEveryDepthInOrder) {
  for (const int64_t kh : {1, 2, 3, 5, 31}) {
    for (const int64_t kw : {1, 2, 3, 7, 8, 9, 31}) {
      const ConvShape s = shape_of(7, 40, 33, kh, kw);
      for (const int taps : {kSlab, kSlab / 2}) {
        const auto g = geometry_of<int32_t>(s, 32, taps);
        for (int thread = 0; thread < kSlab / taps; ++thread) {
          Tap<int32_t> tap;
          for (int i = 0; i < thread * taps; ++i) tap.step(g);
          for (int64_t slab = 0; slab * kSlab < s.depth(); ++slab) {
            for (int i = 0; i < taps; ++i) {
              ASSERT_NO_FATAL_FAILURE(expect_tap(tap, s, slab * kSlab + thread * taps + i));
              tap.step(g);
            }
            if (taps < kSlab) tap.skip(g, kSlab - taps);
          }
        }
      }
    }
  }
}

TEST(CudaConvTaps, BitsTellWhichPlacesLieInside) {
  for (int32_t size = 1; size <= 40; ++size) {
    for (int32_t count = 1; count <= 31; ++count) {
      for (int32_t corner = -31; corner <= size; ++corner) {
        const uint32_t bits = inside_bits<int32_t>(corner, size, count);
        for (int32_t i = 0; i < 32; ++i) {
          const bool inside = i < count && corner + i >= 0 && corner + i < size;
          ASSERT_EQ(((bits >> i) & 1U) != 0, inside) << corner << " + " << i << " of " << size;
        }
      }
    }
  }
}

TEST(CudaConvTaps, LargeShapesLeaveThe32BitKernels) {
  EXPECT_TRUE(is_small(shape_of(64, 256, 256, 3, 3)));
  EXPECT_FALSE(is_small(shape_of(1, int64_t{1} << 31, 1, 1, 1)));
  EXPECT_FALSE(is_small(shape_of(1 << 16, 1 << 8, 1 << 8, 1, 1)));
}

}  // namespace
}  // namespace fulcrum::backends::cuda::conv
