// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_read: adds up the bits of all vectors of x; nothing but loads and additions of one cycle in the loop. The
// array is read at four places at once, as kernels do that are measured against it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_read.cpp"
#include <fulcrum/ops/probes.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/streaming-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

using Bits = hn::RebindToUnsigned<Float>;
using Sum = hn::Vec<Bits>;

HWY_INLINE Sum load(const float* x) { return hn::BitCast(Bits(), hn::LoadU(Float(), x)); }

/// Four vectors at once: g++ 12 copies every running sum to a second register and back, so there are few of them.
HWY_INLINE Sum load_four(const float* x) {
  const Sum first = hn::Add(load(x), load(x + kLanes));
  return hn::Add(hn::Add(first, load(x + 2 * kLanes)), load(x + 3 * kLanes));
}

/// All passes over the elements [begin, end).
std::uint32_t sum_bits(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const float* x = a.in<float>(0) + begin;
  const auto n = static_cast<std::size_t>(end - begin);
  Sum even = hn::Zero(Bits()), odd = even;
  for (std::int64_t pass = 0; pass < a.scalar[0].i; ++pass) {
    std::size_t i = 0;
    for (std::size_t length = place_length(n - i); length > 0; length = place_length(n - i)) {
      for (const std::size_t end = i + length; i < end; i += 4 * kLanes) {
        even = hn::Add(even, load_four(x + i));
        odd = hn::Add(odd, load_four(x + i + length));
        even = hn::Add(even, load_four(x + i + 2 * length));
        odd = hn::Add(odd, load_four(x + i + 3 * length));
      }
      i += 3 * length;
    }
    for (; i + kLanes <= n; i += kLanes) even = hn::Add(even, load(x + i));
    if (i < n) odd = hn::Add(odd, hn::BitCast(Bits(), load_first(x + i, n - i)));
    end_of_call();
  }
  // Lane by lane: some compilers' own reductions add as signed integers, which must not wrap around.
  HWY_ALIGN std::uint32_t lanes[kLanes];
  hn::Store(hn::Add(even, odd), Bits(), lanes);
  return std::accumulate(lanes, lanes + kLanes, 0U);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(sum_bits);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) {
    const std::uint32_t sum = HWY_DYNAMIC_DISPATCH(sum_bits)(*a, 0, a->dim[0]);
    std::memcpy(a->ptr[1], &sum, sizeof(sum));
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* part = static_cast<std::uint32_t*>(scratch) + begin;
  std::fill_n(part, end - begin, 0U);
  *part = HWY_DYNAMIC_DISPATCH(sum_bits)(*a, begin * ops::kProbePiece,
                                         std::min(end * ops::kProbePiece, a->dim[0]));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> probe_read() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
