// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See dnn_attention_graph.h.
#include "backends/cuda/dnn_attention_graph.h"

#include <limits>

namespace fulcrum::backends::cuda {
namespace {

/// Query i sees key j where i + keys - queries >= j.
DnnId masked(DnnGraph& graph, const DnnAttentionSizes& sizes, DnnId scores) {
  const DnnId row = graph.inside(CUDNN_DATA_INT32, sizes.scores()),
              column = graph.inside(CUDNN_DATA_INT32, sizes.scores());
  graph.index_along(2, row, scores);
  graph.index_along(3, column, scores);
  DnnId last = row;
  if (sizes.keys != sizes.queries) {
    const DnnId sum = graph.inside(CUDNN_DATA_INT32, sizes.scores());
    graph.pointwise(CUDNN_POINTWISE_ADD, CUDNN_DATA_INT32, sum, row,
                    graph.value(static_cast<int32_t>(sizes.keys)));
    last = graph.inside(CUDNN_DATA_INT32, sizes.scores());
    graph.pointwise(CUDNN_POINTWISE_SUB, CUDNN_DATA_INT32, last, sum,
                    graph.value(static_cast<int32_t>(sizes.queries)));
  }
  const DnnId visible = graph.inside(CUDNN_DATA_BOOLEAN, sizes.scores());
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, visible, last, column);
  const DnnId result = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  // Before 9.10 the library took a mask of -Inf for a fault of its own.
  const float hidden =
      dnn().version < 91000 ? std::numeric_limits<float>::lowest() : -std::numeric_limits<float>::infinity();
  graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, result, scores, graph.value(hidden),
                  visible);
  return result;
}

/// exp(x - max) / sum, in the type of the operands, and max + log(sum).
void softmax(DnnGraph& graph, const DnnAttentionSizes& sizes, DnnId scores, DnnId weights, DnnId statistics) {
  const DnnId largest = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query()),
              below = graph.inside(CUDNN_DATA_FLOAT, sizes.scores()),
              power = graph.inside(CUDNN_DATA_FLOAT, sizes.scores()),
              sum = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query()),
              logarithm = graph.inside(CUDNN_DATA_FLOAT, sizes.per_query());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, largest, scores);
  graph.pointwise(CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, below, scores, largest);
  graph.pointwise(CUDNN_POINTWISE_EXP, CUDNN_DATA_FLOAT, power, below);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, power);
  graph.pointwise(CUDNN_POINTWISE_LOG, CUDNN_DATA_FLOAT, logarithm, sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, CUDNN_DATA_FLOAT, statistics, largest, logarithm);
  graph.pointwise(CUDNN_POINTWISE_DIV, CUDNN_DATA_FLOAT, weights, power, sum);
}

}  // namespace

void write_attention(DnnGraph& graph, const DnnAttentionSizes& sizes, cudnnDataType_t type,
                     bool has_statistics) {
  const DnnSizes key_strides = sizes.row_strides(sizes.keys);
  const DnnId q =
      graph.tensor(DnnPlace::input, type, sizes.rows(sizes.queries), sizes.row_strides(sizes.queries));
  const DnnId k = graph.tensor(DnnPlace::input, type, {sizes.batches, sizes.heads, sizes.d, sizes.keys},
                               {key_strides[0], key_strides[1], key_strides[3], key_strides[2]});
  const DnnId v = graph.tensor(DnnPlace::input, type, sizes.rows(sizes.keys), key_strides);
  const DnnId o =
      graph.tensor(DnnPlace::output, type, sizes.rows(sizes.queries), sizes.row_strides(sizes.queries));
  // Computed in any case: without it the library does not know the pattern.
  const DnnId lse = graph.tensor(has_statistics ? DnnPlace::output : DnnPlace::inside, CUDNN_DATA_FLOAT,
                                 sizes.per_query(), {sizes.heads * sizes.queries, sizes.queries, 1, 1});
  const DnnId products = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  graph.matmul(q, k, products);
  DnnId scores = graph.inside(CUDNN_DATA_FLOAT, sizes.scores());
  graph.pointwise(CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, scores, products, graph.value(sizes.scale));
  if (sizes.causal) scores = masked(graph, sizes, scores);
  const DnnId weights = graph.inside(type, sizes.scores());
  softmax(graph, sizes, scores, weights, lse);
  graph.matmul(weights, v, o);
}

}  // namespace fulcrum::backends::cuda
