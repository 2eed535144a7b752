// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole element-wise kernel from one Map: between FULCRUM_MAP_BEGIN and FULCRUM_MAP_END stands a struct that maps
// vectors, compiled once per instruction set; FULCRUM_UNARY_KERNEL makes the op's kernels of it, on every instruction
// set, plain and with streaming stores, in one piece and in parts.
#include "backends/simd/elementwise.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/streaming-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_ELEMENTWISE_INL_H_
#undef FULCRUM_BACKENDS_SIMD_ELEMENTWISE_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_ELEMENTWISE_INL_H_
#endif

#undef FULCRUM_MAP_BEGIN
#define FULCRUM_MAP_BEGIN                            \
  HWY_BEFORE_NAMESPACE();                            \
  namespace fulcrum::backends::simd::HWY_NAMESPACE { \
  namespace {
#undef FULCRUM_MAP_END
#define FULCRUM_MAP_END \
  }                     \
  }                     \
  HWY_AFTER_NAMESPACE();

/// The kernels of `op`: Map over Input, each call `sweeps_a_call` sweeps (an expression of the arguments `a`).
#undef FULCRUM_ELEMENT_KERNEL
#define FULCRUM_ELEMENT_KERNEL(op, Input, Map, piece, level, sweeps_a_call)                        \
  FULCRUM_MAP_BEGIN                                                                                \
  void cover_##op(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count, \
                  bool stream) {                                                                   \
    cover_elements<Input, Map>(a, begin, end, count * (sweeps_a_call), stream);                    \
  }                                                                                                \
  FULCRUM_MAP_END                                                                                  \
  FULCRUM_ELEMENT_TABLE(op, piece, level)

/// The table, once for all instruction sets; the name of the function carries the op's for profiles.
#undef FULCRUM_ELEMENT_TABLE
#if HWY_ONCE
#define FULCRUM_ELEMENT_TABLE(op, piece, level)                                                              \
  namespace fulcrum::backends::simd {                                                                        \
  HWY_EXPORT(cover_##op);                                                                                    \
  static void dispatch_##op(const fulcrum_args& a, std::int64_t begin, std::int64_t end, std::int64_t count, \
                            bool stream) {                                                                   \
    (HWY_DYNAMIC_DISPATCH(cover_##op))(a, begin, end, count, stream);                                        \
  }                                                                                                          \
  namespace kernels {                                                                                        \
  std::span<const fulcrum_kernel> op() { return element_kernels<dispatch_##op, piece>(level); }              \
  }                                                                                                          \
  }
#else
#define FULCRUM_ELEMENT_TABLE(op, piece, level)
#endif

/// One input, one output; `level` is the op's level of determinism.
#undef FULCRUM_UNARY_KERNEL
#define FULCRUM_UNARY_KERNEL(op, Map, level) \
  FULCRUM_ELEMENT_KERNEL(op, OneInput, Map, ops::kElementPiece, level, 1)

/// A probe of bandwidth: a call is `passes` sweeps, so that a thread stays on its slice.
#undef FULCRUM_PROBE_KERNEL
#define FULCRUM_PROBE_KERNEL(op, Input, Map) \
  FULCRUM_ELEMENT_KERNEL(op, Input, Map, ops::kProbePiece, 0, a.scalar[0].i)

#endif
