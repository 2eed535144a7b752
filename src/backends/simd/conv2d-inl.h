// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a convolution on vectors of neighbouring outputs. Four rows of outputs share the input rows they read; the
// taps of an output stay one chain of fma in row-major order, and those in the padding are skipped, so the bits are
// those of the scalar kernel. What becomes of a vector of n outputs is the caller's business: store(v, row, column, n,
// done), where the first `done` lanes, if any, were stored before.
// Included once per instruction set.
#include <fulcrum/ops/conv2d.h>

#include <algorithm>

#include "backends/simd/fused-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_CONV2D_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_CONV2D_INL_H_
#undef FULCRUM_BACKENDS_SIMD_CONV2D_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_CONV2D_INL_H_
#endif

// Large pieces of a kernel that are inlined for speed. With ASan and UBSan clang 14 works for minutes on what they
// become together, so there each is a function.
#undef FULCRUM_INLINE_PIECE
#if HWY_IS_ASAN
#define FULCRUM_INLINE_PIECE inline HWY_NOINLINE
#else
#define FULCRUM_INLINE_PIECE HWY_INLINE
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

inline constexpr std::int64_t kStep = kLanes;  // outputs of a vector
inline constexpr int kConvRows = 4;

/// The lanes of a vector that begins `outside` lanes left of an image row of `width` pixels which lie in the row.
struct InsideLanes {
  std::size_t first, last;
  hn::Mask<Float> mask;
  HWY_INLINE InsideLanes() = default;
  HWY_INLINE InsideLanes(std::int64_t outside, std::int64_t width)
      : first(static_cast<std::size_t>(std::clamp<std::int64_t>(outside, 0, kStep))),
        last(static_cast<std::size_t>(std::clamp<std::int64_t>(outside + width, 0, kStep))),
        mask(hn::AndNot(hn::FirstN(Float(), first), hn::FirstN(Float(), last))) {}
  /// Those lanes from memory, 0 in the others.
  HWY_INLINE Floats load(const float* from) const {
    const Float d;
#if HWY_TARGET <= HWY_AVX2
    return hn::MaskedLoad(mask, d, from);
#else
    HWY_ALIGN float lanes[kLanes] = {};
    for (std::size_t i = first; i < last; ++i) lanes[i] = from[i];
    return hn::Load(d, lanes);
#endif
  }
};

/// Keeps g++ from folding a load into each fma that uses it: a vector that straddles two cache lines would be fetched
/// anew for every row of outputs.
HWY_INLINE Floats in_register(Floats v) {
#if HWY_TARGET == HWY_AVX3
  __asm__("" : "+v"(v.raw));
#elif HWY_TARGET == HWY_AVX2
  __asm__("" : "+x"(v.raw));
#endif
  return v;
}

/// a * b + c where the mask is set, c elsewhere.
FULCRUM_INLINE_PIECE Floats fused_where(hn::Mask<Float> mask, Floats a, Floats b, Floats c) {
#if HWY_TARGET == HWY_AVX3
  return Floats{_mm512_mask3_fmadd_ps(a.raw, b.raw, c.raw, mask.raw)};
#else
  return hn::IfThenElse(mask, fused(a, b, c), c);
#endif
}

/// The kernel's weights as vectors: in registers for a kernel of known size, from memory else.
template <int kKernel>
struct Weights {
  explicit HWY_INLINE Weights(const float* k) {
    HWY_UNROLL(9)
    for (int t = 0; t < kKernel * kKernel; ++t) all[t] = hn::Set(Float(), k[t]);
  }
  HWY_INLINE Floats at(std::int64_t i, std::int64_t, std::int64_t j) const { return all[i * kKernel + j]; }
  Floats all[kKernel * kKernel];
};
template <>
struct Weights<0> {
  explicit HWY_INLINE Weights(const float* from) : k(from) {}
  HWY_INLINE Floats at(std::int64_t i, std::int64_t kw, std::int64_t j) const {
    return hn::Set(Float(), k[i * kw + j]);
  }
  const float* k;
};

/// Which of the input rows under a tile lie in the image: [first, last).
struct InputRows {
  std::int64_t first, last;
};

/// One row of taps for kRows rows of outputs: input row q is tap row q - r of output row r.
template <int kRows, int kVectors, int kKernel, bool kMasked>
struct TapRow {
  const ops::Conv2d& g;
  const Weights<kKernel>& weights;
  std::int64_t taps;     // tap rows
  std::int64_t outside;  // lanes of the first vector that lie left of the image, under tap column 0
  static constexpr std::int64_t kKnown = !kMasked ? 1 : kKernel > 0 ? kKernel : 15;
  InsideLanes known[kKnown];  // of the first tap columns

