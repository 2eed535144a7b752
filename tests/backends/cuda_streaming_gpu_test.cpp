// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Streaming kernels of the CUDA module on a device, at addresses that only promise the alignment of a float: every
// variant gives the bits of the aligned call and touches nothing around its output.
#include <fulcrum/backends.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "support/on_device.h"

namespace fulcrum::backends {
namespace {

constexpr float kGuard = -77;
constexpr std::int64_t kRoom = 8;  // elements before and behind an operand

class CudaStreaming : public OnDevice {
 protected:
  /// Device memory for `data`, `shift` elements past an aligned address, between guards.
  float* place(std::span<const float> data, std::int64_t shift) {
    std::vector<float> image(data.size() + 2 * kRoom + 4, kGuard);
    std::copy(data.begin(), data.end(), image.begin() + kRoom + shift);
    return OnDevice::place(image, 0) + kRoom + shift;
  }

  /// n elements at `from` and kRoom guards on each side, which must be whole.
  std::vector<float> fetch(const float* from, std::int64_t n) {
    const std::vector<float> image = OnDevice::fetch(from - kRoom, n + 2 * kRoom);
    EXPECT_EQ(std::count(image.begin(), image.begin() + kRoom, kGuard), kRoom);
    EXPECT_EQ(std::count(image.end() - kRoom, image.end(), kGuard), kRoom);
    return {image.begin() + kRoom, image.end() - kRoom};
  }
};

std::vector<float> streamed_values(std::int64_t n, int tensor) {
  std::vector<float> result(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = ops::random_uniform(ops::tensor_key(tensor), i, -1, 1);
  return result;
}

TEST_F(CudaStreaming, SumsAreRightAtEveryAlignmentOfThreeOperands) {
  for (const std::int64_t n : {1, 2, 3, 7, 1003, 70001}) {
    const std::vector<float> a = streamed_values(n, 0), b = streamed_values(n, 1);
    std::vector<float> expected(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) expected[i] = a[i] + b[i];
    for (int shifts = 0; shifts < 64; shifts += 1 + (n > 1003) * 4) {
      fulcrum_args args = {};
      args.dim[0] = n, args.dim[1] = 1;
      for (const fulcrum_kernel* kernel : kernels_of("vec_add", args)) {
        float* first = place(a, shifts % 4);
        const bool in_place = shifts % 4 == shifts / 16;
        float* out = in_place ? first : place(std::vector<float>(a.size(), 0), shifts / 16);
        args.ptr[0] = first, args.ptr[1] = place(b, shifts / 4 % 4), args.ptr[3] = out;
        run(*kernel, args, 1);
        ASSERT_EQ(fetch(out, n), expected) << kernel->variant << " n=" << n << " shifts=" << shifts;
      }
      release();
    }
  }
}

/// Long enough for every variant to take its own way, and several calls behind each other.
TEST_F(CudaStreaming, LongArraysHaveTheSameBitsInEveryVariantAndTouchNothingElse) {
  constexpr std::int64_t kElements = 9000007;
  const std::vector<float> a = streamed_values(kElements, 0), b = streamed_values(kElements, 1);
  const std::vector<float> none(a.size(), 0);
  for (const std::string_view op : {"vec_add", "relu", "gelu", "probe_copy", "probe_triad"}) {
    const bool has_two = op == "vec_add" || op == "probe_triad";
    const int slot = op == "vec_add" ? 3 : has_two ? 2 : 1;
    for (const int shift : {0, 3}) {
      fulcrum_args args = {};
      args.dim[0] = kElements, args.dim[1] = 1;
      if (op.starts_with("probe")) args.scalar[0].i = 1, args.scalar[1].f = 0.5;
      args.ptr[0] = place(a, shift);
      if (has_two) args.ptr[1] = place(b, shift);
      std::vector<float> expected;
      for (const fulcrum_kernel* kernel : kernels_of(op, args)) {
        float* out = place(none, shift);
        args.ptr[slot] = out;
        run(*kernel, args, 3);
        const std::vector<float> got = fetch(out, kElements);
        if (expected.empty()) expected = got;
        EXPECT_EQ(std::memcmp(got.data(), expected.data(), 4 * got.size()), 0)
            << op << ' ' << kernel->variant << " shift=" << shift;
      }
      EXPECT_NE(expected, none) << op;
      release();
    }
  }
}

/// Every call reads what the one before wrote: none may start to read too early.
TEST_F(CudaStreaming, CallsInPlaceBehindEachOtherSeeEachOthersResults) {
  constexpr std::int64_t kElements = 9000007;
  const std::vector<float> a = streamed_values(kElements, 0), b = streamed_values(kElements, 1);
  std::vector<float> expected = a;
  for (int call = 0; call < 5; ++call) {
    for (std::size_t i = 0; i < a.size(); ++i) expected[i] += b[i];
  }
  fulcrum_args args = {};
  args.dim[0] = kElements, args.dim[1] = 1;
  args.ptr[1] = place(b, 0);
  for (const fulcrum_kernel* kernel : kernels_of("vec_add", args)) {
    float* in_place = place(a, 0);
    args.ptr[0] = args.ptr[3] = in_place;
    run(*kernel, args, 5);
    EXPECT_EQ(fetch(in_place, kElements), expected) << kernel->variant;
  }
}

TEST_F(CudaStreaming, DotHasTheSameBitsInEveryVariantAlignmentAndRun) {
  for (const std::int64_t n :
       {1, 1000, 8192, 8193, 20001, 50001, 131072, 1000003, 4325376, 16777215, 17000000}) {
    const std::vector<float> a = streamed_values(n, 0), b = streamed_values(n, 1);
    float expected = 0;
    bool is_first = true;
    for (int shift = 0; shift < 4; ++shift) {
      fulcrum_args args = {};
      args.dim[0] = n;
      args.ptr[0] = place(a, shift), args.ptr[1] = place(b, shift / 2);
      for (const fulcrum_kernel* kernel : kernels_of("dot", args)) {
        if (kernel->precision && std::strcmp(kernel->precision, "fp32") != 0) continue;
        float* out = place(std::vector<float>{0}, 0);
        args.ptr[2] = out;
        run(*kernel, args, 3);
        const float got = fetch(out, 1)[0];
        if (is_first) expected = got;
        is_first = false;
        EXPECT_EQ(got, expected) << kernel->variant << " n=" << n << " shift=" << shift;
      }
    }
  }
}

}  // namespace
}  // namespace fulcrum::backends
