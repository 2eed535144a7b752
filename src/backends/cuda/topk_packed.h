// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of rows and queries in halves (topk_pack.cu), and the search for candidates among them, which only devices of
// compute capability 9.0 run (topk_packed_90a.cu).
#pragma once

#include "backends/cuda/topk_tensor.cuh"

namespace fulcrum::backends::cuda::topk {

inline constexpr int kPackedNarrow = 64, kPackedWide = 256;  // queries of a tile
inline constexpr int kPackedMostK = 16;
inline constexpr int kPackedSlab = 128;  // bytes of a copy that are multiplied at a time

/// Bytes of a row of copies: slabs of 128 bytes, with 64 elements of one half each or 32 of two.
constexpr std::int64_t packed_pitch(std::int64_t d, int terms) {
  const std::int64_t elements = terms == 1 ? 64 : 32;
  return (d + elements - 1) / elements * kPackedSlab;
}

/// Writes the copies of a call's rows and queries; both lie at multiples of 16 bytes.
fulcrum_status enqueue_pack(const Search& search, const Packed& packed, int terms, bool programmatic,
                            void* stream);
fulcrum_status enqueue_packed(const TensorSearch& search, int terms, int queries_of_tile, bool programmatic,
                              void* stream);

}  // namespace fulcrum::backends::cuda::topk
