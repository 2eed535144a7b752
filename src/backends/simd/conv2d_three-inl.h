// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a convolution with a 3x3 kernel on 512-bit vectors. Of the two shifted inputs under each vector of outputs
// one is loaded and one is made in registers: two loads that straddle cache lines would keep the L1 cache too busy to
// take in what comes from the L2, and two shifts the port that they share with half of the multiplications.
// Included by conv2d-inl.h, once per instruction set.
#if defined(FULCRUM_BACKENDS_SIMD_CONV2D_THREE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_CONV2D_THREE_INL_H_
#undef FULCRUM_BACKENDS_SIMD_CONV2D_THREE_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_CONV2D_THREE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

inline constexpr std::int64_t kThreeWidth = 2 * kStep;  // outputs of a row in a tile

/// Where a tile lies in a row of the image: with a column of padding, the first and the last tile have lanes whose
/// left or right tap is in it.
enum class Side { kInner, kPadded, kLeft, kRight };

/// The two vectors of inputs under each tap column, for outputs from `x` on (kInner: their first tap, else their middle
/// one).
template <Side kSide>
struct ThreeInputs {
  Floats at[3][2];

  explicit HWY_INLINE ThreeInputs(const float* HWY_RESTRICT x) {
    const Float d;
    const auto a = loaded(x), b = loaded(x + kStep);
    if constexpr (kSide == Side::kInner) {
      set(a, b, shifted<1>(a, b), shifted<1>(b, one(x + kThreeWidth)), loaded(x + 2), loaded(x + 2 + kStep));
    } else {
      const auto before = kSide == Side::kLeft ? shifted<15>(hn::Zero(d), a) : loaded(x - 1);
      const auto after = kSide == Side::kRight ? hn::Zero(d) : one(x + kThreeWidth);
      set(before, loaded(x - 1 + kStep), a, b, shifted<1>(a, b), shifted<1>(b, after));
    }
  }

  HWY_INLINE void set(Floats v0, Floats v1, Floats v2, Floats v3, Floats v4, Floats v5) {
    at[0][0] = v0, at[0][1] = v1, at[1][0] = v2, at[1][1] = v3, at[2][0] = v4, at[2][1] = v5;
  }
  static HWY_INLINE Floats loaded(const float* x) { return in_register(hn::LoadU(Float(), x)); }
  static HWY_INLINE Floats one(const float* x) { return Floats{_mm512_castps128_ps512(_mm_load_ss(x))}; }
  template <int kBy>
  static HWY_INLINE Floats shifted(Floats low, Floats high) {
    const auto bits = _mm512_alignr_epi32(_mm512_castps_si512(high.raw), _mm512_castps_si512(low.raw), kBy);
    return in_register(Floats{_mm512_castsi512_ps(bits)});
  }
};

/// sum + weight * x; the lane whose tap lies in the padding keeps its sum.
template <Side kSide>
HWY_INLINE Floats add_tap(Floats weight, Floats x, Floats sum, int j, int v) {
  if (kSide == Side::kLeft && j == 0 && v == 0)
    return Floats{_mm512_mask3_fmadd_ps(weight.raw, x.raw, sum.raw, 0xFFFE)};
  if (kSide == Side::kRight && j == 2 && v == 1)
    return Floats{_mm512_mask3_fmadd_ps(weight.raw, x.raw, sum.raw, 0x7FFF)};
  return fused(weight, x, sum);
}

/// kRows x 32 outputs from (row, column) on; `x` as for ThreeInputs, in the row under the first tap row. kInside: all
/// input rows are in the image. A Store that can expect() hears of the tile to the right, whose cache lines it may
/// fetch.
template <int kRows, Side kSide, bool kInside, class Store>
FULCRUM_INLINE_PIECE void three_tile(const ops::Conv2d& g, const float* x, const Weights<3>& weights,
                                     InputRows inside, std::int64_t row, std::int64_t column,
                                     const Store& store, std::int64_t done) {
  Floats sum[kRows][2];
  HWY_UNROLL(6)
  for (int q = 0; q < kRows + 2; ++q, x += g.w) {
    if (q < kRows) {
      sum[q][0] = sum[q][1] = hn::Zero(Float());
      if constexpr (requires { store.expect(row, column); }) store.expect(row + q, column + kThreeWidth);
    }
    if (kInside || (q >= inside.first && q < inside.last)) {
      const ThreeInputs<kSide> inputs(x);
      HWY_UNROLL(6)
      for (int t = 0; t < 6; ++t) {
        const int j = t / 2, v = t % 2;
        HWY_UNROLL(4)
        for (int r = 0; r < kRows; ++r) {
          if (q - r < 0 || q - r > 2) continue;
          sum[r][v] = add_tap<kSide>(weights.at(q - r, 3, j), inputs.at[j][v], sum[r][v], j, v);
        }
      }
    }
    const int r = q - 2;  // complete now
    if (r < 0) continue;
    store(sum[r][0], row + r, column, kLanes, done);
    store(sum[r][1], row + r, column + kStep, kLanes, done - kStep);
  }
}

/// Whether three_rows() can do the rows of a convolution: a row must be wider than a tile.
inline bool fits_three(const ops::Conv2d& g) {
  return g.kh == 3 && g.kw == 3 && g.stride_y == 1 && g.stride_x == 1 && g.pad_x <= 1 &&
         g.wo >= kThreeWidth + g.pad_x;
}

template <int kRows, bool kInside, class Store>
HWY_INLINE void three_columns(const ops::Conv2d& g, const float* from, const Weights<3>& weights,
                              InputRows inside, std::int64_t row, const Store& store) {
  const std::int64_t last = g.wo - kThreeWidth;
  std::int64_t column = 0;
  if (g.pad_x == 0) {
    for (; column < last; column += kThreeWidth)
      three_tile<kRows, Side::kInner, kInside>(g, from + column, weights, inside, row, column, store, 0);
    three_tile<kRows, Side::kInner, kInside>(g, from + last, weights, inside, row, last, store,
                                             column - last);
    return;
  }
  three_tile<kRows, Side::kLeft, kInside>(g, from, weights, inside, row, 0, store, 0);
  for (column = kThreeWidth; column < last; column += kThreeWidth)
    three_tile<kRows, Side::kPadded, kInside>(g, from + column, weights, inside, row, column, store, 0);
  three_tile<kRows, Side::kRight, kInside>(g, from + last, weights, inside, row, last, store, column - last);
}

/// `strips` times kRows rows of outputs; `from` is the image row under the first tap row. Input rows may lie outside of
/// the image if there is one strip. The last tile moves left until it ends with the row, and does some outputs again.
template <int kRows, class Store>
HWY_NOINLINE void three_rows(const ops::Conv2d& geometry, const float* from, const float* k, InputRows inside,
                             std::int64_t strips, std::int64_t row, const Store& to) {
  const ops::Conv2d g = geometry;  // own copies: what is stored may not be taken for a part of them
  const Store store = to;
  const Weights<3> weights(k);
  if (inside.first > 0 || inside.last < kRows + 2)
    return three_columns<kRows, false>(g, from, weights, inside, row, store);
  for (; strips > 0; --strips, from += kRows * g.w, row += kRows)
    three_columns<kRows, true>(g, from, weights, inside, row, store);
}

#else

inline bool fits_three(const ops::Conv2d&) { return false; }
template <int kRows, class Store>
void three_rows(const ops::Conv2d&, const float*, const float*, InputRows, std::int64_t, std::int64_t,
                const Store&) {}

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
