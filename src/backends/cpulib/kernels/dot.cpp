// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// dot through sdot.
#include "backends/cpulib/variants.h"

namespace fulcrum::backends::cpulib::kernels {
namespace {

enum Pointer { kA, kB, kOut };

int supports(const fulcrum_args* a) { return fits_int({a->dim[0]}); }

template <bool kAllThreads>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const OpenBlas& library = openblas();
  use_threads(library, kAllThreads ? usable_threads() : 1);
  for (std::int64_t i = 0; i < count; ++i) {
    *a->out<float>(kOut) =
        library.sdot(static_cast<int>(a->dim[0]), a->in<float>(kA), 1, a->in<float>(kB), 1);
  }
  return done();
}

std::vector<fulcrum_kernel> make() {
  std::vector<fulcrum_kernel> kernels;
  add_openblas(kernels, run<true>, run<false>, supports);
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> dot() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
