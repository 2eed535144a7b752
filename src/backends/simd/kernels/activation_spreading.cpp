// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading: short rows side by side, one lane each; long rows in the 32 lanes of the definition. While few
// nodes have something to pass on, only rows that hear of one are added up. Products and additions are rounded one by
// one in the definition's order, so that every instruction set gives the same bits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/activation_spreading.cpp"
#include <fulcrum/ops/activation_spreading.h>
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "backends/simd/isa.h"
#include "backends/simd/vectors-inl.h"
#include "backends/table.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {
namespace {

using Index = hn::RebindToSigned<Float>;

/// Sums of the 16 rows of a slice, each in stored order, to their places.
HWY_INLINE void add_slice(const ops::SpreadingGraph& graph, const ops::SpreadingSlice& slice, const float* x,
                          float* sums) {
  const Float d;
  const Index di;
  HWY_ALIGN float lanes[ops::kSpreadingSlice];
  for (std::size_t lane = 0; lane < ops::kSpreadingSlice; lane += kLanes) {
    auto sum = hn::Zero(d);
    const auto degree = hn::LoadU(di, slice.degree + lane);
    const std::int32_t steps = slice.degree[lane];  // the longest of these: rows are sorted
    const std::int32_t* source = graph.slice_source + slice.at + static_cast<std::int64_t>(lane);
    const float* weight = graph.slice_weight + slice.at + static_cast<std::int64_t>(lane);
    for (std::int32_t step = 0; step < steps; ++step) {
      const auto value = hn::GatherIndex(d, x, hn::LoadU(di, source + step * ops::kSpreadingSlice));
      const auto term = hn::Mul(hn::LoadU(d, weight + step * ops::kSpreadingSlice), value);
      const auto there = hn::RebindMask(d, hn::Gt(degree, hn::Set(di, step)));
      sum = hn::IfThenElse(there, hn::Add(sum, term), sum);
    }
    hn::Store(sum, d, lanes + lane);
  }
  for (std::size_t lane = 0; lane < ops::kSpreadingSlice && slice.row[lane] >= 0; ++lane) {
    sums[slice.row[lane]] = lanes[lane];
  }
}

/// Edges [begin, end) in 32 lanes, then the tree.
float add_lanes(const ops::SpreadingGraph& graph, const float* x, std::int64_t begin, std::int64_t end) {
  const Float d;
  const Index di;
  constexpr std::size_t kVectors = ops::kSpreadingLanes / kLanes;
  HWY_ALIGN float lane[ops::kSpreadingLanes];
  Floats sum[kVectors];
  for (auto& part : sum) part = hn::Zero(d);
  std::int64_t e = begin;
  for (; e + ops::kSpreadingLanes <= end; e += ops::kSpreadingLanes) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::int64_t at = e + static_cast<std::int64_t>(v * kLanes);
      const auto value = hn::GatherIndex(d, x, hn::LoadU(di, graph.source + at));
      sum[v] = hn::Add(sum[v], hn::Mul(hn::LoadU(d, graph.weight + at), value));
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) hn::Store(sum[v], d, lane + v * kLanes);
  for (std::int64_t i = 0; e < end; ++e, ++i) {
    const float term = graph.weight[e] * x[graph.source[e]];
    lane[i] += term;
  }
  for (std::size_t half = ops::kSpreadingLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) lane[i] += lane[i + half];
  }
  return lane[0];
}

float add_row(const ops::SpreadingGraph& graph, const float* x, std::int64_t row) {
  const std::int64_t begin = graph.row_begin[row], end = graph.row_begin[row + 1];
  if (end - begin <= ops::kSpreadingShortRow) return ops::sum_of_row(graph, x, row);
  if (end - begin <= ops::kSpreadingSegment) return add_lanes(graph, x, begin, end);
  float sum = 0;
  for (std::int64_t at = begin; at < end; at += ops::kSpreadingSegment) {
    sum += add_lanes(graph, x, at, std::min(at + ops::kSpreadingSegment, end));
  }
  return sum;
}

/// The rule as vectors.
struct Rule {
  Floats lambda, theta, cap;

  explicit HWY_INLINE Rule(const ops::SpreadingRule& rule)
      : lambda(hn::Set(Float(), rule.lambda)),
        theta(hn::Set(Float(), rule.theta)),
        cap(hn::Set(Float(), rule.cap)) {}

