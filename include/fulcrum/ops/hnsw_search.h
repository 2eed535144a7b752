// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What kernels of hnsw_search share: the index on flat arrays, the choice of ef, and how queries fall into pieces.
// hnswlib builds, saves and loads the graph; nothing of it is visible here.
#pragma once

#include <fulcrum/ops.h>

namespace fulcrum::ops {

/// Piece p is the queries [4 p, 4 p + 4).
inline constexpr std::int64_t kHnswQueries = 4;
/// Neighbours of a node: in layer 0, and in each layer above it.
inline constexpr std::int64_t kHnswLinks = 32;
inline constexpr std::int64_t kHnswUpperLinks = 16;
inline constexpr std::int64_t kHnswMostResults = 1024;
inline constexpr std::int64_t kHnswMostEf = 4096;
/// Up to so many vectors a comparison with all of them beats any walk, so that no recall is measured.
inline constexpr std::int64_t kHnswAlwaysExact = 1024;

/// l2sq: sum of (q - c)^2. ip: -q.c. cosine: 1 - cos; the index then holds vectors of length 1 (or 0).
enum class HnswMetric : std::int64_t { l2sq, ip, cosine };

/// One line of the recall table: what a walk with this ef found and did, a query.
struct HnswRecall {
  std::int64_t ef = 0;
  double recall = 0;     // of the 10 nearest
  double distances = 0;  // vectors compared
  double expanded = 0;   // nodes whose neighbours were looked at
  double seconds = 0;    // of the plain walk
};

/// An immutable index. Memory is aligned to 64 bytes. Lists that are not full end with the node itself, which is never
/// its own neighbour. A kernel outside of this library reads the fields and calls `file`; it links nothing.
struct HnswIndex {
  std::int64_t count = 0, dimension = 0;
  HnswMetric metric = HnswMetric::l2sq;
  std::int64_t stride = 0;  // floats from a vector to the next, a multiple of 16; zeros after `dimension`
  const float* vectors = nullptr;      // [count][stride]
  std::int64_t code_stride = 0;        // bytes, a multiple of 64; zeros after `dimension`
  const std::int8_t* codes = nullptr;  // [count][code_stride]: vector / code_scale, rounded
  float code_scale = 0;
  const std::int32_t* links = nullptr;  // [count][kHnswLinks]: layer 0
  const std::int32_t* upper_begin =
      nullptr;  // [count]: first list of the node in upper_links; -1: layer 0 only
  const std::int32_t* upper_links =
      nullptr;  // [upper_lists][kHnswUpperLinks]: layer l of a node is list upper_begin + l - 1
  std::int64_t upper_lists = 0;
  std::int32_t entry = 0;
  std::int32_t top_layer = 0;

  std::uint64_t hash = 0;              // 64-bit FNV-1a of lists and vectors; names the graph in results
  std::span<const HnswRecall> recall;  // by ascending ef; empty: not measured
  double exact_seconds = 0;            // of a query compared with every vector; measured with the table

  /// The path of the index as hnswlib saved it, written when first asked for; null when that failed.
  const char* (*file)(const HnswIndex& index) = nullptr;

  std::uint64_t id = 0;  // of this index alone; its address may be another's later
};

/// Builds an index over rows of `dimension` floats with hnswlib: 16 neighbours a layer, 200 candidates, points in
/// order on one thread. Errors: no rows, values that are not finite, memory.
Result<std::shared_ptr<const HnswIndex>> make_hnsw_index(std::span<const float> rows, std::int64_t dimension,
                                                         HnswMetric metric);
/// An index that hnswlib saved; the labels of its points must be 0, 1, ... in any order.
Result<std::shared_ptr<const HnswIndex>> load_hnsw_index(const std::filesystem::path& file,
                                                         std::int64_t dimension, HnswMetric metric);
/// The same index with its recall table, measured with points of its own as queries (which are left out of their
/// results). Needed to search by recall_target.
Result<std::shared_ptr<const HnswIndex>> with_recall(std::shared_ptr<const HnswIndex> index);

/// Candidates that a walk for these arguments keeps: ef, at least k. ef=0: the smallest of the table whose recall
/// reaches recall_target + 0.005. 0: compare with all vectors, since that is cheaper or nothing else suffices.
inline std::int64_t hnsw_ef(const HnswIndex& index, std::int64_t k, std::int64_t ef, double recall_target) {
  constexpr double kMargin = 0.005;
  if (ef > 0) return ef > k ? ef : k;
  for (const HnswRecall& line : index.recall) {
    if (line.recall < (recall_target + kMargin < 1.0 ? recall_target + kMargin : 1.0)) continue;
    if (line.seconds >= index.exact_seconds) return 0;
    return line.ef > k ? line.ef : k;
  }
  return 0;
}

}  // namespace fulcrum::ops
