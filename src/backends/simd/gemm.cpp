// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by register tiles. Every element is one chain of fmas over k in index order, however the work is
// blocked: a tile picks its sums up where the last block of k left them. Small products read A and B in place;
// larger ones copy a block of B into panels of one tile's width, so that the inner loop walks memory in sequence. Products
// of few columns or sums have a file of their own, gemm_thin-inl.h, and so have a few columns beyond the last whole vector,
// gemm_narrow-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/gemm.cpp"
#include <fulcrum/ops/matmul.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/simd/gemm.h"
#include "backends/simd/gemm_narrow-inl.h"
#include "backends/simd/gemm_row-inl.h"
#include "backends/simd/gemm_thin-inl.h"
#include "backends/simd/math-inl.h"
#include "backends/simd/workspace.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

// Accumulators, the row of B and one broadcast of A fill the register file: 8 * 3 + 3 + 1 of 32 with AVX-512, 6 * 2 +
// 2 + 1 of 16 elsewhere.
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

// Reading B in place costs no copy, but its rows lie apart. Copying pays where panels meet many tiles of rows, or B spans
// much (2048 x 2048 in place takes 1.4 times as long, or more). By trial, in place takes
// 0.50 to 0.94 of the time on a Xeon with AVX-512 within these limits, 0.61 to 1.00 on a Zen 4; with AVX2, whose tiles are
// narrower and read B more often, 0.63 to 0.97 with fewer rows.
constexpr std::size_t kInPlaceElements = 16 * 1024;
constexpr std::size_t kSomeRows = HWY_TARGET <= HWY_AVX3 ? 192 : 64, kSomeRowsElements = 256 * 1024;
constexpr std::size_t kInPlaceSpan = 512 * 1024;
// With few rows B is read once, from far away: so many of its rows at a time, along their length, so that what each tile of
// rows meets stays in L1. Where a row of B is a page or more, prefetchers do not find the next one: then the next columns are
// fetched, which costs up to a fifth where they do. By trial: 1.2 to 1.7 times as fast as copying B for 9 to 64 rows of
// 1024 x 1024 and 4096 x 4096 on Zen 5.
constexpr std::size_t kFewRows = HWY_TARGET <= HWY_AVX3 ? 128 : 24, kFewRowsDepth = 128;
constexpr std::size_t kApart = 1024;
// Not where B is in the L2 cache, or is hardly wider than a handful of tiles: sums that stay in registers are worth more.
constexpr std::size_t kFewRowsElements = 128 * 1024;
constexpr std::size_t kFewTiles = 4;
// Sums that wait for more of k are kept apart from C: the lines at the edges of an area belong to other threads too, and
// would travel with every block of k (7 x 517 by a depth of 2794 took two threads 3.3 times as long as one).
constexpr std::size_t kFewColumns = 1024, kApartRows = 32;

/// Where a tile's sums go; its last vector has `last` columns. `far`: ask for their lines early, since they are
/// written only at the end. Small products have them near, and would lose by asking. `ahead`: fetch the columns of B next
/// to the tile's.
struct Sums {
  float* data;
  std::size_t stride;
  std::size_t last;
  bool far, ahead;
};

HWY_INLINE Floats load_lanes(const float* from, std::size_t n) {
  return n == kLanes ? hn::LoadU(Float(), from) : load_first(from, n);
}
HWY_INLINE void store_lanes(Floats v, float* to, std::size_t n) {
  n == kLanes ? hn::StoreU(v, Float(), to) : store_first(v, to, n);
}

/// The compiler must not see where v comes from, or it loads it anew for every use.
HWY_INLINE void load_once([[maybe_unused]] Floats& v) {
#if HWY_TARGET <= HWY_AVX3
  __asm__("" : "+v"(v.raw));
#elif HWY_TARGET <= HWY_SSE4
  __asm__("" : "+x"(v.raw));
#endif
}

/// How the last vector of a tile is read from B: as a whole, or only its first lanes, since B ends there. Where those
/// are half of them or less, half a vector does, at half the cost.
enum class End { whole, cut, half };

#if HWY_TARGET <= HWY_AVX3
using Narrow = hn::Half<Float>;
using Narrows = hn::Vec<Narrow>;
HWY_INLINE Narrows narrow(Floats& v) {
  load_once(v);
  return hn::LowerHalf(Narrow(), v);
}
#else
using Narrow = Float;
using Narrows = Floats;
HWY_INLINE Narrows narrow(Floats& v) { return v; }
#endif

