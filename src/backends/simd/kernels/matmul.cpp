// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul by register tiles. Every element is one chain of fmas over k in index order, however the work is blocked:
// a tile picks its sums up from C where the last block of k left them. Small products read A and B in place; larger
// ones copy a block of B into panels of one tile's width, so that the inner loop walks memory and TLB in sequence.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/matmul.cpp"
#include <fulcrum/ops/matmul.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "backends/simd/isa.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/workspace.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// Accumulators, the row of B and one broadcast of A fill the register file: 8 * 3 + 3 + 1 of 32 with AVX-512,
// 6 * 2 + 2 + 1 of 16 elsewhere.
constexpr std::size_t kTileRows = HWY_TARGET <= HWY_AVX3 ? 8 : 6;
constexpr std::size_t kTileVectors = HWY_TARGET <= HWY_AVX3 ? 3 : 2;
constexpr std::size_t kTileColumns = kTileVectors * kLanes;

// Sizes by trial on cores with 32 KiB of L1 and 1 MiB of L2: the copied block of B and the rows of A that meet it
// stay in L2, and a panel (kBlockDepth by one tile) is read in sequence, which the prefetcher hides. A's rows are
// copied apart by a line more than their length: a power of two apart they would fall into the same cache sets.
constexpr std::size_t kBlockDepth = 256;
constexpr std::size_t kBlockColumns = 8 * kTileColumns;
constexpr std::size_t kBlockRows = 12 * kTileRows;
constexpr std::size_t kRowStride = kBlockDepth + 16;

// Copying pays when B is much larger than the L1 cache and its panels meet more than one tile of rows.
constexpr std::size_t kInPlaceElements = 16 * 1024;
// With few rows B is read once, from far away: take a handful of its rows at a time, along their length.
constexpr std::size_t kFewRowsDepth = 16;

struct Matrix {
  const float* data;
  std::size_t stride;
};

/// Where a tile's sums go; its last vector has `last` columns.
struct Sums {
  float* data;
  std::size_t stride;
  std::size_t last;
};

HWY_INLINE Floats load_lanes(const float* from, std::size_t n) {
  return n == kLanes ? hn::LoadU(Float(), from) : load_first(from, n);
}
HWY_INLINE void store_lanes(Floats v, float* to, std::size_t n) {
  n == kLanes ? hn::StoreU(v, Float(), to) : store_first(v, to, n);
}

/// C = (first ? 0 : C) + A[kRows, depth] * B[depth, kVectors * kLanes]. kCut: B ends with the tile's last column,
/// so that a whole vector may not be read there.
template <std::size_t kRows, std::size_t kVectors, bool kCut>
HWY_NOINLINE void tile(Matrix a, Matrix b, Sums c, std::size_t depth, bool first) {
  const Float d;
  Floats sum[kRows][kVectors];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const float* from = c.data + i * c.stride + v * kLanes;
      sum[i][v] = first ? hn::Zero(d) : load_lanes(from, v + 1 < kVectors ? kLanes : c.last);
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    const float* from = b.data + k * b.stride;
    Floats right[kVectors];
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      right[v] =
          kCut && v + 1 == kVectors ? load_first(from + v * kLanes, c.last) : hn::LoadU(d, from + v * kLanes);
    }
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < kRows; ++i) {
      const auto left = hn::Set(d, a.data[i * a.stride + k]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      store_lanes(sum[i][v], c.data + i * c.stride + v * kLanes, v + 1 < kVectors ? kLanes : c.last);
    }
  }
}

using Tile = void (*)(Matrix, Matrix, Sums, std::size_t, bool);

/// Entry (rows - 1) * kTileVectors + vectors - 1.
template <bool kCut, std::size_t... kIndex>
constexpr std::array<Tile, sizeof...(kIndex)> tiles(std::index_sequence<kIndex...>) {
  return {tile<kIndex / kTileVectors + 1, kIndex % kTileVectors + 1, kCut>...};
}
constexpr auto kWholeTiles = tiles<false>(std::make_index_sequence<kTileRows * kTileVectors>());
constexpr auto kCutTiles = tiles<true>(std::make_index_sequence<kTileRows * kTileVectors>());

