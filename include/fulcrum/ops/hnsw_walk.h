// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The walk of hnsw_search as its authors describe it, with two heaps: what the scalar kernel runs, what recall tables
// are measured with and what every other kernel's recall is held against.
#pragma once

#include <fulcrum/ops/hnsw_search.h>

#include <algorithm>
#include <vector>

namespace fulcrum::ops {

struct HnswHit {
  float distance = 0;
  std::int32_t id = 0;
  bool operator<(const HnswHit& other) const {
    return distance != other.distance ? distance < other.distance : id < other.id;
  }
};

/// Memory of walks on one thread, and what they did.
struct HnswWalk {
  std::vector<HnswHit> best;        // a heap, the worst on top; in order when a search is done
  std::vector<HnswHit> candidates;  // a heap, the nearest on top
  std::vector<std::uint32_t> seen;  // a node was seen in this search when it holds this search's number
  std::uint32_t search = 0;
  std::int64_t distances = 0, expanded = 0;

  void begin(std::int64_t nodes) {
    if (seen.size() != static_cast<std::size_t>(nodes) || ++search == 0) {
      seen.assign(static_cast<std::size_t>(nodes), 0);
      search = 1;
    }
    best.clear();
    candidates.clear();
  }
  bool first_visit(std::int32_t node) {
    auto& mark = seen[static_cast<std::size_t>(node)];
    return mark != search && (mark = search, true);
  }
};

/// From the entry down to layer 1: the nearest node that its neighbours do not improve on.
template <class Distance>
HnswHit descend(const HnswIndex& index, const Distance& distance, HnswWalk& walk) {
  HnswHit nearest{distance(index.entry), index.entry};
  ++walk.distances;
  for (std::int32_t layer = index.top_layer; layer > 0; --layer) {
    for (std::int32_t before = -1; before != nearest.id;) {
      before = nearest.id;
      ++walk.expanded;
      const std::int32_t* list =
          index.upper_links + (index.upper_begin[before] + layer - 1) * kHnswUpperLinks;
      for (std::int64_t i = 0; i < kHnswUpperLinks && list[i] != before; ++i) {
        ++walk.distances;
        nearest = std::min(nearest, HnswHit{distance(list[i]), list[i]});
      }
    }
  }
  return nearest;
}

/// The `ef` nearest that a greedy walk finds, in order, in walk.best. Fewer than ef when the graph has no more to give.
template <class Distance>
void search_graph(const HnswIndex& index, const Distance& distance, std::int64_t ef, HnswWalk& walk) {
  const auto farther = [](const HnswHit& a, const HnswHit& b) { return b < a; };
  walk.begin(index.count);
  const auto offer = [&](HnswHit hit) {
    if (walk.best.size() == static_cast<std::size_t>(ef)) {
      if (!(hit < walk.best.front())) return;
      std::pop_heap(walk.best.begin(), walk.best.end());
      walk.best.pop_back();
    }
    walk.best.push_back(hit);
    std::push_heap(walk.best.begin(), walk.best.end());
    walk.candidates.push_back(hit);
    std::push_heap(walk.candidates.begin(), walk.candidates.end(), farther);
  };
  const HnswHit start = descend(index, distance, walk);
  walk.first_visit(start.id);
  offer(start);
  while (!walk.candidates.empty()) {
    const HnswHit nearest = walk.candidates.front();
    if (walk.best.front() < nearest) break;
    std::pop_heap(walk.candidates.begin(), walk.candidates.end(), farther);
    walk.candidates.pop_back();
    ++walk.expanded;
    const std::int32_t* list = index.links + nearest.id * kHnswLinks;
    for (std::int64_t i = 0; i < kHnswLinks && list[i] != nearest.id; ++i) {
      if (!walk.first_visit(list[i])) continue;
      ++walk.distances;
      offer(HnswHit{distance(list[i]), list[i]});
    }
  }
  std::sort_heap(walk.best.begin(), walk.best.end());
}

/// The `count` nearest of all vectors, in order, in walk.best.
template <class Distance>
void search_all(const HnswIndex& index, const Distance& distance, std::int64_t count, HnswWalk& walk) {
  walk.best.clear();
  for (std::int32_t id = 0; id < index.count; ++id) {
    const HnswHit hit{distance(id), id};
    if (walk.best.size() == static_cast<std::size_t>(count)) {
      if (!(hit < walk.best.front())) continue;
      std::pop_heap(walk.best.begin(), walk.best.end());
      walk.best.pop_back();
    }
    walk.best.push_back(hit);
    std::push_heap(walk.best.begin(), walk.best.end());
  }
  std::sort_heap(walk.best.begin(), walk.best.end());
}

}  // namespace fulcrum::ops
