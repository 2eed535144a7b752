// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops of element-wise kernels: four vectors a round, the tail through the same arithmetic, and a form whose
// stores go past the caches. The output may be one of the inputs, so nothing here is marked restrict.
#include <fulcrum/abi.h>
#include <hwy/cache_control.h>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#undef FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// One input, and two: what the loops below need of them.
struct OneInput {
  const float* x;
  template <class Map>
  HWY_INLINE Floats whole(Map map, std::size_t i) const {
    return map(hn::LoadU(Float(), x + i));
  }
  template <class Map>
  HWY_INLINE Floats first(Map map, std::size_t i, std::size_t n) const {
    return map(load_first(x + i, n));
  }
};
struct TwoInputs {
  const float* x;
  const float* y;
  template <class Map>
  HWY_INLINE Floats whole(Map map, std::size_t i) const {
    return map(hn::LoadU(Float(), x + i), hn::LoadU(Float(), y + i));
  }
  template <class Map>
  HWY_INLINE Floats first(Map map, std::size_t i, std::size_t n) const {
    return map(load_first(x + i, n), load_first(y + i, n));
  }
};

/// out[i] = map(input[i]) for i in [0, n).
template <class Input, class Map>
HWY_INLINE void map_elements(Input input, float* out, std::size_t n, Map map) {
  const Float d;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const auto v0 = input.whole(map, i);
    const auto v1 = input.whole(map, i + kLanes);
    const auto v2 = input.whole(map, i + 2 * kLanes);
    const auto v3 = input.whole(map, i + 3 * kLanes);
    hn::StoreU(v0, d, out + i);
    hn::StoreU(v1, d, out + i + kLanes);
    hn::StoreU(v2, d, out + i + 2 * kLanes);
    hn::StoreU(v3, d, out + i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(input.whole(map, i), d, out + i);
  if (i < n) store_first(input.first(map, i, n - i), out + i, n - i);
}

/// The same with non-temporal stores, which must be aligned: elements before the first boundary go the plain way.
template <class Input, class Map>
HWY_INLINE void stream_elements(Input input, float* out, std::size_t n, Map map) {
  const Float d;
  constexpr std::size_t kBytes = kLanes * sizeof(float);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(out) % kBytes / sizeof(float);
  std::size_t i = beyond == 0 ? 0 : kLanes - beyond;
  if (i > n) i = n;
  if (i > 0) store_first(input.first(map, 0, i), out, i);
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    hn::Stream(input.whole(map, i), d, out + i);
    hn::Stream(input.whole(map, i + kLanes), d, out + i + kLanes);
    hn::Stream(input.whole(map, i + 2 * kLanes), d, out + i + 2 * kLanes);
    hn::Stream(input.whole(map, i + 3 * kLanes), d, out + i + 3 * kLanes);
  }
  for (; i + kLanes <= n; i += kLanes) hn::Stream(input.whole(map, i), d, out + i);
  if (i < n) store_first(input.first(map, i, n - i), out + i, n - i);
  hwy::FlushStream();
}

/// `count` calls over the elements [begin, end) of a unary kernel's arguments: x in slot 0, out in slot 1.
template <class Map>
HWY_INLINE void map_unary(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count,
                          bool stream, Map map) {
  const OneInput input{a.in<float>(0) + begin};
  float* out = a.out<float>(1) + begin;
  const auto n = static_cast<std::size_t>(end - begin);
  for (std::int64_t call = 0; call < count; ++call) {
    stream ? stream_elements(input, out, n, map) : map_elements(input, out, n, map);
    end_of_call();
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