/// C[rows, columns] = (first ? 0 : C) + A[rows, depth] * B[depth, columns], columns at most one tile. Rows are dealt
/// out evenly, since a short last tile would not hide the latency of its fmas.
void multiply_column(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t rows, std::size_t columns,
                     std::size_t depth, bool first, bool cut) {
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  const std::size_t last = columns - (vectors - 1) * kLanes;
  const auto& table = cut && last < kLanes ? kCutTiles : kWholeTiles;
  std::size_t left = (rows + kTileRows - 1) / kTileRows;
  for (std::size_t row = 0; row < rows; --left) {
    const std::size_t height = (rows - row + left - 1) / left;
    table[(height - 1) * kTileVectors + vectors - 1](Matrix{a.data + row * a.stride, a.stride}, b,
                                                     Sums{c + row * stride, stride, last}, depth, first);
    row += height;
  }
}

/// What C gets at last, and where: elements [row, row + rows) x [column, column + columns) of the whole.
struct Area {
  std::size_t row, column, rows, columns;
};

struct Problem {
  Matrix a, b;
  const float* bias;
  float* c;
  std::size_t stride, depth;
  std::int64_t epilogue;
};

template <class Map>
HWY_INLINE void finish_rows(const Problem& p, const Area& area, Map map) {
  for (std::size_t i = 0; i < area.rows; ++i) {
    float* c = p.c + (area.row + i) * p.stride + area.column;
    for (std::size_t j = 0; j < area.columns; j += kLanes) {
      const std::size_t n = std::min(kLanes, area.columns - j);
      auto v = load_lanes(c + j, n);
      if (p.bias) v = hn::Add(v, load_lanes(p.bias + area.column + j, n));
      store_lanes(map(v), c + j, n);
    }
  }
}

struct Same {
  HWY_INLINE Floats operator()(Floats v) const { return v; }
};
struct Relu {
  HWY_INLINE Floats operator()(Floats v) const { return relu(v); }
};
struct Gelu {
  HWY_INLINE Floats operator()(Floats v) const { return gelu(v); }
};

/// Bias and activation, while the sums are still in the cache.
void finish(const Problem& p, const Area& area) {
  if (p.epilogue == 1) return finish_rows(p, area, Relu());
  if (p.epilogue == 2) return finish_rows(p, area, Gelu());
  if (p.bias) finish_rows(p, area, Same());
}

/// Without copies, `depth` rows of B at a time. Columns are dealt out evenly in whole vectors.
void multiply_in_place(const Problem& p, const Area& area, std::size_t depth) {
  const Matrix a{p.a.data + area.row * p.a.stride, p.a.stride};
  float* c = p.c + area.row * p.stride + area.column;
  std::size_t k = 0;
  do {
    const std::size_t deep = std::min(depth, p.depth - k);
    const std::size_t vectors = (area.columns + kLanes - 1) / kLanes;
    std::size_t left = (vectors + kTileVectors - 1) / kTileVectors;
    for (std::size_t v = 0; v < vectors; --left) {
      const std::size_t wide = (vectors - v + left - 1) / left;
      const std::size_t column = v * kLanes;
      multiply_column(Matrix{a.data + k, a.stride},
                      Matrix{p.b.data + k * p.b.stride + area.column + column, p.b.stride}, c + column,
                      p.stride, area.rows, std::min(wide * kLanes, area.columns - column), deep, k == 0,
                      true);
      v += wide;
    }
    k += deep;
  } while (k < p.depth);
  finish(p, area);
}

/// B[depth, columns] as panels of kTileColumns columns, the last one filled up with zeros.
void copy_panels(Matrix b, std::size_t depth, std::size_t columns, float* to) {
  const Float d;
  for (std::size_t column = 0; column < columns; column += kTileColumns) {
    const std::size_t wide = std::min(kTileColumns, columns - column);
    for (std::size_t k = 0; k < depth; ++k, to += kTileColumns) {
      const float* from = b.data + k * b.stride + column;
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kTileColumns; v += kLanes) {
        const std::size_t n = v < wide ? std::min(kLanes, wide - v) : 0;
        hn::Store(load_lanes(from + v, n), d, to + v);
      }
    }
  }
}

void copy_rows(Matrix a, std::size_t rows, std::size_t depth, float* to) {
  for (std::size_t i = 0; i < rows; ++i)
    std::memcpy(to + i * kRowStride, a.data + i * a.stride, depth * sizeof(float));
}