  HWY_INLINE void look_up_lanes() {
    if constexpr (kMasked) {
      const std::int64_t count = kKernel > 0 ? kKernel : std::min(g.kw, kKnown);
      HWY_UNROLL(3)
      for (std::int64_t j = 0; j < count; ++j) known[j] = InsideLanes(outside - j, g.w);
    }
  }
  HWY_INLINE InsideLanes lanes_at(std::int64_t j) const {
    if (kKernel > 0 || j < kKnown) return known[kMasked ? j : 0];
    return InsideLanes(outside - j, g.w);
  }

  /// kAll: each output row has this tap row.
  template <bool kAll>
  FULCRUM_INLINE_PIECE void add(const float* HWY_RESTRICT from, std::int64_t q,
                                Floats (&sum)[kRows][kVectors]) const {
    const Float d;
    const std::int64_t kw = kKernel > 0 ? kKernel : g.kw;
    HWY_UNROLL(3)
    for (std::int64_t j = 0; j < kw; ++j) {
      HWY_UNROLL(4)
      for (int v = 0; v < kVectors; ++v) {
        const auto x = in_register(kMasked ? lanes_at(j).load(from + j) : hn::LoadU(d, from + j + v * kStep));
        HWY_UNROLL(4)
        for (int r = 0; r < kRows; ++r) {
          const std::int64_t i = q - r;
          if (!kAll && (i < 0 || i >= taps)) continue;
          const auto weight = weights.at(i, kw, j);
          sum[r][v] =
              kMasked ? fused_where(lanes_at(j).mask, weight, x, sum[r][v]) : fused(weight, x, sum[r][v]);
        }
      }
    }
  }
};

/// kRows x kVectors vectors of outputs from (row, column) on; `from` is the pixel under their first tap, `taps` how
/// many tap rows there are. kMasked: some lanes have taps left or right of the image. kKernel: a kernel of so many
/// rows and columns, of whose input rows only `inside` lie in the image; 0: any kernel, all its rows inside.
template <int kRows, int kVectors, int kKernel, bool kMasked, class Store>
FULCRUM_INLINE_PIECE void conv_tile(const ops::Conv2d& g, const float* from, const Weights<kKernel>& weights,
                                    std::int64_t taps, InputRows inside, std::int64_t row,
                                    std::int64_t column, const Store& store, std::int64_t done) {
  static_assert(kVectors == 1 || !kMasked);
  if (kKernel > 0) taps = kKernel;
  TapRow<kRows, kVectors, kKernel, kMasked> tap_row{g, weights, taps, g.pad_x - column, {}};
  tap_row.look_up_lanes();
  Floats sum[kRows][kVectors];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(Float());
  }
  if constexpr (kKernel > 0) {
    HWY_UNROLL(6)
    for (int q = 0; q < kKernel + kRows - 1; ++q) {
      if (q >= inside.first && q < inside.last) tap_row.template add<false>(from + q * g.w, q, sum);
    }
  } else {
    std::int64_t q = 0;
    for (; q < kRows - 1; ++q) tap_row.template add<false>(from + q * g.w, q, sum);
    for (; q < taps; ++q) tap_row.template add<true>(from + q * g.w, q, sum);
    for (; q < taps + kRows - 1; ++q) tap_row.template add<false>(from + q * g.w, q, sum);
  }
  const std::size_t n = kMasked ? static_cast<std::size_t>(std::min(kStep, g.wo - column)) : kLanes;
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) store(sum[r][v], row + r, column + v * kStep, n, done - v * kStep);
  }
}

/// kRows rows of outputs with stride_x = 1; `from` is the image row under the first tap row.
template <int kRows, int kKernel, class Store>
HWY_NOINLINE void conv_row(const ops::Conv2d& g, const float* from, const float* k, std::int64_t taps,
                           InputRows inside, std::int64_t row, const Store& store) {
  constexpr int kVectors = kRows > 1 ? 2 : 4;
  const Weights<kKernel> weights(k);
  const std::int64_t last = g.w + g.pad_x - g.kw + 1;  // outputs before it have no tap right of the image
  constexpr std::int64_t kWidth = kVectors * kStep;
  for (std::int64_t column = 0; column < g.wo;) {
    // Without padding the last tile moves left until it fits, and does some outputs again.
    const bool moved = g.pad_x == 0 && column + kWidth > last && last >= kWidth;
    if (moved || (column >= g.pad_x && column + kWidth <= last)) {
      const std::int64_t start = moved ? last - kWidth : column;
      conv_tile<kRows, kVectors, kKernel, false>(g, from + start - g.pad_x, weights, taps, inside, row, start,
                                                 store, column - start);
      column = start + kWidth;
    } else {
      conv_tile<kRows, 1, kKernel, true>(g, from + column - g.pad_x, weights, taps, inside, row, column,
                                         store, 0);
      column += kStep;
    }
  }
}

