// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// log_softmax: the first pass leaves x - reference of the chunk in the output, and the second subtracts ln(sum) from
// there. In one step, x - (reference + ln(sum)) would cost bits when the reference is large.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/log_softmax.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/softmax-inl.h"
#include "backends/simd/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Subtract {
  Floats log_sum;
  HWY_INLINE Floats operator()(Floats difference) const { return hn::Sub(difference, log_sum); }
};

/// Results of a row from the differences to its maximum and the sum of their exponentials.
struct ShortLogSoftmax {
  Floats log_sum;
  HWY_INLINE explicit ShortLogSoftmax(Floats sum) : log_sum(log(sum)) {}
  HWY_INLINE Floats operator()(Floats difference, Floats) const { return hn::Sub(difference, log_sum); }
};

struct LogSoftmax {
  using Short = ShortLogSoftmax;
  static HWY_INLINE Floats kept(Floats difference, Floats) { return difference; }

  /// A row of -Inf alone ends as NaN, through the difference of its references.
  static HWY_INLINE void finish(float* out, std::size_t n, const ops::SoftmaxPart& part) {
    const auto below = set(static_cast<float>(static_cast<double>(part.max) - part.chunk_max));
    const auto log_sum = log(set(static_cast<float>(part.sum)));
    map_elements(OneInput{out}, out, n, Subtract{hn::Add(log_sum, below)});
  }
};

void run_log_softmax(const fulcrum_args& a, std::int64_t count, ops::SoftmaxPart* parts) {
  row_by_row<LogSoftmax>(a, count, parts);
}

void phase_log_softmax(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                       ops::SoftmaxPart* parts) {
  rows_phase<LogSoftmax>(a, write, begin, end, parts);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_log_softmax);
HWY_EXPORT(phase_log_softmax);

void run(const fulcrum_args& a, std::int64_t count, ops::SoftmaxPart* parts) {
  (HWY_DYNAMIC_DISPATCH(run_log_softmax))(a, count, parts);
}

void phase(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end, ops::SoftmaxPart* parts) {
  (HWY_DYNAMIC_DISPATCH(phase_log_softmax))(a, write, begin, end, parts);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> log_softmax() { return row_kernels<run, phase>(); }
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
