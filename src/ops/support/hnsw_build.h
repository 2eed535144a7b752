// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The graph of an index as hnswlib builds, saves and loads it. The one place that knows hnswlib.
#pragma once

#include <fulcrum/ops/hnsw_search.h>

#include <vector>

namespace fulcrum::ops {

/// What hnswlib made, copied out of it: see HnswIndex for the lists.
struct HnswGraph {
  std::vector<std::int32_t> links, upper_begin, upper_links;
  std::int32_t entry = 0, top_layer = 0;
};

/// A graph, its vectors (rows of `dimension` floats, without gaps) and the hnswlib object behind them.
class HnswLibrary {
 public:
  static Result<HnswLibrary> build(std::span<const float> rows, std::int64_t dimension, HnswMetric metric);
  static Result<HnswLibrary> load(const std::filesystem::path& file, std::int64_t dimension,
                                  HnswMetric metric);
  HnswLibrary(HnswLibrary&&) noexcept;
  HnswLibrary& operator=(HnswLibrary&&) noexcept;
  ~HnswLibrary();

  std::int64_t count() const;
  std::vector<float> rows() const;
  HnswGraph graph() const;
  Status save(const std::filesystem::path& file) const;

 private:
  struct State;
  explicit HnswLibrary(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fulcrum::ops
