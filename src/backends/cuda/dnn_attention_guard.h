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
  const float* statistics = nullptr;  // [batches, heads, queries], the library's lse; a check does without
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

/// Behind the attention, and all there is to do: makes the rows NaN that see a NaN or an Inf. It reads the ends of each
/// head, the statistics if there are any, and whole operands only where these leave a doubt. What shows there:
///   - A NaN in a query or in a key makes all weights of the rows that see it NaN: their results are NaN already, and so
///     are their statistics. So does a score of +Inf.
///   - One in a value shows in the last row of results, which sees all keys: what weighs nothing gives 0 * Inf, a NaN.
///   - An Inf in a key scores +Inf or NaN with queries of one sign or zero in its column, but -Inf with the others, where
///     nothing shows. Among the last kWindow queries of a head both signs occur in every column: then one of them shows
///     it, as all of them see the key. Where that is not so, and for the last keys under a mask, which not all of these
///     queries see, the keys themselves are read.
///   - An Inf in a query is in its statistics. Without these: where among the first kWindow keys both signs occur in every
///     column, it scores +Inf or NaN with one of them. Where that is not so, and for the first queries under a mask,
///     which do not see all of these keys, the queries themselves are read.
fulcrum_status enqueue_guard_check(const AttentionGuard& guard, cudaStream_t stream);

/// The same in two passes, for other addresses and for few queries. The first looks for NaN and Inf among keys and
/// values. Needs nothing of the attention.
fulcrum_status enqueue_guard_scan(const AttentionGuard& guard, cudaStream_t stream);

/// Behind a look at the keys and behind the attention: makes the rows NaN that see one. An Inf in a query shows in its
/// statistics, since all its scores are then infinite.
fulcrum_status enqueue_guard_patch(const AttentionGuard& guard, cudaStream_t stream);

}  // namespace fulcrum::backends::cuda
