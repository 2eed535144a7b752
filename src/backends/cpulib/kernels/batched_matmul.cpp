// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul through OpenBLAS's sgemm, one an entry, or one in all when the entries share their right side, and
// through oneDNN's batched product.
#include <memory>

#include "backends/cpulib/primitives.h"
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

/// All products as one primitive, whose threads share them out: calls one by one would join the threads after each.
struct Plan {
  DnnPrimitive primitive;
  DnnMemory a, b, c;
  bool valid() const { return primitive.valid() && a.valid() && b.valid() && c.valid(); }

  bool run(const fulcrum_args& args) {
    a.attach(args.ptr[kA]);
    b.attach(args.ptr[kB]);
    c.attach(args.ptr[kC]);
    return primitive.execute(
        {{{kDnnSource, a.handle()}, {kDnnWeights, b.handle()}, {kDnnDestination, c.handle()}}});
  }
};

fulcrum_status make_plan(const fulcrum_kernel* self, const fulcrum_args* args, void** made) {
  const Products p = products_of(*args);
  auto plan = std::make_unique<Plan>();
  if (has_primitives() && p.count > 0 && p.m > 0 && p.n > 0 && p.k > 0) {
    use_threads(onednn(), self->threads > 1 ? self->threads : 1);
    plan->primitive = DnnPrimitive::matmul(p.count, p.m, p.n, p.k);
    plan->a = DnnMemory::make(dnn_layout({p.count, p.m, p.k}, kDnnPlain3), false);
    plan->b = DnnMemory::make(dnn_layout({p.count, p.k, p.n}, kDnnPlain3), false);
    plan->c = DnnMemory::make(dnn_layout({p.count, p.m, p.n}, kDnnPlain3), false);
  }
  *made = plan.release();
  return done();
}

void drop_plan(void* plan) { delete static_cast<Plan*>(plan); }

bool one_by_one(const OneDnn& library, const fulcrum_args& a, const Products& p) {
  for (std::int64_t i = 0; i < p.count; ++i) {
    const int failed =
        library.sgemm('N', 'N', p.m, p.n, p.k, 1, a.in<float>(kA) + i * p.m * p.k, p.k,
                      a.in<float>(kB) + i * p.k * p.n, p.n, 0, a.out<float>(kC) + i * p.m * p.n, p.n);
    if (failed) return false;
  }
  return true;
}

template <bool kAllThreads>
fulcrum_status run_onednn(const fulcrum_args* a, void*, std::int64_t count) {
  const OneDnn& library = onednn();
  const Products p = products_of(*a);
  auto& plan = *static_cast<Plan*>(a->plan);
  use_threads(library, kAllThreads ? usable_threads() : 1);
  for (std::int64_t call = 0; call < count && !is_empty(*a, p); ++call) {
    if (!(plan.valid() ? plan.run(*a) : one_by_one(library, *a, p)))
      return fulcrum_status{FULCRUM_DEVICE_ERROR, "oneDNN's product failed"};
  }
  return done();
}

std::vector<fulcrum_kernel> make() {
  std::vector<fulcrum_kernel> kernels;
  add_openblas(kernels, run_openblas<true>, run_openblas<false>, supports);
  std::vector<fulcrum_kernel> primitives;
  add_onednn(primitives, run_onednn<true>, run_onednn<false>, supports);
  for (fulcrum_kernel& kernel : primitives) {
    kernel.plan = make_plan;
    kernel.drop = drop_plan;
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace

std::span<const fulcrum_kernel> batched_matmul() {
  static const std::vector<fulcrum_kernel> kernels = make();
  return kernels;
}

}  // namespace fulcrum::backends::cpulib::kernels
