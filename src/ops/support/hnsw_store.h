// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Between an index and where it is kept: how one is made from hnswlib's, and the folder of saved ones.
#pragma once

#include "ops/support/hnsw_build.h"
#include "ops/support/hnsw_index.h"

namespace fulcrum::ops {

/// Checks rows, gives them length 1 where the metric wants it, and builds.
Result<HnswLibrary> build_library(std::span<const float> rows, std::int64_t dimension, HnswMetric metric);
/// `file` is where it was saved; empty: nowhere yet, so the library's object stays.
std::shared_ptr<const HnswIndex> index_from(HnswLibrary library, std::int64_t dimension, HnswMetric metric,
                                            const std::string& file);
/// The same index with a table. `plain` came from index_from().
std::shared_ptr<const HnswIndex> index_with(const HnswIndex& plain, RecallTable table);

/// Folder of saved indexes, made on first use.
Result<std::filesystem::path> index_folder();

}  // namespace fulcrum::ops