/// C = (first ? 0 : C) + A[kRows, depth] * B[depth, columns], the columns being kVectors vectors, the last as kEnd
/// says.
template <std::size_t kRows, std::size_t kVectors, End kEnd>
HWY_INLINE void tile(const Matrix& a, const Matrix& b, const Sums& c, std::size_t depth, bool first,
                     bool ahead) {
  const Float d;
  const Narrow dn;
  constexpr bool kHalf = kEnd == End::half;
  constexpr std::size_t kFull = kVectors - kHalf;
  constexpr std::size_t kAtEnd = (kVectors - 1) * kLanes;
  const auto mask = hn::FirstN(dn, c.last);
  Floats sum[kRows][kFull + (kFull == 0)];
  Narrows end[kRows];
  if (c.far) {
    constexpr std::size_t kLine = 16;
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kVectors * kLanes; j += kLine)
        __builtin_prefetch(c.data + i * c.stride + j, 1);
    }
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) {
    float* at = c.data + i * c.stride;
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kFull; ++v) {
      sum[i][v] = first ? hn::Zero(d) : load_lanes(at + v * kLanes, v + 1 < kVectors ? kLanes : c.last);
    }
    if constexpr (kHalf) end[i] = first ? hn::Zero(dn) : hn::MaskedLoad(mask, dn, at + kAtEnd);
  }
  const FirstLanes cut(c.last);
  const auto add = [&](std::size_t k) HWY_ATTR __attribute__((always_inline)) {
    const float* from = b.data + k * b.stride;
    Floats right[kFull + (kFull == 0)];
    Narrows right_end;
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kFull; ++v) {
      const bool ends = v + 1 == kVectors && kEnd == End::cut;
      right[v] = ends ? cut.load(from + v * kLanes) : hn::LoadU(d, from + v * kLanes);
      load_once(right[v]);
    }
    if constexpr (kHalf) right_end = hn::MaskedLoad(mask, dn, from + kAtEnd);
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < kRows; ++i) {
      auto left = hn::Set(d, a.data[i * a.stride + k]);
      if constexpr (kHalf) end[i] = hn::MulAdd(narrow(left), right_end, end[i]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kFull; ++v) sum[i][v] = hn::MulAdd(left, right[v], sum[i][v]);
    }
  };
  if (ahead) {
    for (std::size_t k = 0; k < depth; ++k) {
      HWY_UNROLL(3)
      for (std::size_t v = 0; v < kVectors; ++v)
        __builtin_prefetch(b.data + k * b.stride + kTileColumns + v * kLanes, 0, 2);
      add(k);
    }
  } else {
    for (std::size_t k = 0; k < depth; ++k) add(k);
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kRows; ++i) {
    float* at = c.data + i * c.stride;
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kFull; ++v) {
      store_lanes(sum[i][v], at + v * kLanes, v + 1 < kVectors ? kLanes : c.last);
    }
    if constexpr (kHalf) hn::BlendedStore(end[i], mask, dn, at + kAtEnd);
  }
}

/// `count` tiles below each other.
template <std::size_t kRows, std::size_t kVectors, End kEnd>
HWY_NOINLINE void column_of_tiles(Matrix a, Matrix b, Sums c, std::size_t depth, bool first,
                                  std::size_t count) {
  for (bool ahead = c.ahead; count > 0; --count, ahead = false) {
    tile<kRows, kVectors, kEnd>(a, b, c, depth, first, ahead);
    a.data += kRows * a.stride;
    c.data += kRows * c.stride;
  }
}

using Tiles = void (*)(Matrix, Matrix, Sums, std::size_t, bool, std::size_t);

/// Of a tile of so many vectors. With one, eight sums would wait for each other whenever something else does; with more
/// than twelve the rows' addresses would not fit into registers.
constexpr std::size_t most_rows(std::size_t vectors) {
  return HWY_TARGET <= HWY_AVX3 && vectors == 1 ? 12 : kTileRows;
}

template <std::size_t kRows, std::size_t kVectors, End kEnd>
constexpr Tiles tiles_of() {
  if constexpr (kRows <= most_rows(kVectors)) return column_of_tiles<kRows, kVectors, kEnd>;
  return nullptr;
}

