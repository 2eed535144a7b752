// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax in two passes over memory. The first takes each chunk twice while it is in the L1 cache: its maximum, then
// the sum of exp(x - maximum) in 4 accumulators; chunks meet in fp64. The second writes exp(x - maximum) / sum. The
// maximum is subtracted on its own: folding ln(sum) into it would cost bits when it is large.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/softmax.cpp"
#include <fulcrum/ops/softmax.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <limits>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/streaming-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// The largest element; with a NaN among them any of them, or NaN.
float largest(const float* x, std::size_t n) {
  const Float d;
  Floats high[4] = {set(kLowest), set(kLowest), set(kLowest), set(kLowest)};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < 4; ++p) high[p] = hn::Max(high[p], hn::LoadU(d, x + i + p * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) high[0] = hn::Max(high[0], hn::LoadU(d, x + i));
  if (i < n) {
    const auto tail = hn::IfThenElse(hn::FirstN(d, n - i), load_first(x + i, n - i), set(kLowest));
    high[0] = hn::Max(high[0], tail);
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(high[0], high[1]), hn::Max(high[2], high[3]))));
}

ops::SoftmaxPart reduce_chunk(const float* x, std::size_t n) {
  const Float d;
  const float max = largest(x, n);
  // -Inf - -Inf would be NaN: a chunk of -Inf alone is {-Inf, 0}.
  const auto m = set(max == kLowest ? 0.0F : max);
  Floats sum[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    HWY_UNROLL(4)
    for (std::size_t p = 0; p < 4; ++p) {
      sum[p] = hn::Add(sum[p], exp_of_negative(hn::Sub(hn::LoadU(d, x + i + p * kLanes), m)));
    }
  }
  for (; i + kLanes <= n; i += kLanes)
    sum[0] = hn::Add(sum[0], exp_of_negative(hn::Sub(hn::LoadU(d, x + i), m)));
  if (i < n) {
    const auto tail = exp_of_negative(hn::Sub(load_first(x + i, n - i), m));
    sum[0] = hn::Add(sum[0], hn::IfThenElseZero(hn::FirstN(d, n - i), tail));
  }
  const auto all = hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3]));
  return ops::SoftmaxPart{.sum = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all))), .max = max};
}

struct Scale {
  Floats max, factor;
  HWY_INLINE Floats operator()(Floats x) const { return hn::Mul(exp_of_negative(hn::Sub(x, max)), factor); }
};

void write_chunk(const float* x, float* out, std::size_t n, const ops::SoftmaxPart& part) {
  map_elements(OneInput{x}, out, n, Scale{set(part.max), set(static_cast<float>(1 / part.sum))});
}

/// Where piece `number` lies: rows are cut into chunks of kSoftmaxChunk.
struct Piece {
  std::int64_t first;
  std::size_t n;
};
HWY_INLINE Piece piece(std::int64_t number, std::int64_t chunks, std::int64_t row_length) {
  const std::int64_t at = number % chunks * ops::kSoftmaxChunk;
  return Piece{number / chunks * row_length + at,
               static_cast<std::size_t>(std::min(ops::kSoftmaxChunk, row_length - at))};
}

void partial_softmax(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                     ops::SoftmaxPart* parts) {
  const std::int64_t chunks = (a.dim[1] + ops::kSoftmaxChunk - 1) / ops::kSoftmaxChunk;
  for (std::int64_t number = begin; number < end; ++number) {
    const auto [first, n] = piece(number, chunks, a.dim[1]);
    if (write) {
      write_chunk(a.in<float>(0) + first, a.out<float>(1) + first, n, parts[number]);
    } else {
      parts[number] = reduce_chunk(a.in<float>(0) + first, n);
    }
  }
}

void run_softmax(const fulcrum_args& a, std::int64_t count) {
  const std::int64_t n = a.dim[1];
  for (std::int64_t call = 0; call < count; ++call) {
    for (std::int64_t row = 0; row < a.dim[0] && n > 0; ++row) {
      const float* x = a.in<float>(0) + row * n;
      ops::SoftmaxPart all = reduce_chunk(x, static_cast<std::size_t>(std::min(ops::kSoftmaxChunk, n)));
      for (std::int64_t at = ops::kSoftmaxChunk; at < n; at += ops::kSoftmaxChunk) {
        all = ops::merge(
            all, reduce_chunk(x + at, static_cast<std::size_t>(std::min(ops::kSoftmaxChunk, n - at))));
      }
      write_chunk(x, a.out<float>(1) + row * n, static_cast<std::size_t>(n), all);
    }
    end_of_call();
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_softmax);
HWY_EXPORT(partial_softmax);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  (HWY_DYNAMIC_DISPATCH(run_softmax))(*a, count);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  (HWY_DYNAMIC_DISPATCH(partial_softmax))(*a, phase == 1, begin, end,
                                          static_cast<ops::SoftmaxPart*>(scratch));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> softmax() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
