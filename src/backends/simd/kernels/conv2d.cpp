// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d: see conv2d-inl.h for how rows are made.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/conv2d.cpp"
#include <fulcrum/ops/conv2d.h>
#include <hwy/foreach_target.h>

#include <span>

#include "backends/simd/conv2d-inl.h"
#include "backends/simd/isa.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct StoreRow {
  float* HWY_RESTRICT y;
  std::int64_t width;
  HWY_INLINE void operator()(Floats v, std::int64_t row, std::int64_t column, std::size_t n,
                             std::int64_t) const {
    float* to = y + row * width + column;
    if (n == kLanes) {
      hn::StoreU(v, Float(), to);
    } else {
      store_first(v, to, n);
    }
  }
  /// Vectors that straddle two lines wait for both: in rows that begin at odd addresses that is nearly every one.
  HWY_INLINE void expect(std::int64_t row, std::int64_t column) const {
    constexpr std::int64_t kLine = 16;
    const float* first = y + row * width + column;
    HWY_UNROLL(2)
    for (std::int64_t i = 0; i < 2 * kStep; i += kLine) __builtin_prefetch(first + i, 1);
  }
};

/// Output rows [begin, end), counted over all images.
void conv2d_rows(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const ops::Conv2d g = ops::conv2d_geometry(a);
  while (begin < end) {
    const std::int64_t image = begin / g.ho, first = begin % g.ho;
    const std::int64_t last = std::min(g.ho, first + end - begin);
    conv_rows(g, a.in<float>(0) + image * g.h * g.w, a.in<float>(1), first, last,
              StoreRow{a.out<float>(2) + image * g.ho * g.wo, g.wo});
    begin += last - first;
  }
  end_of_call();
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(conv2d_rows);

std::int64_t all_rows(const fulcrum_args& a) { return a.dim[0] * ops::conv2d_geometry(a).ho; }

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto rows = HWY_DYNAMIC_DISPATCH(conv2d_rows);
  for (std::int64_t call = 0; call < count; ++call) rows(*a, 0, all_rows(*a));
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t first = begin * ops::kConv2dPieceRows;
  (HWY_DYNAMIC_DISPATCH(conv2d_rows))(*a, first, std::min(end * ops::kConv2dPieceRows, all_rows(*a)));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> conv2d() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
