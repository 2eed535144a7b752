// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax takes each exponential once: the first pass leaves exp(x - reference of the chunk) in the output and the
// second multiplies, which beats a second exponential from every cache and from memory. The reference is subtracted on
// its own: folding ln(sum) into it would cost bits when it is large.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "backends/simd/softmax-inl.h"
#include "backends/simd/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Scale {
  Floats factor;
  HWY_INLINE Floats operator()(Floats e) const { return hn::Mul(e, factor); }
};

/// Results of a row from the differences to its maximum, their exponentials and the sum of those.
struct ShortSoftmax {
  Floats factor;
  HWY_INLINE explicit ShortSoftmax(Floats sum) : factor(hn::Div(set(1.0F), sum)) {}
  HWY_INLINE Floats operator()(Floats, Floats e) const { return hn::Mul(e, factor); }
};

struct Softmax {
  using Short = ShortSoftmax;
  static HWY_INLINE Floats kept(Floats, Floats e) { return e; }

  static HWY_INLINE void finish(float* out, std::size_t n, const ops::SoftmaxPart& part) {
    const bool same = part.chunk_max == part.max;
    const double below = same ? 1 : std::exp(static_cast<double>(part.chunk_max) - part.max);
    map_elements(OneInput{out}, out, n, Scale{set(static_cast<float>(below / part.sum))});
  }
};

void run_softmax(const fulcrum_args& a, std::int64_t count, ops::SoftmaxPart* parts) {
  row_by_row<Softmax>(a, count, parts);
}

void phase_softmax(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                   ops::SoftmaxPart* parts) {
  rows_phase<Softmax>(a, write, begin, end, parts);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_softmax);
HWY_EXPORT(phase_softmax);

void run(const fulcrum_args& a, std::int64_t count, ops::SoftmaxPart* parts) {
  (HWY_DYNAMIC_DISPATCH(run_softmax))(a, count, parts);
}

void phase(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end, ops::SoftmaxPart* parts) {
  (HWY_DYNAMIC_DISPATCH(phase_softmax))(a, write, begin, end, parts);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> softmax() { return row_kernels<run, phase>(); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
