// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Indexes over the drawn vector sets, kept in memory and on disk, and the recall tables of any index.
#pragma once

#include <fulcrum/ops/hnsw_search.h>

#include "ops/support/vector_sets.h"

namespace fulcrum::ops {

/// The index over the first `count` vectors of a set. Asked for again it is the same object; large ones are kept in the
/// data folder too. With `recall` its table is there, measured with the set's own queries.
Result<std::shared_ptr<const HnswIndex>> drawn_index(VectorSet set, std::int64_t count,
                                                     std::int64_t dimension, HnswMetric metric, bool recall);

/// What measure_recall() finds.
struct RecallTable {
  std::vector<HnswRecall> lines;
  double exact_seconds = 0;
};

/// Recall of the 10 nearest for rising ef, until it is 1 or ef exceeds the index. Queries are rows of the index's
/// dimension; none: points of the index, which are left out of their own results.
Result<RecallTable> measure_recall(const HnswIndex& index, std::span<const float> queries);

/// Distances from one query to the vectors of an index, in fp32.
class QueryDistance {
 public:
  QueryDistance(const HnswIndex& index, const float* query);
  float operator()(std::int32_t id) const;

 private:
  const HnswIndex& index_;
  std::vector<float> query_;  // padded as the index's vectors; cosine: of length 1
  VectorProduct product_;
};

}  // namespace fulcrum::ops