  /// ops::spread_to() in each lane. Comparisons with NaN are false, so NaN passes.
  HWY_INLINE Floats spread(Floats sum, Floats& activation) const {
    const Float d;
    auto c = hn::Mul(lambda, sum);
    c = hn::IfThenZeroElse(hn::Lt(hn::Abs(c), theta), c);
    const auto up = hn::Ge(c, hn::Zero(d));
    const auto room = hn::Sub(hn::IfThenElse(up, cap, hn::Neg(cap)), activation);
    const auto within =
        hn::IfThenElse(up, hn::VecFromMask(d, hn::Lt(c, room)), hn::VecFromMask(d, hn::Gt(c, room)));
    const auto fits = hn::Or(hn::IsNaN(c), hn::MaskFromVec(within));
    const auto passed_on = hn::IfThenElse(fits, c, room);
    activation = hn::Add(activation, passed_on);
    return passed_on;
  }
};

/// Bit l of the result: lane l is not 0.
HWY_INLINE std::uint64_t bits_of_active(Floats v) {
  const Float d;
  std::uint8_t bytes[8] = {};
  hn::StoreMaskBits(d, hn::Not(hn::Eq(v, hn::Zero(d))), bytes);  // Ne() is false for NaN on some targets
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes, sizeof(bits));
  return bits & ((std::uint64_t{1} << kLanes) - 1);
}

/// Sums of the rows of a piece become what they pass on, and their nodes' activation.
void update_rows(const ops::SpreadingPiece& piece, const Rule& rule, float* passed, float* activation,
                 std::uint64_t* active) {
  const Float d;
  for (std::int64_t first = piece.row; first < piece.row + piece.rows; first += ops::kSpreadingWord) {
    const auto rows = static_cast<std::size_t>(std::min(ops::kSpreadingWord, piece.row + piece.rows - first));
    std::uint64_t word = 0;
    float* p = passed + first;
    float* a = activation + first;
    std::size_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      auto value = hn::LoadU(d, a + i);
      const auto passed_on = rule.spread(hn::LoadU(d, p + i), value);
      hn::StoreU(value, d, a + i);
      hn::StoreU(passed_on, d, p + i);
      word |= bits_of_active(passed_on) << i;
    }
    if (i < rows) {
      auto value = load_first(a + i, rows - i);
      const auto passed_on = rule.spread(load_first(p + i, rows - i), value);
      store_first(value, a + i, rows - i);
      store_first(passed_on, p + i, rows - i);
      word |= (bits_of_active(passed_on) & ((std::uint64_t{1} << (rows - i)) - 1)) << i;
    }
    active[first / ops::kSpreadingWord] = word;
  }
}

/// Phase 0: the activation before the first hop, and who is active.
void start_rows(const ops::SpreadingPiece& piece, const float* x, bool include_source, float* activation,
                std::uint64_t* active) {
  const Float d;
  const auto keep = hn::RebindMask(d, hn::Eq(hn::Set(d, include_source ? 1.0F : 0.0F), hn::Set(d, 1.0F)));
  for (std::int64_t first = piece.row; first < piece.row + piece.rows; first += ops::kSpreadingWord) {
    const auto rows = static_cast<std::size_t>(std::min(ops::kSpreadingWord, piece.row + piece.rows - first));
    std::uint64_t word = 0;
    std::size_t i = 0;
    for (; i + kLanes <= rows; i += kLanes) {
      const auto value = hn::LoadU(d, x + first + i);
      hn::StoreU(hn::IfThenElseZero(keep, value), d, activation + first + i);
      word |= bits_of_active(value) << i;
    }
    if (i < rows) {
      const auto value = load_first(x + first + i, rows - i);
      store_first(hn::IfThenElseZero(keep, value), activation + first + i, rows - i);
      word |= (bits_of_active(value) & ((std::uint64_t{1} << (rows - i)) - 1)) << i;
    }
    active[first / ops::kSpreadingWord] = word;
  }
}

