// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Exact integer products of rows of unsigned bytes with queries of signed bytes, in the tiles of cosine-inl.h. On
// AVX-512 the instruction for it (VNNI) is an extension of its own, so its loop is chosen at run time.
#include "backends/simd/compressed_rows.h"
#include "backends/simd/cosine-inl.h"

#if defined(FULCRUM_BACKENDS_SIMD_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FULCRUM_BACKENDS_SIMD_BYTES_INL_H_
#undef FULCRUM_BACKENDS_SIMD_BYTES_INL_H_
#else
#define FULCRUM_BACKENDS_SIMD_BYTES_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace fulcrum::backends::simd::HWY_NAMESPACE {

using Short = hn::ScalableTag<std::int16_t>;
using Int = hn::RepartitionToWide<Short>;
using Ints = hn::Vec<Int>;
inline constexpr std::size_t kShorts = hn::MaxLanes(Short());
// Accumulators come in pairs where widening yields two vectors.
#if HWY_TARGET <= HWY_AVX3
inline constexpr std::size_t kByteQueries = 4;
#else
inline constexpr std::size_t kByteQueries = 1;
#endif

/// out[j * stride + i] = row i . query j over `pitch` elements, a multiple of kByteStep.
template <std::size_t kRows, std::size_t kQueries>
HWY_NOINLINE void multiply_bytes(const std::uint8_t* rows, const std::int8_t* queries, std::size_t pitch,
                                 std::int32_t* out, std::size_t stride, const std::uint8_t*) {
  const Short d;
  const hn::Rebind<std::uint8_t, Short> d_row;
  const hn::Rebind<std::int8_t, Short> d_query;
  Ints low[kQueries * kRows], high[kQueries * kRows];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kQueries * kRows; ++i) low[i] = high[i] = hn::Zero(Int());
  for (std::size_t k = 0; k < pitch; k += kShorts) {
    hn::Vec<Short> t[kRows];
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < kRows; ++i) t[i] = hn::PromoteTo(d, hn::LoadU(d_row, rows + i * pitch + k));
    HWY_UNROLL(4)
    for (std::size_t j = 0; j < kQueries; ++j) {
      const auto q = hn::PromoteTo(d, hn::LoadU(d_query, queries + j * pitch + k));
      HWY_UNROLL(4)
      for (std::size_t i = 0; i < kRows; ++i) {
        low[j * kRows + i] =
            hn::ReorderWidenMulAccumulate(Int(), t[i], q, low[j * kRows + i], high[j * kRows + i]);
      }
    }
  }
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kQueries * kRows; ++i) low[i] = hn::Add(low[i], high[i]);
  HWY_UNROLL(4)
  for (std::size_t j = 0; j < kQueries; ++j) store_sums<kRows>(Int(), low + j * kRows, out + j * stride);
}

#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86

inline bool has_byte_products() {
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
}

/// The same, four products an instruction and lane. `ahead`, unless null, is fetched into the cache meanwhile: one
/// row of it, or for a lone query, which is as fast as memory, as many as the tile has.
template <std::size_t kRows, std::size_t kQueries>
__attribute__((noinline, target(HWY_TARGET_STR ",avx512vnni"))) void multiply_bytes_vnni(
    const std::uint8_t* rows, const std::int8_t* queries, std::size_t pitch, std::int32_t* out,
    std::size_t stride, const std::uint8_t* ahead) {
  __m512i sum[kQueries * kRows];
#pragma GCC unroll 24
  for (std::size_t i = 0; i < kQueries * kRows; ++i) sum[i] = _mm512_setzero_si512();
  constexpr std::size_t kFetched = kQueries == 1 ? kRows : 1;
  for (std::size_t k = 0; k < pitch; k += kByteStep) {
    __m512i t[kRows];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kFetched && ahead; ++i) __builtin_prefetch(ahead + i * pitch + k, 0, 2);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) t[i] = _mm512_loadu_si512(rows + i * pitch + k);
#pragma GCC unroll 6
    for (std::size_t j = 0; j < kQueries; ++j) {
      const __m512i q = _mm512_loadu_si512(queries + j * pitch + k);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i)
        sum[j * kRows + i] = _mm512_dpbusd_epi32(sum[j * kRows + i], t[i], q);
    }
  }
  Ints total[kQueries * kRows];
#pragma GCC unroll 24
  for (std::size_t i = 0; i < kQueries * kRows; ++i) total[i] = Ints{sum[i]};
#pragma GCC unroll 6
  for (std::size_t j = 0; j < kQueries; ++j) store_sums<kRows>(Int(), total + j * kRows, out + j * stride);
}

#endif

/// A block of rows of bytes against some queries.
struct ByteProducts {
  const std::uint8_t* rows;
  std::size_t row_count;
  const std::int8_t* queries;
  std::size_t query_count;
  std::size_t pitch;
  std::int32_t* out;
  std::size_t stride;
  std::size_t next_rows;  // rows after this block that will be wanted next

  template <class Tile, class Single>
  HWY_INLINE void columns(std::size_t& q, std::size_t width, std::size_t height, Tile tile,
                          Single single) const {
    for (; q + width <= query_count; q += width) {
      std::int32_t* const target = out + q * stride;
      std::size_t at = 0;
      for (; at + height <= row_count; at += height) {
        // Column after column of tiles fetches another row of each tile of the next block.
        const std::size_t next = row_count + at + (width == 1 ? 0 : q / width % height);
        const bool fetch = at + height <= next_rows && (width == 1 ? query_count == 1 : q / width < height);
        tile(rows + at * pitch, queries + q * pitch, pitch, target + at, stride,
             fetch ? rows + next * pitch : nullptr);
      }
      for (; at < row_count; ++at)
        single(rows + at * pitch, queries + q * pitch, pitch, target + at, stride, nullptr);
    }
  }

  void run() const {
    std::size_t q = 0;
#if HWY_TARGET <= HWY_AVX3 && HWY_ARCH_X86
    if (has_byte_products()) {
      columns(q, 6, 4, multiply_bytes_vnni<4, 6>, multiply_bytes_vnni<1, 6>);
      columns(q, 4, 4, multiply_bytes_vnni<4, 4>, multiply_bytes_vnni<1, 4>);
      columns(q, 1, 8, multiply_bytes_vnni<8, 1>, multiply_bytes_vnni<1, 1>);
      return;
    }
#endif
    columns(q, kByteQueries, 4, multiply_bytes<4, kByteQueries>, multiply_bytes<1, kByteQueries>);
    columns(q, 1, 4, multiply_bytes<4, 1>, multiply_bytes<1, 1>);
  }
};

}  // namespace fulcrum::backends::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
