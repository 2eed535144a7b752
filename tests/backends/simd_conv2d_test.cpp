// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions on every instruction set: whichever way an output is made, it has the bits of the definition.
#include <fulcrum/backends.h>
#include <fulcrum/ops/conv2d.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/drawn.h"
#include "support/instances.h"

namespace fulcrum::test {
namespace {

struct Shape2d {
  std::int64_t h, w, kh, kw, stride_y, stride_x, pad_y, pad_x;
};

class SimdConv2d : public ::testing::TestWithParam<std::string> {
 protected:
  /// `tiny`: numbers whose products vanish, and leave sums of 0 or -0: a tap in the padding must not change the sign.
  void check(const Shape2d& s, bool tiny) {
    constexpr float kTiny = 0x1p-100F;
    auto x = drawn(static_cast<std::size_t>(s.h * s.w), 9),
         k = drawn(static_cast<std::size_t>(s.kh * s.kw), 8);
    if (tiny) {
      for (float& value : x) value = value < 0 ? 0 : kTiny;
      for (float& value : k) value = value < 0 ? -kTiny : kTiny;
    }
    Args args{};
    const std::int64_t dims[] = {1, s.h, s.w, s.kh, s.kw},
                       scalars[] = {s.stride_y, s.stride_x, s.pad_y, s.pad_x};
    std::copy(std::begin(dims), std::end(dims), args.dim);
    for (std::size_t i = 0; i < 4; ++i) args.scalar[i].i = scalars[i];
    const ops::Conv2d g = ops::conv2d_geometry(args);
    std::vector<float> y(static_cast<std::size_t>(g.ho * g.wo), NAN);
    args.ptr[0] = x.data();
    args.ptr[1] = k.data();
    args.ptr[2] = y.data();
    auto call = backends::Call::make(*backends::kernel("conv2d", "simd"), args);
    ASSERT_TRUE(call.ok()) << call.error().message;
    ASSERT_EQ(call->run().code, FULCRUM_OK);
    for (std::int64_t i = 0; i < g.ho * g.wo; ++i) {
      const float expected = ops::conv2d_at(g, x.data(), k.data(), i / g.wo, i % g.wo);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(y[static_cast<std::size_t>(i)]),
                std::bit_cast<std::uint32_t>(expected))
          << s.h << " x " << s.w << ", kernel " << s.kh << " x " << s.kw << ", steps " << s.stride_y << ", "
          << s.stride_x << ", padding " << s.pad_y << ", " << s.pad_x << ", output " << i;
    }
  }
  ForcedIsa isa_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Isas, SimdConv2d, ::testing::ValuesIn(backends::isas()),
                         [](const auto& info) { return info.param; });

TEST_P(SimdConv2d, OfThreeByThreeHasTheBitsOfTheDefinition) {
  for (const std::int64_t w : {3, 20, 31, 32, 33, 34, 63, 64, 65, 66, 97}) {
    for (const std::int64_t h : {1, 2, 3, 4, 5, 7, 10}) {
      for (std::int64_t pads = 0; pads < 9; ++pads) {
        if (h + 2 * (pads / 3) < 3) continue;
        for (const bool tiny : {false, true})
          ASSERT_NO_FATAL_FAILURE(check({h, w, 3, 3, 1, 1, pads / 3, pads % 3}, tiny));
      }
    }
  }
}

TEST_P(SimdConv2d, InStepsHasTheBitsOfTheDefinitionAndReadsNothingElse) {
  for (const std::int64_t stride : {2, 3, 5}) {
    for (const std::int64_t kw : {1, 2, 3, 4, 7}) {
      for (const std::int64_t w : {7, 16, 31, 33, 34, 35, 64, 67, 68, 69, 100, 131, 135, 162, 200}) {
        for (const std::int64_t pad : {0, 1, 3}) {
          if (pad >= kw) continue;
          for (const bool tiny : {false, true})
            ASSERT_NO_FATAL_FAILURE(check({5, w, 3, kw, 2, stride, pad > 0, pad}, tiny));
        }
      }
    }
  }
}

TEST_P(SimdConv2d, StepsMayBeLargerThanAnyImage) {
  for (const std::int64_t stride :
       {std::int64_t{11}, std::int64_t{1} << 25, std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int64_t pad : {0, 2}) {
      ASSERT_NO_FATAL_FAILURE(check({5, 10, 3, 3, 1, stride, pad, pad}, false));
      ASSERT_NO_FATAL_FAILURE(check({5, 70, 3, 4, stride, stride, pad, pad}, false));
    }
  }
}

TEST_P(SimdConv2d, OfNarrowImagesHasTheBitsOfTheDefinition) {
  for (const std::int64_t k : {2, 4, 5, 7, 17}) {
    for (const std::int64_t w : {1, 5, 15, 17, 34, 50, 70}) {
      for (const std::int64_t pad : {std::int64_t{1}, k / 2, k - 1}) {
        if (w + 2 * pad < k || 9 + 2 * pad < k) continue;
        for (const bool tiny : {false, true})
          ASSERT_NO_FATAL_FAILURE(check({9, w, k, k, 1, 1, pad, pad}, tiny));
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::test