/// Every second one of two vectors after each other, from the first or the second on.
HWY_INLINE Floats even_of(Floats low, Floats high) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(high);
  return low;
#else
  return hn::ConcatEven(Float(), high, low);
#endif
}
HWY_INLINE Floats odd_of(Floats low, Floats high) {
#if HWY_TARGET == HWY_SCALAR
  static_cast<void>(low);
  return high;
#else
  return hn::ConcatOdd(Float(), high, low);
#endif
}

/// One row of outputs with stride_x > 1.
struct StridedRow {
  const ops::Conv2d& g;
  const float* from;  // under the first tap of the first output, were there all
  const float* k;
  std::int64_t first_tap, last_tap;  // rows of taps that lie in the image
  // Two pixels apart: the pixels under two taps come with the same loads, else they are gathered.
  bool halved = g.stride_x == 2;
  // Columns at which a vector of outputs may begin: none of the pixels that it reads lies beside the image.
  std::int64_t first = g.pad_x / g.stride_x + (g.pad_x % g.stride_x != 0), last = last_start();

  std::int64_t last_start() const {
    if (g.stride_x > std::int64_t{1} << 24) return -1;
    const std::int64_t taps = halved ? (g.kw + 1) / 2 * 2 : g.kw;
    const std::int64_t span = halved ? 2 * kStep - 2 : (kStep - 1) * g.stride_x;
    const std::int64_t beyond = g.w + g.pad_x - taps - span;
    return beyond < 0 ? -1 : std::min(g.wo - kStep, beyond / g.stride_x);
  }

  template <int kVectors>
  HWY_INLINE void add_halved(std::int64_t column, Floats (&sum)[kVectors]) const {
    const Float d;
    for (std::int64_t i = first_tap; i < last_tap; ++i) {
      const float* line = from + i * g.w + 2 * column;
      const float* taps = k + i * g.kw;
      for (std::int64_t j = 0; j < g.kw; j += 2) {
        HWY_UNROLL(4)
        for (int v = 0; v < kVectors; ++v) {
          Floats even, odd;
          hn::LoadInterleaved2(d, line + j + 2 * kStep * v, even, odd);
          sum[v] = fused(hn::Set(d, taps[j]), even, sum[v]);
          if (j + 1 < g.kw) sum[v] = fused(hn::Set(d, taps[j + 1]), odd, sum[v]);
        }
      }
    }
  }
  /// Where some taps lie beside the image.
  HWY_INLINE void add_halved_inside(std::int64_t column, Floats& sum) const {
    const Float d;
    for (std::int64_t i = first_tap; i < last_tap; ++i) {
      const float* line = from + i * g.w + 2 * column;
      for (std::int64_t j = 0; j < g.kw; j += 2) {
        const std::int64_t left = g.pad_x - 2 * column - j;  // pixels beside the image, under tap j
        const auto low = InsideLanes(left, g.w).load(line + j);
        const auto high = InsideLanes(left - kStep, g.w).load(line + j + kStep);
        const auto add = [&](std::int64_t tap, std::int64_t outside, Floats pixels) HWY_ATTR {
          // Lanes [ceil(outside / 2), ceil((outside + w) / 2)); outside may be less than 0.
          const std::int64_t begin = (outside + 1) >> 1, end = (outside + g.w + 1) >> 1;
          const InsideLanes lanes(begin, end - begin);
          sum = fused_where(lanes.mask, hn::Set(d, k[i * g.kw + tap]), pixels, sum);
        };
        add(j, left, even_of(low, high));
        if (j + 1 < g.kw) add(j + 1, left - 1, odd_of(low, high));
      }
    }
  }
  HWY_INLINE void add_gathered(std::int64_t column, Floats& sum) const {
    const Float d;
    const hn::RebindToSigned<Float> di;
    const auto index = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<std::int32_t>(g.stride_x)));
    for (std::int64_t i = first_tap; i < last_tap; ++i) {
      for (std::int64_t j = 0; j < g.kw; ++j) {
        const auto pixels = hn::GatherIndex(d, from + i * g.w + column * g.stride_x + j, index);
        sum = fused(hn::Set(d, k[i * g.kw + j]), pixels, sum);
      }
    }
  }
};

