// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// vec_add: one vector to another, or a list of vectors in one call. 12 bytes move for one addition, so the loop is
// all there is to win, and non-temporal stores save a quarter of the traffic once the output leaves the caches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/vec_add.cpp"
#include <hwy/foreach_target.h>

#include <fulcrum/ops/elementwise.h>

#include "backends/simd/elementwise.h"
#include "backends/simd/streaming-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Sum {
  HWY_INLINE Floats operator()(Floats a, Floats b) const { return hn::Add(a, b); }
};

void add_vectors(const float* a, const float* b, float* out, std::size_t n, std::int64_t count, bool stream) {
  for (std::int64_t call = 0; call < count; ++call) {
    const TwoInputs input{a, b};
    stream ? stream_elements(input, out, n, Sum()) : map_elements(input, out, n, Sum());
    end_of_call();
  }
}

/// The vectors [begin, end) of the list form.
void add_lists(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count, bool stream) {
  for (std::int64_t call = 0; call < count; ++call) {
    for (std::int64_t i = begin; i < end; ++i) {
      const TwoInputs input{a.in<const float*>(0)[i], a.in<const float*>(1)[i]};
      float* out = a.in<float*>(3)[i];
      const auto n = static_cast<std::size_t>(a.in<std::int64_t>(2)[i]);
      stream ? stream_elements(input, out, n, Sum()) : map_elements(input, out, n, Sum());
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

HWY_EXPORT(add_vectors);
HWY_EXPORT(add_lists);

bool is_list(const fulcrum_args& a) { return a.scalar[0].i == 1; }

template <bool kStream>
void cover(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count) {
  if (is_list(a)) return (HWY_DYNAMIC_DISPATCH(add_lists))(a, begin, end, count, kStream);
  (HWY_DYNAMIC_DISPATCH(add_vectors))(a.in<float>(0) + begin, a.in<float>(1) + begin, a.out<float>(3) + begin,
                                      static_cast<std::size_t>(end - begin), count, kStream);
}

template <bool kStream>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  cover<kStream>(*a, 0, is_list(*a) ? a->dim[1] : a->dim[0] * a->dim[1], count);
  return done();
}

template <bool kStream>
void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  if (is_list(*a)) return cover<kStream>(*a, begin, end, 1);
  const std::int64_t all = a->dim[0] * a->dim[1];
  cover<kStream>(*a, begin * ops::kElementPiece, std::min(end * ops::kElementPiece, all), 1);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> vec_add() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa_name, .run = run<false>, .partial = partial<false>},
      {.variant = "stream", .level = 2, .isa = isa_name, .run = run<true>, .partial = partial<true>},
  };
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
