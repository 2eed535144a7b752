// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// batched_matmul: one product an entry. With one right side for all, the left sides stand below each other and are
// one tall matrix.
#include <fulcrum/ops/batched_matmul.h>

#include <algorithm>
#include <span>

#include "backends/simd/gemm.h"
#include "backends/simd/isa.h"
#include "backends/table.h"

namespace fulcrum::backends::simd {
namespace {

enum Pointer { kA, kB, kC };
enum Dim { kBatch, kM, kN, kK, kRightSides };

Product entry_of(const fulcrum_args& a, std::int64_t entry) {
  const std::int64_t m = a.dim[kM], n = a.dim[kN], k = a.dim[kK];
  const std::int64_t right = a.dim[kRightSides] == 1 ? 0 : entry;
  const bool alone = a.dim[kRightSides] == a.dim[kBatch];
  return Product{.a = Matrix{a.in<float>(kA) + entry * m * k, static_cast<std::size_t>(k)},
                 .b = Matrix{a.in<float>(kB) + right * k * n, static_cast<std::size_t>(n)},
                 .bias = nullptr,
                 .c = a.out<float>(kC) + entry * m * n,
                 .stride = static_cast<std::size_t>(n),
                 .depth = static_cast<std::size_t>(k),
                 .epilogue = 0,
                 .rows = static_cast<std::size_t>(alone ? m : m * a.dim[kBatch]),
                 .anywhere = !alone};
}

/// Entries [begin, end) as a whole.
void multiply_entries(const fulcrum_args& a, Multiply product, std::int64_t begin, std::int64_t end) {
  const auto m = static_cast<std::size_t>(a.dim[kM]), n = static_cast<std::size_t>(a.dim[kN]);
  if (a.dim[kRightSides] == 1) {
    return product(entry_of(a, begin), Area{0, 0, static_cast<std::size_t>(end - begin) * m, n});
  }
  for (std::int64_t entry = begin; entry < end; ++entry) product(entry_of(a, entry), Area{0, 0, m, n});
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Multiply product = multiply();
  for (std::int64_t call = 0; call < count && a->dim[kBatch] > 0; ++call) {
    multiply_entries(*a, product, 0, a->dim[kBatch]);
  }
  return done();
}

/// The end of one entry, whole entries, the start of another.
void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  const Multiply product = multiply();
  const ops::MatmulTiles tiles = ops::batched_matmul_tiles(*a);
  const std::int64_t each = tiles.pieces();
  while (begin < end) {
    const std::int64_t entry = begin / each, first = begin % each;
    if (first == 0 && end - begin >= each) {
      const std::int64_t entries = (end - begin) / each;
      multiply_entries(*a, product, entry, entry + entries);
      begin += entries * each;
      continue;
    }
    const std::int64_t last = std::min(each, first + end - begin);
    multiply_pieces(product, entry_of(*a, entry), a->dim[kM], a->dim[kN], tiles, first, last);
    begin += last - first;
  }
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> batched_matmul() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 1, .isa = isa_name, .run = run, .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
