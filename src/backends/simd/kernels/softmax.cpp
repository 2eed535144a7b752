// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax takes each exponential once: the first pass leaves exp(x - reference of the chunk) in the output and the
// second multiplies, which beats a second exponential from a cache and from memory. The reference is subtracted on its
// own: folding ln(sum) into it would cost bits when it is large.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/softmax.cpp"
#include <hwy/foreach_target.h>

#include <cmath>
#include <new>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/softmax-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

struct Scale {
  Floats factor;
  HWY_INLINE Floats operator()(Floats e) const { return hn::Mul(e, factor); }
};

struct Softmax {
  static constexpr bool kKeeps = true;

  template <bool>
  static HWY_INLINE void finish(const float*, float* out, std::size_t n, const ops::SoftmaxPart& row) {
    const bool same = row.chunk_max == row.max;
    const double below = same ? 1 : std::exp(static_cast<double>(row.chunk_max) - row.max);
    map_elements(OneInput{out}, out, n, Scale{set(static_cast<float>(below / row.sum))});
  }
};

void run_softmax(const fulcrum_args& a, std::int64_t count) {
  row_by_row<Softmax, false>(a, count, static_cast<ops::SoftmaxPart*>(a.plan));
}

void partial_softmax(const fulcrum_args& a, bool write, std::int64_t begin, std::int64_t end,
                     ops::SoftmaxPart* parts) {
  rows_phase<Softmax, false>(a, write, begin, end, parts);
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_softmax);
HWY_EXPORT(partial_softmax);

/// Room for the parts of a row.
fulcrum_status make_plan(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  const auto chunks = static_cast<std::size_t>(ops::softmax_chunks(a->dim[1]));
  *plan = ::operator new(chunks * sizeof(ops::SoftmaxPart), std::nothrow);
  if (*plan) return done();
  return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for the parts of a row"};
}

void drop_plan(void* plan) { ::operator delete(plan); }

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  (HWY_DYNAMIC_DISPATCH(run_softmax))(*a, count);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  (HWY_DYNAMIC_DISPATCH(partial_softmax))(*a, phase == 1, begin, end,
                                          static_cast<ops::SoftmaxPart*>(scratch));
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> softmax() {
  static const fulcrum_kernel kernels[] = {{.variant = "default",
                                            .level = 1,
                                            .isa = isa_name,
                                            .plan = make_plan,
                                            .drop = drop_plan,
                                            .run = run,
                                            .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