/// Sums of touched rows alone. Their edges lie anywhere and the values those name anywhere else: both are asked for some
/// rows ahead.
void add_touched(const ops::SpreadingGraph& graph, const ops::SpreadingPiece& piece,
                 const std::uint64_t* touched, const float* x, float* sums) {
  constexpr std::size_t kEdgesAhead = 16, kValuesAhead = 8;
  std::int32_t rows[ops::kSpreadingPieceRows];
  std::size_t count = 0;
  std::fill_n(sums + piece.row, piece.rows, 0.0F);
  for (std::int64_t first = piece.row; first < piece.row + piece.rows; first += ops::kSpreadingWord) {
    for (std::uint64_t bits = touched[first / ops::kSpreadingWord]; bits != 0; bits &= bits - 1) {
      rows[count++] = static_cast<std::int32_t>(first) + std::countr_zero(bits);
    }
  }
  for (std::size_t i = 0; i < count + kEdgesAhead; ++i) {
    if (i < count) {
      hwy::Prefetch(graph.source + graph.row_begin[rows[i]]);
      hwy::Prefetch(graph.weight + graph.row_begin[rows[i]]);
    }
    if (i >= kValuesAhead && i - kValuesAhead < count) {
      const std::int32_t row = rows[i - kValuesAhead];
      const std::int32_t end = std::min(graph.row_begin[row + 1], graph.row_begin[row] + 16);
      for (std::int32_t e = graph.row_begin[row]; e < end; ++e) hwy::Prefetch(x + graph.source[e]);
    }
    if (i >= kEdgesAhead) sums[rows[i - kEdgesAhead]] = add_row(graph, x, rows[i - kEdgesAhead]);
  }
}

void spread_pieces(const fulcrum_args& a, std::int32_t phase, std::int64_t begin, std::int64_t end,
                   void* memory) {
  const auto& graph = *static_cast<const ops::SpreadingGraph*>(a.prepared);
  const ops::SpreadingRule plain(a);
  const Rule rule(plain);
  const ops::SpreadingScratch scratch(graph, memory);
  float* sums = scratch.passed[phase % 2];
  const float* x = phase <= 1 ? a.in<float>(0) : scratch.passed[(phase - 1) % 2];
  for (std::int64_t number = begin; number < end; ++number) {
    const ops::SpreadingPiece& piece = graph.pieces[static_cast<std::size_t>(number)];
    if (phase == 0) {
      start_rows(piece, x, plain.include_source, a.out<float>(1), scratch.active);
      continue;
    }
    if (scratch.header->sparse != 0) {
      add_touched(graph, piece, scratch.touched, x, sums);
    } else {
      for (std::int64_t s = piece.first_slice; s < piece.first_slice + piece.slices; ++s) {
        add_slice(graph, graph.slices[static_cast<std::size_t>(s)], x, sums);
      }
      for (std::int64_t l = piece.first_long; l < piece.first_long + piece.longs; ++l) {
        const std::int64_t row = graph.long_rows[static_cast<std::size_t>(l)];
        sums[row] = add_row(graph, x, row);
      }
    }
    update_rows(piece, rule, sums, a.out<float>(1), scratch.active);
  }
}

}  // namespace
}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fulcrum::backends::simd {
namespace {

HWY_EXPORT(spread_pieces);

constexpr std::align_val_t kLine{64};

fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  const auto bytes = ops::SpreadingScratch::bytes(*static_cast<const ops::SpreadingGraph*>(a->prepared));
  *made = ::operator new(static_cast<std::size_t>(bytes), kLine, std::nothrow);
  if (!*made) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for what nodes pass on"};
  return done();
}

void drop(void* plan) { ::operator delete(plan, kLine); }

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto pieces =
      static_cast<std::int64_t>(static_cast<const ops::SpreadingGraph*>(a->prepared)->pieces.size());
  const auto hops = static_cast<std::int32_t>(a->scalar[0].i);
  for (std::int64_t call = 0; call < count; ++call) {
    for (std::int32_t phase = 0; phase <= hops; ++phase) {
      (HWY_DYNAMIC_DISPATCH(spread_pieces))(*a, phase, 0, pieces, a->plan);
      ops::combine_spreading(*a, phase, a->plan);
    }
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t phase, std::int64_t begin, std::int64_t end, void* scratch) {
  (HWY_DYNAMIC_DISPATCH(spread_pieces))(*a, phase, begin, end, scratch);
}

}  // namespace

namespace kernels {
std::span<const fulcrum_kernel> activation_spreading() {
  static const fulcrum_kernel kernels[] = {{.variant = "default",
                                            .level = 2,
                                            .isa = isa_name,
                                            .plan = plan,
                                            .drop = drop,
                                            .run = run,
                                            .partial = partial}};
  return kernels;
}
}  // namespace kernels

}  // namespace fulcrum::backends::simd
#endif
