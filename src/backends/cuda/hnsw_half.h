// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search over copies of the vectors in half precision: half of the bytes, and the results of a search in full. The
// nearest kHalfCandidates by the copies are compared again; a query for which the copies' error may hide a nearer
// vector is marked, to be searched in full.
#pragma once

#include "backends/cuda/hnsw_exact.cuh"
#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::hnsw {

inline constexpr int kHalfCandidates = topk::kWarpMost;
inline constexpr int kMostHalfResults = 16;  // fewer than candidates: the rest is the margin

/// Copies of an index's vectors, with the same stride.
struct Halves {
  const void* rows;
  const std::uint32_t* extremes;  // bits of floats: the largest error of a vector's copy, the largest length
};

struct HalfSearch {
  const float* queries;
  std::int64_t count;
  std::int32_t k, splits;
  std::int32_t* ids;
  float* distances;
  Key* ranks;            // [queries][kHalfCandidates][splits]
  unsigned* tickets;     // by block of queries; zero between launches
  unsigned char* marks;  // by query: 1: search in full
};

/// Writes the copies and their extremes, which must be zero before.
fulcrum_status enqueue_halves(const Vectors& v, void* rows, std::uint32_t* extremes, cudaStream_t stream);

/// Queries of one CTA and rows of it at a time, for so many queries.
struct HalfShape {
  int queries, rows;
};
HalfShape half_shape(const Vectors& v, std::int64_t queries);

/// Lets the kernel have its shared memory and says how many CTAs of it fit on an SM.
fulcrum_status allow_half(const Vectors& v, const HalfShape& shape, int* ctas_per_sm);
fulcrum_status enqueue_half(const Vectors& v, const Halves& halves, const HalfSearch& search,
                            const HalfShape& shape, void* stream);

}  // namespace fulcrum::backends::cuda::hnsw
