// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// log_softmax: one pass for the sum of exponentials, one that subtracts the reference and then ln(sum).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/log_softmax.cpp"
#include <hwy/foreach_target.h>

#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/softmax-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Subtract {
  Floats max, log_sum;
  HWY_INLINE Floats operator()(Floats x) const { return hn::Sub(hn::Sub(x, max), log_sum); }
};

struct LogSoftmax {
  static constexpr bool kKeeps = false;

  template <bool kStream>
  static HWY_INLINE void finish(const float* x, float* out, std::size_t n, const ops::SoftmaxPart& row) {
    const Subtract map{set(row.max), log(set(static_cast<float>(row.sum)))};
    kStream ? stream_elements(OneInput{x}, out, n, map) : map_elements(OneInput{x}, out, n, map);
  }
};

void run_log_softmax(const fulcrum_args& a, std::int64_t count, bool stream) {
  stream ? row_by_row<LogSoftmax, true>(a, count, nullptr) : row_by_row<LogSoftmax, false>(a, count, nullptr);
}

void partial_log_softmax(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                         ops::SoftmaxPart* parts, bool stream) {
  stream ? rows_phase<LogSoftmax, true>(a, write, begin, end, parts)
         : rows_phase<LogSoftmax, false>(a, write, begin, end, parts);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_log_softmax);
HWY_EXPORT(partial_log_softmax);

template <bool kStream>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  (HWY_DYNAMIC_DISPATCH(run_log_softmax))(*a, count, kStream);
  return done();
}

template <bool kStream>
void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  (HWY_DYNAMIC_DISPATCH(partial_log_softmax))(*a, phase == 1, begin, end,
                                              static_cast<ops::SoftmaxPart*>(scratch), kStream);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> log_softmax() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run<false>, .partial = partial<false>},
      {.variant = "stream", .level = 1, .isa = isa_name, .run = run<true>, .partial = partial<true>},
  };
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
