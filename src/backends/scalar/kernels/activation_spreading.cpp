// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// activation_spreading: every row of every hop, one after the other.
#include <fulcrum/ops/activation_spreading.h>

#include <memory>
#include <new>

#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

/// What nodes pass on: of this hop and of the one before.
fulcrum_status plan(const fulcrum_kernel*, const fulcrum_args* a, void** made) {
  *made = new (std::nothrow) float[2 * static_cast<std::size_t>(a->dim[0]) + 1];
  if (!*made) return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "no memory for what nodes pass on"};
  return done();
}

void drop(void* plan) { delete[] static_cast<float*>(plan); }

void spread(const fulcrum_args& a) {
  const auto& graph = *static_cast<const ops::SpreadingGraph*>(a.prepared);
  const ops::SpreadingRule rule(a);
  const float* from = a.in<float>(0);
  float* to = static_cast<float*>(a.plan);
  float* spare = to + graph.nodes;
  float* activation = a.out<float>(1);
  for (std::int64_t i = 0; i < graph.nodes; ++i) activation[i] = rule.include_source ? from[i] : 0;
  for (std::int64_t hop = 0; hop < rule.hops; ++hop) {
    for (std::int64_t i = 0; i < graph.nodes; ++i) {
      to[i] = ops::spread_to(ops::sum_of_row(graph, from, i), rule, activation[i]);
    }
    from = to;
    std::swap(to, spare);
  }
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) spread(*a);
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> activation_spreading() {
  static const fulcrum_kernel kernels[] = {
      {.variant = "default", .level = 2, .isa = isa, .plan = plan, .drop = drop, .run = run}};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
