// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a library's attention leaves undone: a row that sees a NaN or an Inf in Q, K or V has to be NaN throughout. An
// Inf in a key may score -Inf, which weighs nothing, and one in a value stays in its column.
#pragma once

#include "backends/cuda/runtime.h"

namespace fulcrum::backends::cuda {

/// A call, as all passes see it.
struct AttentionGuard {
  const uint16_t *q = nullptr, *k = nullptr, *v = nullptr;
  uint16_t* o = nullptr;
  const float* statistics = nullptr;  // [batches, heads, queries], the library's lse
  float* lse = nullptr;               // the caller's, which may be the same, or null
  int* first_bad = nullptr;  // as many as parts(): where the first such key of a part stands, or kNoKey
  int64_t batches = 0, heads = 0, queries = 0, keys = 0;
  int d = 0;
  bool causal = false, heads_first = true, is_bf16 = false;

  static constexpr int kPartKeys = 64;
  static constexpr int kNoKey = 0x7fffffff;
  static constexpr int kWindow = 64, kMostD = 256;
  /// Whether enqueue_guard_check() can do it.
  bool has_check() const;
  constexpr int64_t parts_a_head() const { return (keys + kPartKeys - 1) / kPartKeys; }
  constexpr int64_t parts() const { return batches * heads * parts_a_head(); }
};

/// Behind the attention, and all there is to do: makes the rows NaN that see a NaN or an Inf. It reads the statistics and
/// the ends of each head, and keys and values only where these leave a doubt. What shows there:
///   - A NaN or an Inf in a query, and a NaN in a key, in the statistics of the rows that see it.
///   - One in a value in the last row of results, which sees all keys: what weighs nothing gives 0 * Inf, which is NaN.
///   - An Inf in a key in the statistics of a row whose score it makes +Inf or NaN. Rows whose query has the other sign
///     in that column score -Inf, and nothing shows. Among the last kWindow queries of a head both signs occur in every
///     column, or a zero: then one of them shows it, as all of them see the key. Where that is not so, and for the last
///     keys under a mask, which not all of these queries see, the keys themselves are read.
fulcrum_status enqueue_guard_check(const AttentionGuard& guard, cudaStream_t stream);

/// The same in two passes, for other addresses and for few queries. The first looks for NaN and Inf among keys and
/// values. Needs nothing of the attention.
fulcrum_status enqueue_guard_scan(const AttentionGuard& guard, cudaStream_t stream);

/// Behind a look at the keys and behind the attention: makes the rows NaN that see one. An Inf in a query shows in its
/// statistics, since all its scores are then infinite.
fulcrum_status enqueue_guard_patch(const AttentionGuard& guard, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