/// Entry (rows - 1) * kTileVectors + vectors - 1.
template <End kEnd, std::size_t... kIndex>
constexpr std::array<Tiles, sizeof...(kIndex)> tiles(std::index_sequence<kIndex...>) {
  return {tiles_of<kIndex / kTileVectors + 1, kIndex % kTileVectors + 1, kEnd>()...};
}
using TileIndex = std::make_index_sequence<most_rows(1) * kTileVectors>;
constexpr auto kWholeTiles = tiles<End::whole>(TileIndex());
constexpr auto kCutTiles = tiles<End::cut>(TileIndex());

/// The tiles for a last vector of `last` columns. `cut`: B ends there.
HWY_INLINE const std::array<Tiles, kWholeTiles.size()>& tiles_for(std::size_t last, bool cut) {
#if HWY_TARGET <= HWY_AVX3
  static constexpr auto kHalfTiles = tiles<End::half>(TileIndex());
  if (last <= kLanes / 2) return kHalfTiles;
#endif
  return cut && last < kLanes ? kCutTiles : kWholeTiles;
}

/// C[rows, columns] = (first ? 0 : C) + A[rows, depth] * B[depth, columns], columns at most one tile. Rows are dealt
/// out evenly, since a short last tile would not hide the latency of its fmas.
void multiply_column(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t rows, std::size_t columns,
                     std::size_t depth, bool first, bool cut, bool ahead = false) {
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  const std::size_t last = columns - (vectors - 1) * kLanes;
  const auto& table = tiles_for(last, cut);
  const bool far = first && !cut;
  // So many tiles of `height` rows, and then some of one row less.
  const std::size_t most = most_rows(vectors);
  const std::size_t count = (rows + most - 1) / most, height = (rows + count - 1) / count;
  const std::size_t high = count - (count * height - rows);
  table[(height - 1) * kTileVectors + vectors - 1](a, b, Sums{c, stride, last, far, ahead}, depth, first,
                                                   high);
  if (high == count) return;
  table[(height - 2) * kTileVectors + vectors - 1](Matrix{a.data + high * height * a.stride, a.stride}, b,
                                                   Sums{c + high * height * stride, stride, last, far, false},
                                                   depth, first, count - high);
}

