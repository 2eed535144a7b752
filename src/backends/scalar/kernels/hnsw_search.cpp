// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// hnsw_search: the plain walk, and as `exact` the comparison with every vector.
#include <fulcrum/ops/hnsw_walk.h>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

/// Distance of one query to a stored vector.
struct Distance {
  const ops::HnswIndex& index;
  const float* query;
  float inverse_norm;  // of the query, where the metric wants it; 0 for a query of zeros

  Distance(const ops::HnswIndex& i, const float* q) : index(i), query(q), inverse_norm(1) {
    if (index.metric != ops::HnswMetric::cosine) return;
    double squared = 0;
    for (std::int64_t d = 0; d < index.dimension; ++d) squared += static_cast<double>(q[d]) * q[d];
    inverse_norm = squared > 0 ? static_cast<float>(1 / std::sqrt(squared)) : 0;
  }

  float operator()(std::int32_t id) const {
    const float* c = index.vectors + id * index.stride;
    const auto square = [&](std::int64_t i) { return (query[i] - c[i]) * (query[i] - c[i]); };
    if (index.metric == ops::HnswMetric::l2sq) return sum_in_four(0, index.dimension, square);
    float sum = 0;
    constexpr std::int64_t kRun = 4096;  // dot_product() takes no more
    for (std::int64_t i = 0; i < index.dimension; i += kRun) {
      sum += dot_product(query + i, c + i, std::min(kRun, index.dimension - i));
    }
    return index.metric == ops::HnswMetric::ip ? -sum : 1 - sum * inverse_norm;
  }
};

void search(const fulcrum_args& a, std::int64_t query, std::int64_t ef, ops::HnswWalk& walk) {
  const auto& index = *static_cast<const ops::HnswIndex*>(a.prepared);
  const std::int64_t k = a.dim[3];
  const Distance distance(index, a.in<float>(0) + query * index.dimension);
  walk.best.clear();
  if (ef > 0) ops::search_graph(index, distance, ef, walk);
  if (static_cast<std::int64_t>(walk.best.size()) < k) ops::search_all(index, distance, k, walk);
  for (std::int64_t i = 0; i < k; ++i) {
    a.out<std::int32_t>(1)[query * k + i] = walk.best[static_cast<std::size_t>(i)].id;
    a.out<float>(2)[query * k + i] = walk.best[static_cast<std::size_t>(i)].distance;
  }
}

void search_pieces(const fulcrum_args& a, bool exact, std::int64_t begin, std::int64_t end) {
  static thread_local ops::HnswWalk walk;
  const auto& index = *static_cast<const ops::HnswIndex*>(a.prepared);
  const std::int64_t ef = exact ? 0 : ops::hnsw_ef(index, a.dim[3], a.scalar[0].i, a.scalar[1].f);
  for (std::int64_t query = begin * ops::kHnswQueries; query < std::min(end * ops::kHnswQueries, a.dim[0]);
       ++query) {
    search(a, query, ef, walk);
  }
}

template <bool kExact>
void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  search_pieces(*a, kExact, begin, end);
}

template <bool kExact>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const std::int64_t pieces = (a->dim[0] + ops::kHnswQueries - 1) / ops::kHnswQueries;
  for (std::int64_t i = 0; i < count; ++i) search_pieces(*a, kExact, 0, pieces);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> hnsw_search() {
  static const fulcrum_kernel kernels[] = {
      make_kernel(1, run<false>, partial<false>),
      {.variant = "exact", .level = 1, .isa = isa, .run = run<true>, .partial = partial<true>}};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