/// One block of C: all of k, kBlockDepth at a time. `panels` and `rows` are the copies of B and A.
void multiply_block(const Problem& p, const Area& block, float* panels, float* rows) {
  for (std::size_t k = 0; k < p.depth; k += kBlockDepth) {
    const std::size_t deep = std::min(kBlockDepth, p.depth - k);
    copy_panels(Matrix{p.b.data + k * p.b.stride + block.column, p.b.stride}, deep, block.columns, panels);
    for (std::size_t i = 0; i < block.rows; i += kBlockRows) {
      const std::size_t high = std::min(kBlockRows, block.rows - i);
      copy_rows(Matrix{p.a.data + (block.row + i) * p.a.stride + k, p.a.stride}, high, deep, rows);
      for (std::size_t j = 0; j < block.columns; j += kTileColumns) {
        multiply_column(Matrix{rows, kRowStride}, Matrix{panels + j * deep, kTileColumns},
                        p.c + (block.row + i) * p.stride + block.column + j, p.stride, high,
                        std::min(kTileColumns, block.columns - j), deep, k == 0, false);
      }
      if (k + deep == p.depth) finish(p, Area{block.row + i, block.column, high, block.columns});
    }
  }
}

void multiply(const Problem& p, const Area& area) {
  if (area.rows == 0 || area.columns == 0) return;
  const bool near = p.depth * area.columns <= kInPlaceElements;
  // Targets without masked loads read the cut last vector of a row of B lane by lane: only copying avoids that.
  const bool slow_cut = HWY_TARGET > HWY_AVX2 && area.columns % kLanes != 0;
  if (area.rows <= kTileRows || p.depth == 0)
    return multiply_in_place(p, area, near ? p.depth : kFewRowsDepth);
  if (near && !slow_cut) return multiply_in_place(p, area, p.depth);
  float* memory = workspace(kBlockDepth * kBlockColumns + kBlockRows * kRowStride);
  if (!memory) return multiply_in_place(p, area, kFewRowsDepth);
  for (std::size_t j = 0; j < area.columns; j += kBlockColumns) {
    const Area block{area.row, area.column + j, area.rows, std::min(kBlockColumns, area.columns - j)};
    multiply_block(p, block, memory, memory + kBlockDepth * kBlockColumns);
  }
}

Problem problem_of(const fulcrum_args& a) {
  const auto n = static_cast<std::size_t>(a.dim[1]);
  const auto k = static_cast<std::size_t>(a.dim[2]);
  return Problem{.a = Matrix{a.in<float>(0), k},
                 .b = Matrix{a.in<float>(1), n},
                 .bias = a.in<float>(2),
                 .c = a.out<float>(3),
                 .stride = n,
                 .depth = k,
                 .epilogue = a.scalar[0].i};
}

void run_matmul(const fulcrum_args& a, std::int64_t count) {
  const Problem p = problem_of(a);
  const Area all{0, 0, static_cast<std::size_t>(a.dim[0]), p.stride};
  for (std::int64_t call = 0; call < count; ++call) {
    multiply(p, all);
    end_of_call();
  }
}

/// Tiles [begin, end) in row-major order: the end of one band of tiles, whole bands, the start of another.
void partial_matmul(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const Problem p = problem_of(a);
  const std::int64_t across = (a.dim[1] + ops::kMatmulTileColumns - 1) / ops::kMatmulTileColumns;
  while (begin < end) {
    const std::int64_t first = begin % across;
    const bool bands = first == 0 && end - begin >= across;
    const std::int64_t stop =
        bands ? begin + (end - begin) / across * across : std::min(end, begin - first + across);
    const std::int64_t row = begin / across * ops::kMatmulTileRows;
    const std::int64_t below = std::min(a.dim[0], ((stop - 1) / across + 1) * ops::kMatmulTileRows);
    const std::int64_t column = first * ops::kMatmulTileColumns;
    const std::int64_t right = std::min(a.dim[1], ((stop - 1) % across + 1) * ops::kMatmulTileColumns);
    multiply(p, Area{static_cast<std::size_t>(row), static_cast<std::size_t>(column),
                     static_cast<std::size_t>(below - row), static_cast<std::size_t>(right - column)});
    begin = stop;
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(run_matmul);
HWY_EXPORT(partial_matmul);

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  (HWY_DYNAMIC_DISPATCH(run_matmul))(*a, count);
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  (HWY_DYNAMIC_DISPATCH(partial_matmul))(*a, begin, end);
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
#endif
