// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a library's attention leaves undone: a row that sees a NaN or an Inf in Q, K or V has to be NaN throughout. An
// Inf in a key may score -Inf, which weighs nothing, and one in a value stays in its column.
#pragma once

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// A call, as both passes see it.
struct AttentionGuard {
  const uint16_t *k = nullptr, *v = nullptr;
  uint16_t* o = nullptr;
  const float* statistics = nullptr;  // [batches, heads, queries], the library's lse
  float* lse = nullptr;               // the caller's, which may be the same, or null
  int* first_bad = nullptr;  // as many as parts(): where the first such key of a part stands, or kNoKey
  int64_t batches = 0, heads = 0, queries = 0, keys = 0;
  int d = 0;
  bool causal = false, heads_first = true, is_bf16 = false;

  static constexpr int kPartKeys = 64;
  static constexpr int kNoKey = 0x7fffffff;
  constexpr int64_t parts_a_head() const { return (keys + kPartKeys - 1) / kPartKeys; }
  constexpr int64_t parts() const { return batches * heads * parts_a_head(); }
};

/// Looks for NaN and Inf among keys and values. Needs nothing of the attention.
fulcrum_status enqueue_guard_scan(const AttentionGuard& guard, cudaStream_t stream);

/// Behind a look at the keys and behind the attention: makes the rows NaN that see one. An Inf in a query shows in its
/// statistics, since all its scores are then infinite.
fulcrum_status enqueue_guard_patch(const AttentionGuard& guard, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
