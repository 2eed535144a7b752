// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul: one product of matrices, or tiles of it.
#include <span>

#include "backends/simd/gemm.h"
#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {
namespace {

enum Pointer { kA, kB, kBias, kC };
enum Dim { kM, kN, kK };

Product product_of(const fulcrum_args& a) {
  const auto n = static_cast<std::size_t>(a.dim[kN]);
  const auto k = static_cast<std::size_t>(a.dim[kK]);
  return Product{.a = Matrix{a.in<float>(kA), k},
                 .b = Matrix{a.in<float>(kB), n},
                 .bias = a.in<float>(kBias),
                 .c = a.out<float>(kC),
                 .stride = n,
                 .depth = k,
                 .epilogue = a.scalar[0].i,
                 .rows = static_cast<std::size_t>(a.dim[kM]),
                 .anywhere = false};
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Multiply product = multiply();
  const Product p = product_of(*a);
  const Area all{0, 0, static_cast<std::size_t>(a->dim[kM]), p.stride};
  for (std::int64_t call = 0; call < count; ++call) product(p, all);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const std::int64_t m = a->dim[kM], n = a->dim[kN];
  multiply_pieces(multiply(), product_of(*a), m, n, ops::MatmulTiles(m, n, a->dim[kK]), begin, end);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> matmul() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
