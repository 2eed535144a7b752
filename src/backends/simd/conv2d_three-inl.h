// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a convolution with a 3x3 kernel on 512-bit vectors. Shifted inputs are made in registers from loads that
// meet no cache line twice: loads at every tap would keep the L1 cache too busy to take in what comes from the L2.
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
    const auto a = in_register(hn::LoadU(d, x)), b = in_register(hn::LoadU(d, x + kStep));
    if constexpr (kSide == Side::kInner) {
      const Floats c{_mm512_castps128_ps512(_mm_castsi128_ps(_mm_loadl_epi64(
          reinterpret_cast<const __m128i*>(x + kThreeWidth))))};  // the two that the last taps need
      set(a, b, shifted<1>(a, b), shifted<1>(b, c), shifted<2>(a, b), shifted<2>(b, c));
    } else {
      const auto before = kSide == Side::kLeft ? hn::Zero(d) : hn::Set(d, x[-1]);
      const Floats after{kSide == Side::kRight ? _mm512_setzero_ps()
                                               : _mm512_castps128_ps512(_mm_load_ss(x + kThreeWidth))};
      set(shifted<15>(before, a), shifted<15>(a, b), a, b, shifted<1>(a, b), shifted<1>(b, after));
    }
  }

  HWY_INLINE void set(Floats v0, Floats v1, Floats v2, Floats v3, Floats v4, Floats v5) {
    at[0][0] = v0, at[0][1] = v1, at[1][0] = v2, at[1][1] = v3, at[2][0] = v4, at[2][1] = v5;
  }
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

/// kRows x 32 outputs from (row, column) on; `x` as for ThreeInputs, in the row under the first tap row.
template <int kRows, Side kSide, class Store>
HWY_INLINE void three_tile(const ops::Conv2d& g, const float* x, const Weights<3>& weights, InputRows inside,
                           std::int64_t row, std::int64_t column, const Store& store, std::int64_t done) {
  Floats sum[kRows][2];
  HWY_UNROLL(4)
  for (auto& s : sum) s[0] = s[1] = hn::Zero(Float());
  HWY_UNROLL(6)
  for (int q = 0; q < kRows + 2; ++q) {
    if (q < inside.first || q >= inside.last) continue;
    const ThreeInputs<kSide> inputs(x + q * g.w);
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
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    store(sum[r][0], row + r, column, kLanes, done);
    store(sum[r][1], row + r, column + kStep, kLanes, done - kStep);
  }
}

/// Whether three_rows() can do the rows of a convolution: a row must be wider than a tile.
inline bool fits_three(const ops::Conv2d& g) {
  return g.kh == 3 && g.kw == 3 && g.stride_y == 1 && g.stride_x == 1 && g.pad_x <= 1 &&
         g.wo >= kThreeWidth + g.pad_x;
}

/// kRows rows of outputs; `from` is the image row under the first tap row, which may lie outside. The last tile moves
/// left until it ends with the row, and does some outputs again.
template <int kRows, class Store>
HWY_NOINLINE void three_rows(const ops::Conv2d& g, const float* from, const float* k, std::int64_t,
                             InputRows inside, std::int64_t row, const Store& store) {
  const Weights<3> weights(k);
  const std::int64_t last = g.wo - kThreeWidth;
  std::int64_t column = 0;
  if (g.pad_x == 0) {
    for (; column < last; column += kThreeWidth)
      three_tile<kRows, Side::kInner>(g, from + column, weights, inside, row, column, store, 0);
    three_tile<kRows, Side::kInner>(g, from + last, weights, inside, row, last, store, column - last);
    return;
  }
  three_tile<kRows, Side::kLeft>(g, from, weights, inside, row, 0, store, 0);
  for (column = kThreeWidth; column < last; column += kThreeWidth)
    three_tile<kRows, Side::kPadded>(g, from + column, weights, inside, row, column, store, 0);
  three_tile<kRows, Side::kRight>(g, from + last, weights, inside, row, last, store, column - last);
}

#else

inline bool fits_three(const ops::Conv2d&) { return false; }
template <int kRows, class Store>
void three_rows(const ops::Conv2d&, const float*, const float*, std::int64_t, InputRows, std::int64_t,
                const Store&) {}

#endif

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
