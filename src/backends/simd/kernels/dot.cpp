// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot: chunks of 4096 elements, each summed in 64 lanes whatever the vector length, so that instruction sets with
// fma give the same bits; the lanes meet in a fixed tree, the chunks in index order in fp64. Long vectors are read at
// several places at once, a chunk each, which memory answers faster; that changes no sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/dot.cpp"
#include <fulcrum/ops/dot.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/vectors-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

constexpr std::size_t kSumLanes = 64;
constexpr std::size_t kParts = kSumLanes / kLanes;  // accumulators: 4 with AVX-512, 8 with AVX2

/// Adds lane l + width / 2 to lane l, level by level, until one vector is left. Indices are constants, so that the
/// accumulators stay in registers.
template <std::size_t kWidth>
HWY_INLINE void fold(Floats (&sum)[kParts]) {
  if constexpr (kWidth > 0) {
    HWY_UNROLL(32)
    for (std::size_t i = 0; i < kWidth; ++i) sum[i] = hn::Add(sum[i], sum[i + kWidth]);
    fold<kWidth / 2>(sum);
  }
}

HWY_INLINE float sum_chunk(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t n) {
  const Float d;
  Floats sum[kParts];
  HWY_UNROLL(64)
  for (auto& part : sum) part = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    HWY_UNROLL(64)
    for (std::size_t p = 0; p < kParts; ++p) {
      sum[p] = hn::MulAdd(hn::LoadU(d, a + i + p * kLanes), hn::LoadU(d, b + i + p * kLanes), sum[p]);
    }
  }
  HWY_UNROLL(64)
  for (std::size_t p = 0; p < kParts; ++p) {
    const std::size_t at = i + p * kLanes;
    if (at + kLanes <= n) {
      sum[p] = hn::MulAdd(hn::LoadU(d, a + at), hn::LoadU(d, b + at), sum[p]);
    } else if (at < n) {
      sum[p] = hn::MulAdd(load_first(a + at, n - at), load_first(b + at, n - at), sum[p]);
    }
  }
  fold<kParts / 2>(sum);
  return hn::GetLane(hn::SumOfLanes(d, sum[0]));
}

// Chunks summed at once, as far as their accumulators fit into registers, and the group they are spread over: of a
// number that is no power of two, so that they do not all fall on the same cache sets.
constexpr std::size_t kAtOnce = HWY_TARGET <= HWY_AVX3 ? 4 : 1;
constexpr std::int64_t kGroup = 60;

/// Sums of kAtOnce whole chunks, `stride` chunks apart, to sums[0], sums[stride], ...
HWY_INLINE void sum_spread(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::int64_t stride,
                           double* sums) {
  const Float d;
  Floats sum[kAtOnce][kParts];
  HWY_UNROLL(64)
  for (auto& chunk : sum) {
    HWY_UNROLL(64)
    for (auto& part : chunk) part = hn::Zero(d);
  }
  for (std::int64_t i = 0; i < ops::kDotChunk; i += kSumLanes) {
    HWY_UNROLL(64)
    for (std::size_t c = 0; c < kAtOnce; ++c) {
      HWY_UNROLL(64)
      for (std::size_t p = 0; p < kParts; ++p) {
        const auto at =
            static_cast<std::size_t>(i + static_cast<std::int64_t>(c) * stride * ops::kDotChunk) + p * kLanes;
        sum[c][p] = hn::MulAdd(hn::LoadU(d, a + at), hn::LoadU(d, b + at), sum[c][p]);
      }
    }
  }
  HWY_UNROLL(64)
  for (std::size_t c = 0; c < kAtOnce; ++c) {
    fold<kParts / 2>(sum[c]);
    sums[static_cast<std::int64_t>(c) * stride] =
        static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum[c][0])));
  }
}

/// Sums of a group of whole chunks.
void sum_group(const float* a, const float* b, double* sums) {
  constexpr std::int64_t kStride = kGroup / static_cast<std::int64_t>(kAtOnce);
  for (std::int64_t c = 0; c < kStride; ++c) {
    sum_spread(a + c * ops::kDotChunk, b + c * ops::kDotChunk, kStride, sums + c);
  }
}

/// Sums of the chunks [begin, end), in order and in fp64; also each one to `parts` where that is not null.
double dot_chunks(const fulcrum_args& a, std::int64_t begin, std::int64_t end, double* parts) {
  double sum = 0;
  std::int64_t chunk = begin;
  for (; kAtOnce > 1 && chunk + kGroup <= end && (chunk + kGroup) * ops::kDotChunk <= a.dim[0];
       chunk += kGroup) {
    double group[kGroup];
    sum_group(a.in<float>(0) + chunk * ops::kDotChunk, a.in<float>(1) + chunk * ops::kDotChunk, group);
    for (const double part : group) sum += part;
    if (parts) std::copy_n(group, kGroup, parts + chunk);
  }
  for (; chunk < end; ++chunk) {
    const std::int64_t first = chunk * ops::kDotChunk;
    const auto n = static_cast<std::size_t>(std::min(ops::kDotChunk, a.dim[0] - first));
    const auto part = static_cast<double>(sum_chunk(a.in<float>(0) + first, a.in<float>(1) + first, n));
    if (parts) parts[chunk] = part;
    sum += part;
  }
  return sum;
}

/// One chunk, where what stands around the sum counts. Adding 0 makes of -0 what a sum in fp64 that begins with 0 makes.
void run_chunk(const fulcrum_args& a, std::int64_t count) {
  const auto *x = a.in<float>(0), *y = a.in<float>(1);
  auto* out = a.out<float>(2);
  const auto n = static_cast<std::size_t>(a.dim[0]);
  for (std::int64_t call = 0; call < count; ++call) {
    *out = sum_chunk(x, y, n) + 0.0F;
    end_of_call();
  }
}

void run_dot(const fulcrum_args& a, std::int64_t count) {
  if (a.dim[0] <= ops::kDotChunk) return run_chunk(a, count);
  const std::int64_t chunks = (a.dim[0] + ops::kDotChunk - 1) / ops::kDotChunk;
  for (std::int64_t call = 0; call < count; ++call) {
    *a.out<float>(2) = static_cast<float>(dot_chunks(a, 0, chunks, nullptr));
    end_of_call();
  }
}

void partial_dot(const fulcrum_args& a, std::int64_t begin, std::int64_t end, double* parts) {
  dot_chunks(a, begin, end, parts);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_dot);
HWY_EXPORT(partial_dot);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  (HWY_DYNAMIC_DISPATCH(run_dot))(*a, count);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void* scratch) {
  (HWY_DYNAMIC_DISPATCH(partial_dot))(*a, begin, end, static_cast<double*>(scratch));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> dot() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
