// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The loops of element-wise kernels: four vectors a round, the tail through the same arithmetic, and a form whose
// stores go past the caches. The output may be one of the inputs, so nothing here is marked restrict.
#include <fulcrum/abi.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <type_traits>

#include "backends/simd/vectors-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#undef FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_STREAMING_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// One input, and two: what the loops below need of them. Made from a call's arguments, the inputs are the first
/// pointers and the output is the next.
struct OneInput {
  static constexpr int kCount = 1;
  const float* x;
  static HWY_INLINE OneInput of(const fulcrum_args& a, std::int64_t begin) {
    return {a.in<float>(0) + begin};
  }
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
  static constexpr int kCount = 2;
  const float* x;
  const float* y;
  static HWY_INLINE TwoInputs of(const fulcrum_args& a, std::int64_t begin) {
    return {a.in<float>(0) + begin, a.in<float>(1) + begin};
  }
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

// Streaming loops work at several places of the memory at once: prefetchers follow each on its own, so that more is
// under way. Elements from one place to the next: no power of two, or all places would fall on the same cache sets.
inline constexpr std::size_t kPlaces = 4;
inline constexpr std::size_t kPlaceLength = 61696;

/// Elements of each of kPlaces places when `left` are to do: whole rounds of four vectors, none when there are too few.
HWY_INLINE std::size_t place_length(std::size_t left) {
  return std::min(left / kPlaces, kPlaceLength) / (4 * kLanes) * (4 * kLanes);
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
  for (std::size_t length = place_length(n - i); length > 0; length = place_length(n - i)) {
    for (const std::size_t end = i + length; i < end; i += 4 * kLanes) {
      for (std::size_t at = i; at < i + kPlaces * length; at += length) {
        hn::Stream(input.whole(map, at), d, out + at);
        hn::Stream(input.whole(map, at + kLanes), d, out + at + kLanes);
        hn::Stream(input.whole(map, at + 2 * kLanes), d, out + at + 2 * kLanes);
        hn::Stream(input.whole(map, at + 3 * kLanes), d, out + at + 3 * kLanes);
      }
    }
    i += (kPlaces - 1) * length;
  }
  for (; i + kLanes <= n; i += kLanes) hn::Stream(input.whole(map, i), d, out + i);
  if (i < n) store_first(input.first(map, i, n - i), out + i, n - i);
  hwy::FlushStream();
}

/// A Map with parameters has a constructor that reads them from the arguments.
template <class Map>
HWY_INLINE Map make_map(const fulcrum_args& a) {
  if constexpr (std::is_constructible_v<Map, const fulcrum_args&>) return Map(a);
  if constexpr (!std::is_constructible_v<Map, const fulcrum_args&>) return Map();
}

/// The elements [begin, end) of a call's arguments, `sweeps` times.
template <class Input, class Map>
HWY_INLINE void cover_elements(const fulcrum_args& a, std::int64_t begin, std::int64_t end,
                               std::int64_t sweeps, bool stream) {
  const Input input = Input::of(a, begin);
  float* out = a.out<float>(Input::kCount) + begin;
  const auto n = static_cast<std::size_t>(end - begin);
  const Map map = make_map<Map>(a);
  for (std::int64_t sweep = 0; sweep < sweeps; ++sweep) {
    stream ? stream_elements(input, out, n, map) : map_elements(input, out, n, map);
    end_of_call();
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
