// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul through sgemm, or sgemv when one side is a vector. The bias is laid into C first and added by beta = 1.
#include "backends/cpulib/variants.h"

namespace fulcrum::backends::cpulib::kernels {
namespace {

enum Pointer { kA, kB, kBias, kC };
enum Dim { kM, kN, kK };

/// Libraries compute products and sums; an activation would be a second pass of ours.
int supports(const fulcrum_args* a) {
  return a->scalar[0].i == 0 && fits_int({a->dim[kM], a->dim[kN], a->dim[kK]});
}

/// C = bias or nothing; returns beta.
float prepare(const fulcrum_args& a) {
  const std::int64_t m = a.dim[kM], n = a.dim[kN];
  const auto* bias = a.in<float>(kBias);
  auto* c = a.out<float>(kC);
  if (bias) {
    for (std::int64_t i = 0; i < m; ++i) std::copy(bias, bias + n, c + i * n);
    return 1;
  }
  if (a.dim[kK] == 0) std::fill(c, c + m * n, 0.0f);
  return 0;
}

/// With an empty sum, or no output, there is nothing to ask a library for.
bool is_empty(const fulcrum_args& a) { return a.dim[kM] == 0 || a.dim[kN] == 0 || a.dim[kK] == 0; }

void blas(const fulcrum_args& a) {
  const OpenBlas& library = openblas();
  const auto m = static_cast<int>(a.dim[kM]), n = static_cast<int>(a.dim[kN]),
             k = static_cast<int>(a.dim[kK]);
  const float beta = prepare(a);
  if (is_empty(a)) return;
  if (m == 1) {
    library.sgemv(kRowMajor, kTranspose, k, n, 1, a.in<float>(kB), n, a.in<float>(kA), 1, beta,
                  a.out<float>(kC), 1);
  } else if (n == 1) {
    library.sgemv(kRowMajor, kNoTranspose, m, k, 1, a.in<float>(kA), k, a.in<float>(kB), 1, beta,
                  a.out<float>(kC), 1);
  } else {
    library.sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a.in<float>(kA), k, a.in<float>(kB), n,
                  beta, a.out<float>(kC), n);
  }
}

template <bool kAllThreads>
fulcrum_status run_openblas(const fulcrum_args* a, void*, std::int64_t count) {
  use_threads(openblas(), kAllThreads ? usable_threads() : 1);
  for (std::int64_t i = 0; i < count; ++i) blas(*a);
  return done();
}

template <bool kAllThreads>
fulcrum_status run_onednn(const fulcrum_args* a, void*, std::int64_t count) {
  const OneDnn& library = onednn();
  const std::int64_t m = a->dim[kM], n = a->dim[kN], k = a->dim[kK];
  use_threads(library, kAllThreads ? usable_threads() : 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const float beta = prepare(*a);
    if (is_empty(*a)) continue;
    const int failed = library.sgemm('N', 'N', m, n, k, 1, a->in<float>(kA), k, a->in<float>(kB), n, beta,
                                     a->out<float>(kC), n);
    if (failed) return fulcrum_status{FULCRUM_DEVICE_ERROR, "dnnl_sgemm failed"};
  }
  return done();
}

std::vector<fulcrum_kernel> make() {
  std::vector<fulcrum_kernel> kernels;
  add_openblas(kernels, run_openblas<true>, run_openblas<false>, supports);
  add_onednn(kernels, run_onednn<true>, run_onednn<false>, supports);
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> matmul() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