/// Vectors of outputs from `column` on, as many as fit; the first `again` outputs were stored before. Returns how many
/// outputs these are.
template <class Store>
HWY_INLINE std::int64_t add_strided(const StridedRow& line, std::int64_t row, std::int64_t column,
                                    std::int64_t again, const Store& store) {
  const auto some = [&]<int kVectors>() HWY_ATTR {
    Floats sum[kVectors];
    HWY_UNROLL(4)
    for (auto& s : sum) s = hn::Zero(Float());
    if (kVectors > 1 || line.halved) {
      line.add_halved(column, sum);
    } else {
      line.add_gathered(column, sum[0]);
    }
    HWY_UNROLL(4)
    for (int v = 0; v < kVectors; ++v) store(sum[v], row, column + v * kStep, kLanes, again);
    return kVectors * kStep;
  };
  if (line.halved && column + 3 * kStep <= line.last) return some.template operator()<4>();
  if (line.halved && column + kStep <= line.last) return some.template operator()<2>();
  return some.template operator()<1>();
}

/// The last vector moves left until it fits, where that is less work than the outputs that are left. Outputs with taps left
/// or right of the image are taken a vector at a time, or one by one: a few, and those whose pixels are more than two apart.
inline constexpr std::int64_t kFewBeside = 3;
template <class Store>
HWY_NOINLINE void conv_row_strided(const ops::Conv2d& g, const float* x, const float* k, std::int64_t row,
                                   std::int64_t first_tap, std::int64_t last_tap, const Store& store) {
  const StridedRow line{g, x + (row * g.stride_y - g.pad_y) * g.w - g.pad_x, k, first_tap, last_tap};
  for (std::int64_t column = 0; column < g.wo;) {
    const std::int64_t start = std::min(column, line.last), again = column - start;
    if (line.last >= 0 && start >= line.first && again < kStep && (line.halved || 2 * again <= kStep)) {
      column = start + add_strided(line, row, start, again, store);
      continue;
    }
    const std::int64_t beside = column < line.first && line.first <= line.last ? line.first : g.wo;
    if (line.halved && beside - column >= kFewBeside) {
      const std::int64_t some = std::min(kStep, g.wo - column);
      auto sum = hn::Zero(Float());
      line.add_halved_inside(column, sum);
      store(sum, row, column, static_cast<std::size_t>(some), 0);
      column += some;
    } else {
      store(hn::Set(Float(), ops::conv2d_at(g, x, k, row, column)), row, column, 1, 0);
      ++column;
    }
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include "backends/simd/conv2d_three-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

/// kRows rows of outputs of a 3x3 kernel with steps of 1, or several times as many, at most `rows`; returns how many.
template <int kRows, class Store>
HWY_INLINE std::int64_t three_by_three(const ops::Conv2d& g, const float* from, const float* k,
                                       InputRows inside, std::int64_t row, std::int64_t rows,
                                       const Store& store) {
  if (!fits_three(g)) {
    conv_row<kRows, 3>(g, from, k, 3, inside, row, store);
    return kRows;
  }
  const std::int64_t strips =
      inside.first > 0 ? 1 : std::max<std::int64_t>(1, std::min(rows, inside.last - 2) / kRows);
  three_rows<kRows>(g, from, k, inside, strips, row, store);
  return strips * kRows;
}

/// Output rows [begin, end) of one image.
template <class Store>
HWY_NOINLINE void conv_rows(const ops::Conv2d& g, const float* x, const float* k, std::int64_t begin,
                            std::int64_t end, const Store& store) {
  const bool plain = g.stride_y == 1 && g.stride_x == 1;
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t top = row * g.stride_y - g.pad_y;
    const InputRows inside{-top, g.h - top};
    const bool many = row + kConvRows <= end;
    if (plain && g.kh == 3 && g.kw == 3 && row + 1 < end) {
      const auto some = many ? three_by_three<kConvRows, Store> : three_by_three<2, Store>;
      row += some(g, x + top * g.w, k, inside, row, end - row, store);
      continue;
    }
    if (plain && many && top >= 0 && top + kConvRows - 1 + g.kh <= g.h) {
      conv_row<kConvRows, 0>(g, x + top * g.w, k, g.kh, inside, row, store);
      row += kConvRows;
      continue;
    }
    const std::int64_t first = std::max<std::int64_t>(0, -top), last = std::min(g.kh, g.h - top);
    if (g.stride_x == 1) {
      conv_row<1, 0>(g, x + (top + first) * g.w, k + first * g.kw, last - first, inside, row, store);
    } else {
      conv_row_strided(g, x, k, row, first, last, store);
    }
    ++row;
  }
}

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