template <class Map>
HWY_INLINE void finish_rows(const Product& p, const Area& area, Map map) {
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
void finish(const Product& p, const Area& area) {
  if (p.epilogue == 1) return finish_rows(p, area, Relu());
  if (p.epilogue == 2) return finish_rows(p, area, Gelu());
  if (p.bias) finish_rows(p, area, Same());
}

/// C[rows, columns] = (first ? 0 : C) + A[rows, depth] * B[depth, columns], B read in place. Columns are dealt out evenly in
/// whole vectors.
void multiply_slab(Matrix a, Matrix b, float* c, std::size_t stride, std::size_t rows, std::size_t columns,
                   std::size_t depth, bool first, bool ahead) {
  const std::size_t vectors = (columns + kLanes - 1) / kLanes;
  std::size_t left = (vectors + kTileVectors - 1) / kTileVectors;
  for (std::size_t v = 0; v < vectors; --left) {
    const std::size_t wide = (vectors - v) / left;
    const std::size_t column = v * kLanes;
    multiply_column(a, Matrix{b.data + column, b.stride}, c + column, stride, rows,
                    std::min(wide * kLanes, columns - column), depth, first, true, ahead);
    v += wide;
  }
}

/// Without copies, all of B's rows at a time.
void multiply_in_place(const Product& p, const Area& area) {
  const Matrix a{p.a.data + area.row * p.a.stride, p.a.stride};
  const Matrix b{p.b.data + area.column, p.b.stride};
  float* c = p.c + area.row * p.stride + area.column;
  const std::size_t narrow = narrow_columns(area.rows, area.columns);
  const std::size_t columns = area.columns - narrow;
  if (narrow > 0)
    multiply_narrow(a, Matrix{b.data + columns, b.stride}, c + columns, p.stride, area.rows, narrow, p.depth);
  multiply_slab(a, b, c, p.stride, area.rows, columns, p.depth, true, false);
  finish(p, area);
}

void copy_sums(const float* from, std::size_t stride, const Product& p, const Area& area) {
  for (std::size_t i = 0; i < area.rows; ++i)
    std::memcpy(p.c + (area.row + i) * p.stride + area.column, from + i * stride,
                area.columns * sizeof(float));
}

void copy_rows(Matrix a, std::size_t rows, std::size_t depth, float* to) {
  for (std::size_t i = 0; i < rows; ++i)
    std::memcpy(to + i * kRowStride, a.data + i * a.stride, depth * sizeof(float));
}

/// Few rows, and B too large to stay near: some of its rows at a time, along their length.
void multiply_few_rows(const Product& p, const Area& area) {
  const Matrix a{p.a.data + area.row * p.a.stride, p.a.stride};
  constexpr std::size_t kStride = kFewColumns + 16;  // of sums
  const bool copied = area.rows > kTileRows;         // A's rows, see above
  float* const memory = workspace(area.rows * (kStride + (copied ? kRowStride : 0)));
  for (std::size_t j = 0; j < area.columns; j += kFewColumns) {
    const Area block{area.row, area.column + j, area.rows, std::min(kFewColumns, area.columns - j)};
    float* c = memory ? memory : p.c + block.row * p.stride + block.column;
    const std::size_t stride = memory ? kStride : p.stride;
    for (std::size_t k = 0; k < p.depth; k += kFewRowsDepth) {
      const std::size_t deep = std::min(kFewRowsDepth, p.depth - k);
      Matrix left{a.data + k, a.stride};
      if (memory && copied) {
        float* const rows = memory + area.rows * kStride;
        copy_rows(left, area.rows, deep, rows);
        left = Matrix{rows, kRowStride};
      }
      multiply_slab(left, Matrix{p.b.data + k * p.b.stride + block.column, p.b.stride}, c, stride, block.rows,
                    block.columns, deep, k == 0, p.b.stride >= kApart);
    }
    if (memory) copy_sums(memory, kStride, p, block);
    finish(p, block);
  }
}

/// Whether one row is multiplied along the rows of B. Not a few columns, whose sums would wait for each other; nor a part of
/// the columns where B is far away: fetching ahead along the rows would fetch those of other threads. By trial on a Xeon.
bool is_along(const Product& p, const Area& area) {
  constexpr std::size_t kLeastColumns = 56, kNearElements = 256 * 1024, kManyColumns = 768;
  if (area.rows != 1 || area.columns < kLeastColumns || p.depth == 0) return false;
  return area.columns == p.b.stride || p.depth * p.b.stride <= kNearElements || area.columns >= kManyColumns;
}

/// So, all of k for as many columns as sums stay near.
void multiply_along(const Product& p, const Area& area) {
  constexpr std::size_t kSums = 4096;
  const float* a = p.a.data + area.row * p.a.stride;
  float* const sums = workspace(kSums);
  for (std::size_t j = 0; j < area.columns; j += kSums) {
    const Area block{area.row, area.column + j, 1, std::min(kSums, area.columns - j)};
    float* c = p.c + block.row * p.stride + block.column;
    multiply_row(a, Matrix{p.b.data + block.column, p.b.stride}, sums ? sums : c, block.columns, p.depth);
    if (sums) copy_sums(sums, kSums, p, block);
    finish(p, block);
  }
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

/// One block of C: all of k, kBlockDepth at a time. `panels` and `rows` are the copies of B and A; `sums`, if not null, has
/// room for the block's.
void multiply_block(const Product& p, const Area& block, float* panels, float* rows, float* sums) {
  float* c = sums ? sums : p.c + block.row * p.stride + block.column;
  const std::size_t stride = sums ? (block.columns + kLanes - 1) / kLanes * kLanes : p.stride;
  for (std::size_t k = 0; k < p.depth; k += kBlockDepth) {
    const std::size_t deep = std::min(kBlockDepth, p.depth - k);
    copy_panels(Matrix{p.b.data + k * p.b.stride + block.column, p.b.stride}, deep, block.columns, panels);
    for (std::size_t i = 0; i < block.rows; i += kBlockRows) {
      const std::size_t high = std::min(kBlockRows, block.rows - i);
      copy_rows(Matrix{p.a.data + (block.row + i) * p.a.stride + k, p.a.stride}, high, deep, rows);
      for (std::size_t j = 0; j < block.columns; j += kTileColumns) {
        multiply_column(Matrix{rows, kRowStride}, Matrix{panels + j * deep, kTileColumns}, c + i * stride + j,
                        stride, high, std::min(kTileColumns, block.columns - j), deep, k == 0, false);
      }
      if (k + deep < p.depth) continue;
      const Area done{block.row + i, block.column, high, block.columns};
      if (sums) copy_sums(sums + i * stride, stride, p, done);
      finish(p, done);
    }
  }
}

/// Whether B is read in place, once for every tile of rows.
bool is_near(const Product& p, const Area& area) {
  const std::size_t elements = p.depth * area.columns;
  if (elements <= kInPlaceElements) return true;
  return area.rows <= kSomeRows && elements <= kSomeRowsElements && p.depth * p.b.stride <= kInPlaceSpan;
}

/// Whether the area was done column by column, or as a handful of sums.
bool multiply_if_thin(const Product& p, const Area& area) {
  const Matrix a{p.a.data + area.row * p.a.stride, p.a.stride};
  float* c = p.c + area.row * p.stride + area.column;
  const bool all_columns = area.columns == p.stride && p.b.stride == p.stride;
  if (p.rows == 0 || p.depth == 0 || !all_columns) return false;
  if (by_columns(p.rows, area.columns, p.depth)) {
    if (!multiply_columns(a, p.b.data, c, p.stride, area.rows, area.columns, p.depth)) return false;
  } else {
    const bool whole = !p.anywhere && area.rows == p.rows;
    const Thin thin = whole ? thin_for(area.rows, area.columns, p.depth) : nullptr;
    if (!thin) return false;
    thin(a, p.b, c, p.stride, (area.columns - 1) % kLanes + 1, p.depth);
  }
  finish(p, area);
  return true;
}

void multiply_area(const Product& p, const Area& area) {
  if (area.rows == 0 || area.columns == 0 || multiply_if_thin(p, area)) return;
  // Targets without masked loads read the cut last vector of a row of B lane by lane: only copying avoids that.
  const bool slow_cut = HWY_TARGET > HWY_AVX2 && area.columns % kLanes != 0;
  if (area.rows <= kTileRows || p.depth == 0) {
    if (is_along(p, area)) return multiply_along(p, area);
    const bool once = p.depth * area.columns <= kFewRowsElements || area.columns <= kFewTiles * kTileColumns;
    return once ? multiply_in_place(p, area) : multiply_few_rows(p, area);
  }
  if (is_near(p, area) && !slow_cut) return multiply_in_place(p, area);
  if (area.rows <= kFewRows && !slow_cut) return multiply_few_rows(p, area);
  const bool apart = p.depth > kBlockDepth && area.rows <= kApartRows;
  constexpr std::size_t kPanels = kBlockDepth * kBlockColumns, kCopies = kPanels + kBlockRows * kRowStride;
  float* memory = workspace(kCopies + (apart ? kApartRows * kBlockColumns : 0));
  if (!memory) return multiply_in_place(p, area);
  for (std::size_t j = 0; j < area.columns; j += kBlockColumns) {
    const Area block{area.row, area.column + j, area.rows, std::min(kBlockColumns, area.columns - j)};
    multiply_block(p, block, memory, memory + kPanels, apart ? memory + kCopies : nullptr);
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {
HWY_EXPORT(multiply_area);
}

Multiply multiply() { return &(HWY_DYNAMIC_DISPATCH(multiply_area)); }

/// Pieces are tiles in row-major order: the end of one band of tiles, whole bands, the start of another.
void multiply_pieces(Multiply multiply, const Product& product, std::int64_t rows, std::int64_t columns,
                     const ops::MatmulTiles& tiles, std::int64_t begin, std::int64_t end) {
  const std::int64_t across = tiles.across;
  while (begin < end) {
    const std::int64_t first = begin % across;
    const bool bands = first == 0 && end - begin >= across;
    const std::int64_t stop =
        bands ? begin + (end - begin) / across * across : std::min(end, begin - first + across);
    const std::int64_t row = begin / across * tiles.rows;
    const std::int64_t below = std::min(rows, ((stop - 1) / across + 1) * tiles.rows);
    const std::int64_t column = first * tiles.columns;
    const std::int64_t right = std::min(columns, ((stop - 1) % across + 1) * tiles.columns);
    multiply(product, Area{static_cast<std::size_t>(row), static_cast<std::size_t>(column),
                           static_cast<std::size_t>(below - row), static_cast<std::size_t>(right - column)});
    begin = stop;
  }
}

}  // namespace fulcrum::backends::simd
#endif
