// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// cosine_similarity through sgemv (one query) or sgemm, norms through sdot, then one pass of ours that scales.
#include <fulcrum/ops/cosine.h>

#include <cmath>

#include "backends/cpulib/variants.h"

namespace fulcrum::backends::cpulib::kernels {
namespace {

enum Pointer { kQuery, kRows, kInverseNorm, kOut };
enum Dim { kQ, kN, kD };

int supports(const fulcrum_args* a) { return fits_int({a->dim[kQ], a->dim[kN], a->dim[kD]}); }

/// 1/|x|, or 0 when the norm leaves [2^-50, 2^50] or is NaN: such pairs are redone in fp64.
float inverse_norm(const float* x, std::int64_t d) {
  const float squared = openblas().sdot(static_cast<int>(d), x, 1, x, 1);
  return squared >= 0x1p-100f && squared <= 0x1p100f ? 1 / std::sqrt(squared) : 0;
}

float inverse_norm_of_row(const fulcrum_args& a, std::int64_t row) {
  if (a.scalar[0].i == 1) return 1;
  if (const auto* known = a.in<float>(kInverseNorm)) {
    return known[row] >= 0x1p-50f && known[row] <= 0x1p50f ? known[row] : 0;
  }
  return inverse_norm(a.in<float>(kRows) + row * a.dim[kD], a.dim[kD]);
}

void products(const fulcrum_args& a) {
  const auto q = static_cast<int>(a.dim[kQ]), n = static_cast<int>(a.dim[kN]),
             d = static_cast<int>(a.dim[kD]);
  if (q == 1) {
    openblas().sgemv(kRowMajor, kNoTranspose, n, d, 1, a.in<float>(kRows), d, a.in<float>(kQuery), 1, 0,
                     a.out<float>(kOut), 1);
  } else {
    openblas().sgemm(kRowMajor, kNoTranspose, kTranspose, q, n, d, 1, a.in<float>(kQuery), d,
                     a.in<float>(kRows), d, 0, a.out<float>(kOut), n);
  }
}

void scale(const fulcrum_args& a, const std::vector<float>& row_scale) {
  const std::int64_t n = a.dim[kN], d = a.dim[kD];
  for (std::int64_t i = 0; i < a.dim[kQ]; ++i) {
    const float* q = a.in<float>(kQuery) + i * d;
    float* out = a.out<float>(kOut) + i * n;
    const float query_scale = inverse_norm(q, d);
    for (std::int64_t j = 0; j < n; ++j) {
      const float row = row_scale[static_cast<std::size_t>(j)];
      const bool safe = query_scale > 0 && row > 0 && std::isfinite(out[j]);
      out[j] = safe ? std::clamp(out[j] * query_scale * row, -1.0f, 1.0f)
                    : ops::cosine_score(q, a.in<float>(kRows) + j * d, d);
    }
  }
}

/// Norms of the rows, kept between calls of a batch as memory only.
fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  *plan = new std::vector<float>(static_cast<std::size_t>(a->dim[kN]));
  return done();
}

void drop(void* plan) { delete static_cast<std::vector<float>*>(plan); }

template <bool kAllThreads>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  auto& row_scale = *static_cast<std::vector<float>*>(a->plan);
  use_threads(openblas(), kAllThreads ? usable_threads() : 1);
  if (a->dim[kQ] == 0 || a->dim[kN] == 0) return done();
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t row = 0; row < a->dim[kN]; ++row) row_scale[row] = inverse_norm_of_row(*a, row);
    products(*a);
    scale(*a, row_scale);
  }
  return done();
}

std::vector<fulcrum_kernel> make() {
  std::vector<fulcrum_kernel> kernels;
  add_openblas(kernels, run<true>, run<false>, supports);
  for (fulcrum_kernel& kernel : kernels) {
    kernel.plan = plan;
    kernel.drop = drop;
  }
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> cosine_similarity() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
