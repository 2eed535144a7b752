// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Recall tables: what a walk finds of the true neighbours, and what it costs, for rising ef.
#include <fulcrum/core/stop.h>
#include <fulcrum/ops/hnsw_walk.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ops/support/hnsw_index.h"

namespace fulcrum::ops {
namespace {

constexpr std::int64_t kEfs[] = {16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536};
constexpr std::int64_t kQueries = 1000;
constexpr std::int64_t kNeighbours = 10;
constexpr std::int64_t kRecallBlock =
    64;  // vectors that stay in the first cache while all queries pass over them

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Query {
  QueryDistance distance;
  std::int32_t self;          // never a result of its own; -1: no point of the index
  std::vector<HnswHit> best;  // a heap of the true neighbours, the worst on top
};

std::vector<Query> make_queries(const HnswIndex& index, std::span<const float> rows) {
  std::vector<Query> queries;
  const auto d = static_cast<std::size_t>(index.dimension);
  for (std::size_t i = 0; i < rows.size() / d; ++i) {
    queries.push_back(Query{QueryDistance(index, rows.data() + i * d), -1, {}});
  }
  const std::uint64_t key = tensor_key(7);
  for (std::int64_t i = 0; rows.empty() && i < std::min(kQueries, index.count); ++i) {
    const auto point = static_cast<std::int32_t>(random_bits(key, static_cast<std::uint64_t>(i)) %
                                                 static_cast<std::uint64_t>(index.count));
    queries.push_back(Query{QueryDistance(index, index.vectors + point * index.stride), point, {}});
  }
  return queries;
}

/// The true neighbours of all queries, unless the program is asked to stop.
void find_neighbours(const HnswIndex& index, std::size_t wanted, std::vector<Query>& queries) {
  for (std::int64_t first = 0; first < index.count && !asked_to_stop(); first += kRecallBlock) {
    for (Query& query : queries) {
      for (std::int64_t id = first; id < std::min(first + kRecallBlock, index.count); ++id) {
        const HnswHit hit{query.distance(static_cast<std::int32_t>(id)), static_cast<std::int32_t>(id)};
        if (hit.id == query.self) continue;
        if (query.best.size() == wanted) {
          if (!(hit < query.best.front())) continue;
          std::pop_heap(query.best.begin(), query.best.end());
          query.best.pop_back();
        }
        query.best.push_back(hit);
        std::push_heap(query.best.begin(), query.best.end());
      }
    }
  }
}

HnswRecall measure_ef(const HnswIndex& index, std::int64_t ef, std::size_t wanted,
                      const std::vector<Query>& queries) {
  HnswWalk walk;
  double hits = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const Query& query : queries) {
    search_graph(index, query.distance, ef, walk);
    const float farthest = query.best.front().distance;
    std::size_t looked_at = 0;
    for (const HnswHit& hit : walk.best) {
      if (hit.id == query.self) continue;
      if (looked_at++ == wanted || hit.distance > farthest) break;
      ++hits;
    }
  }
  const auto count = static_cast<double>(queries.size());
  return HnswRecall{.ef = ef,
                    .recall = hits / (count * static_cast<double>(wanted)),
                    .distances = static_cast<double>(walk.distances) / count,
                    .expanded = static_cast<double>(walk.expanded) / count,
                    .seconds = seconds_since(start) / count};
}

}  // namespace

Result<RecallTable> measure_recall(const HnswIndex& index, std::span<const float> rows) {
  RecallTable table;
  std::vector<Query> queries = make_queries(index, rows);
  const auto wanted = static_cast<std::size_t>(std::min(kNeighbours, index.count - (rows.empty() ? 1 : 0)));
  if (queries.empty() || wanted == 0) return table;
  const auto start = std::chrono::steady_clock::now();
  find_neighbours(index, wanted, queries);
  table.exact_seconds = seconds_since(start) / static_cast<double>(queries.size());
  for (const std::int64_t ef : kEfs) {
    if (asked_to_stop()) {
      return Error{Code::interrupted, "interrupted before the recall of an index was known", "run it again"};
    }
    table.lines.push_back(measure_ef(index, ef, wanted, queries));
    if (table.lines.back().recall == 1 || ef >= index.count) break;
  }
  return table;
}

}  // namespace fulcrum::ops
