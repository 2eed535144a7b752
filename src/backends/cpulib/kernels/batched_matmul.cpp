// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul through one sgemm an entry, or one in all when the entries share their right side.
#include "backends/cpulib/variants.h"

namespace fulcrum::backends::cpulib::kernels {
namespace {

enum Pointer { kA, kB, kC };
enum Dim { kBatch, kM, kN, kK, kRightSides };

/// The products to ask a library for.
struct Products {
  std::int64_t count, m, n, k;
};

Products products_of(const fulcrum_args& a) {
  const bool one = a.dim[kRightSides] == 1;
  return Products{one ? 1 : a.dim[kBatch], one ? a.dim[kBatch] * a.dim[kM] : a.dim[kM], a.dim[kN], a.dim[kK]};
}

int supports(const fulcrum_args* a) {
  const Products p = products_of(*a);
  return fits_int({p.m, p.n, p.k});
}

/// With an empty sum, or no output, there is nothing to ask a library for.
bool is_empty(const fulcrum_args& a, const Products& p) {
  if (p.count > 0 && p.m > 0 && p.n > 0 && p.k > 0) return false;
  std::fill_n(a.out<float>(kC), p.count * p.m * p.n, 0.0f);
  return true;
}

template <bool kAllThreads>
fulcrum_status run_openblas(const fulcrum_args* a, void*, std::int64_t count) {
  const OpenBlas& library = openblas();
  const Products p = products_of(*a);
  const auto m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  use_threads(library, kAllThreads ? usable_threads() : 1);
  for (std::int64_t call = 0; call < count && !is_empty(*a, p); ++call) {
    for (std::int64_t i = 0; i < p.count; ++i) {
      library.sgemm(kRowMajor, kNoTranspose, kNoTranspose, m, n, k, 1, a->in<float>(kA) + i * p.m * p.k, k,
                    a->in<float>(kB) + i * p.k * p.n, n, 0, a->out<float>(kC) + i * p.m * p.n, n);
    }
  }
  return done();
}

template <bool kAllThreads>
fulcrum_status run_onednn(const fulcrum_args* a, void*, std::int64_t count) {
  const OneDnn& library = onednn();
  const Products p = products_of(*a);
  use_threads(library, kAllThreads ? usable_threads() : 1);
  for (std::int64_t call = 0; call < count && !is_empty(*a, p); ++call) {
    for (std::int64_t i = 0; i < p.count; ++i) {
      const int failed =
          library.sgemm('N', 'N', p.m, p.n, p.k, 1, a->in<float>(kA) + i * p.m * p.k, p.k,
                        a->in<float>(kB) + i * p.k * p.n, p.n, 0, a->out<float>(kC) + i * p.m * p.n, p.n);
      if (failed) return fulcrum_status{FULCRUM_DEVICE_ERROR, "dnnl_sgemm failed"};
    }
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

std::span<const fulcrum_kernel> batched_matmul() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
