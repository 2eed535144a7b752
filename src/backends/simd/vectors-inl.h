// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What every SIMD kernel shares: the vector type of the instruction set being compiled, and loads and stores of the
// first n lanes that touch no byte beyond them, so that a tail runs through the same arithmetic as the body.
// Included once per instruction set: the guard flips with HWY_TARGET_TOGGLE.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(FULCRUM_BACKENDS_SIMD_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_VECTORS_INL_H_
#undef FULCRUM_BACKENDS_SIMD_VECTORS_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_VECTORS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Float = hn::ScalableTag<float>;
using Floats = hn::Vec<Float>;
// A constant on the targets in use (x86, NEON), which lets accumulators be arrays that live in registers.
inline constexpr std::size_t kLanes = hn::MaxLanes(Float());

/// Lanes [0, n) from memory, 0 in the others; 0 <= n < kLanes.
HWY_INLINE Floats load_first(const float* from, std::size_t n) {
  const Float d;
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, n), d, from);
#else
  // Without masked loads a whole vector would be read: go through a buffer.
  HWY_ALIGN float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = from[i];
  return hn::Load(d, lanes);
#endif
}

/// load_first() of the same lanes again and again: the compiler makes its mask anew for every vector.
class FirstLanes {
 public:
  HWY_INLINE explicit FirstLanes(std::size_t n) : n_(n), mask_(hn::FirstN(Float(), n)) {}
  HWY_INLINE Floats load(const float* from) const {
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(mask_, Float(), from);
#else
    return load_first(from, n_);
#endif
  }

 private:
  [[maybe_unused]] std::size_t n_;
  [[maybe_unused]] hn::Mask<Float> mask_;
};

/// Lanes [0, n) to memory; 0 <= n < kLanes.
HWY_INLINE void store_first(Floats v, float* to, std::size_t n) {
  const Float d;
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(v, hn::FirstN(d, n), d, to);
#else
  HWY_ALIGN float lanes[kLanes];
  hn::Store(v, d, lanes);
  for (std::size_t i = 0; i < n; ++i) to[i] = lanes[i];
#endif
}

/// For rows shorter than a vector, one after the other from `from` on: fetches the `count` elements that lie some lines
/// ahead of those. Masked loads by themselves do not start the prefetchers of Zen 5, which then waits for every line: rows
/// of 12 floats from memory took 3 to 6 times as long as rows of 16.
template <class T>
HWY_INLINE void fetch_short_rows(const T* from, std::size_t count) {
  constexpr std::size_t kLine = 64 / sizeof(T), kAhead = 32 * kLine;
  for (std::size_t i = 0; i < count; i += kLine) __builtin_prefetch(from + kAhead + i);
}

/// Keeps the compiler from merging the repeated calls of a batch.
HWY_INLINE void end_of_call() { __asm__ volatile("" ::: "memory"); }

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
