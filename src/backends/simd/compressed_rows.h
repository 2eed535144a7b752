// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A copy of the rows of a cosine search in 16 or 8 bits an element, made once, and how far a score of the copy can
// be from the score that the fp32 kernel computes. A row whose upper bound is below the k-th best needs no fp32
// score: the copy saves reading, never a result.
//
// With w the factor of a row (1/|t|, as given, or 1), t' = scale * copy and q' the query as the kernel has it:
// |q.t w - q'.t' w| <= |q - q'| |t| w + |q'| |t - t'| w. Both norms of differences are measured, in fp64.
#pragma once

#include <fulcrum/abi.h>
#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fulcrum::backends::simd {

inline constexpr std::size_t kByteStep = 64;  // elements; rows of bytes are padded to it
inline constexpr std::uint8_t kByteZero =
    128;  // bytes hold value + 128: some dot products take unsigned bytes
inline constexpr std::int64_t kByteMostD = 65536;  // sums of 255 * 127 stay below 2^31

struct CompressedRows {
  enum class Kind : std::uint8_t { halves, bytes } kind = Kind::halves;
  std::size_t pitch = 0;  // elements from row to row
  hwy::AlignedFreeUniquePtr<std::uint16_t[]> halves;
  hwy::AlignedFreeUniquePtr<std::uint8_t[]> bytes;
  // By row. Product with the copy times gain is the score of a query of length 1, give or take slack, and
  // reach times the relative error of the query.
  std::vector<float> gain, slack, reach;
};

/// False when memory is short. Rows in slot 1, their inverse norms or null in slot 2, "normalized" in scalar 0, rows
/// and elements in dims 1 and 2, as cosine_topk has them.
bool compress(const fulcrum_args& a, CompressedRows::Kind kind, CompressedRows& rows);

/// A query in 8 bits.
struct ByteQuery {
  float scale = 0;          // query = scale * bytes, nearly
  float error = 0;          // |query - scale * bytes| / |query|, rounded up
  std::int32_t offset = 0;  // what kByteZero adds to every product
};
/// Writes `pitch` bytes, zeros after the first n.
ByteQuery compress_query(const float* q, std::size_t n, std::size_t pitch, std::int8_t* bytes);

/// True for squared norms that the fp32 kernel trusts too, whatever its rounding: only such queries may be filtered.
inline bool is_filterable(double square) { return square >= 0x1p-99 && square <= 0x1p99; }

}  // namespace fulcrum::backends::simd
