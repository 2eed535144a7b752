// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention as an operation graph of cuDNN's.
#pragma once

#include <cmath>

#include "backends/cuda/dnn_graph.h"

namespace fulcrum::backends::cuda {

/// The arguments of a call by name.
struct DnnAttentionSizes {
  int64_t batches, heads, queries, keys, d;
  bool causal, heads_first;
  float scale;

  explicit DnnAttentionSizes(const fulcrum_args& a)
      : batches(a.dim[0]),
        heads(a.dim[1]),
        queries(a.dim[2]),
        keys(a.dim[3]),
        d(a.dim[4]),
        causal(a.scalar[0].i == 1),
        heads_first(a.scalar[2].i == 0),
        scale(static_cast<float>(a.scalar[1].f > 0 ? a.scalar[1].f : 1 / std::sqrt(static_cast<double>(d)))) {
  }

  DnnSizes rows(int64_t length) const { return {batches, heads, length, d}; }
  DnnSizes row_strides(int64_t length) const {
    if (heads_first) return {heads * length * d, length * d, d, 1};
    return {length * heads * d, d, heads * d, 1};
  }
  DnnSizes scores() const { return {batches, heads, queries, keys}; }
  DnnSizes per_query() const { return {batches, heads, queries, 1}; }
};

/// Spells it out (product, scale, mask, the parts of a softmax, product): the library knows the pattern and answers
/// with one fused kernel. Operands in the order Q, K, V, O and, with statistics, lse.
void write_attention(DnnGraph& graph, const DnnAttentionSizes& sizes, cudnnDataType_t type,
                     bool has_statistics);

}  // namespace fulcrum::backends::cuda
