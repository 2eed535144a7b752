// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading as a loop over a compressed graph: every edge in every hop, sums in stored order.
#include <fulcrum/ops/activation_spreading.h>

#include "loops/loops.h"

namespace fulcrum::peers::loops {
namespace {

using Values = std::vector<float>;

fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** plan) {
  if (!a->prepared) return {FULCRUM_UNSUPPORTED, "the loop needs the prepared graph"};
  *plan = new Values(static_cast<std::size_t>(2 * a->dim[0]));
  return done();
}
void drop(void* plan) { delete static_cast<Values*>(plan); }

void activation_spreading(const fulcrum_args& a) {
  const auto& graph = *static_cast<const ops::SpreadingGraph*>(a.prepared);
  const ops::SpreadingRule rule(a);
  const std::int64_t n = a.dim[0];
  float* memory = static_cast<Values*>(a.plan)->data();
  float* out = a.out<float>(1);
  const float* from = a.in<float>(0);
  for (std::int64_t i = 0; i < n; ++i) out[i] = rule.include_source ? from[i] : 0;
  for (std::int64_t hop = 0; hop < rule.hops; ++hop) {
    float* to = memory + hop % 2 * n;
    for (std::int64_t row = 0; row < n; ++row) {
      float sum = 0;
      for (std::int32_t e = graph.row_begin[row]; e < graph.row_begin[row + 1]; ++e)
        sum += graph.weight[e] * from[graph.source[e]];
      to[row] = ops::spread_to(sum, rule, out[row]);
    }
    from = to;
  }
}

}  // namespace

void add_graph(Kernels& kernels) {
  if (kFastMath) return;
  kernels.push_back(kernel<activation_spreading>("activation_spreading", kVariant));
  kernels.back().plan = plan;
  kernels.back().drop = drop;
}

}  // namespace fulcrum::peers::loops
