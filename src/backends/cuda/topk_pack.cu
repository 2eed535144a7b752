// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of rows and queries for topk_packed_90a.cu: all of the same length and rounded to f16, or to the sum of two.
// That is half the bytes of tf32 for the same 11 bits, or the bytes of f32 for 22.
#include <cuda_fp16.h>

#include "backends/cuda/topk_packed.h"

namespace fulcrum::backends::cuda::topk {
namespace {

constexpr int kPackThreads = 256, kPackWarps = kPackThreads / 32;
constexpr float kLength = 0x1p8F, kBack = 0x1p-16F;  // of a copy; of a product of two

/// Four elements as halves, and what those leave.
struct Halves {
  uint2 high, low;

  __device__ __forceinline__ Halves(const float4& x, float factor, bool valid) {
    const float scaled[4] = {x.x * factor, x.y * factor, x.z * factor, x.w * factor};
    unsigned short bits[4], rest[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float value = valid ? scaled[e] : 0.0F;
      const __half half = __float2half_rn(value);
      bits[e] = __half_as_ushort(half);
      rest[e] = __half_as_ushort(__float2half_rn(value - __half2float(half)));
    }
    high = make_uint2(bits[0] | unsigned{bits[1]} << 16, bits[2] | unsigned{bits[3]} << 16);
    low = make_uint2(rest[0] | unsigned{rest[1]} << 16, rest[2] | unsigned{rest[3]} << 16);
  }
};

/// Vector v (four elements) of a row's copy.
template <int kTerms>
__device__ __forceinline__ void put_halves(unsigned char* row, int v, const Halves& halves) {
  if constexpr (kTerms == 1) {
    *reinterpret_cast<uint2*>(row + v * 8) = halves.high;
  } else {
    unsigned char* to = row + v / 8 * kPackedSlab + v % 8 * 8;
    *reinterpret_cast<uint2*>(to) = halves.high;
    *reinterpret_cast<uint2*>(to + kPackedSlab / 2) = halves.low;
  }
}

/// What a row is multiplied with so that its length is one; NaN where f32 does not carry its length, or where the one
/// that is given is another.
__device__ __forceinline__ float inverse_of(const Search& s, std::int64_t i, float square) {
  if (!cosine::safe_square(square)) return NAN;
  if (i >= s.row_count || !s.known) return 1 / sqrtf(square);
  const float given = s.inverse ? s.inverse[i] : 1.0F;
  const bool fits = cosine::safe_norm(given) && fabsf(square * given * given - 1) <= 0x1p-6F;
  return fits ? given : NAN;
}

/// A warp copies a row, or behind the rows a query.
template <int kTerms>
__global__ void __launch_bounds__(kPackThreads) pack_halves(Search s, Packed packed) {
  constexpr int kHeld = 8;  // vectors of a lane that are read once
  streaming::follow();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kPackWarps + threadIdx.x / 32;
  if (i >= s.row_count + s.query_count) return;
  const float* row = i < s.row_count ? s.rows + i * s.d : s.queries + (i - s.row_count) * s.d;
  const auto* from = reinterpret_cast<const float4*>(row);
  const int vectors = static_cast<int>(s.d / 4);
  const auto all = static_cast<int>(packed.pitch / (kTerms == 1 ? 8 : 16));  // zeros behind the last
  const auto load = [&](int v) { return v < vectors ? from[v] : make_float4(0, 0, 0, 0); };
  float4 held[kHeld];
#pragma unroll
  for (int u = 0; u < kHeld; ++u) held[u] = load(u * 32 + lane);
  float square = 0;
#pragma unroll
  for (int u = 0; u < kHeld; ++u) square = cosine::add_product(held[u], held[u], square);
  for (int v = kHeld * 32 + lane; v < vectors; v += 32)
    square = cosine::add_product(from[v], from[v], square);
  const float inverse = inverse_of(s, i, cosine::sum_over_lanes(square));
  const bool valid = inverse == inverse;
  const float factor = inverse * kLength;
  unsigned char* to = packed.rows + i * packed.pitch;
#pragma unroll
  for (int u = 0; u < kHeld; ++u) {
    if (u * 32 + lane < all) put_halves<kTerms>(to, u * 32 + lane, Halves(held[u], factor, valid));
  }
  for (int v = kHeld * 32 + lane; v < all; v += 32) put_halves<kTerms>(to, v, Halves(load(v), factor, valid));
  if (lane == 0) packed.scales[i] = valid ? kBack : NAN;
}

}  // namespace

fulcrum_status enqueue_pack(const Search& search, const Packed& packed, int terms, bool programmatic,
                            void* stream) {
  const streaming::Launch shape{
      .ctas = streaming::divide_up(search.row_count + search.query_count, kPackWarps),
      .threads = kPackThreads,
      .programmatic = programmatic};
  return streaming::launch(terms == 1 ? pack_halves<1> : pack_halves<3>, shape, stream, 1, search, packed);
}

}  // namespace fulcrum::backends::cuda::topk
