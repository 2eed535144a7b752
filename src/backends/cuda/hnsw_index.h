// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Indexes of hnsw_search in the device's memory: uploaded by the first plan that needs one, shared by all plans over the
// same index, gone with the last of them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda::hnsw {

struct DeviceIndex {
  std::int64_t count = 0, dimension = 0, stride = 0;
  int metric = 0;  // 0: l2sq, 1: ip, 2: cosine
  std::int32_t entry = 0, top_layer = 0;
  Scratch vectors, lower, upper_begin, upper;

  /// What plans add when they first want it.
  mutable std::mutex mutex;
  mutable bool has_halves = false;
  mutable Scratch halves, extremes;  // see hnsw_half.h
  mutable std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, int>
      fastest;  // way by queries, k and ef
};

/// The index behind `prepared` (a fulcrum::ops::HnswIndex).
fulcrum_status device_index(const void* prepared, std::shared_ptr<const DeviceIndex>* index);

/// Candidates that a walk keeps; 0: only a comparison with all vectors will do. See ops::hnsw_ef().
std::int64_t places_of(const void* prepared, std::int64_t k, std::int64_t ef, double recall_target);

}  // namespace fulcrum::backends::cuda::hnsw
