// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_latency: one load after another; the address of each is the value of the one before.
#include "backends/scalar/common.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const auto* next = a->in<std::int64_t>(0);
  const std::int64_t hops = a->dim[0] == 0 ? 0 : a->scalar[0].i > 0 ? a->scalar[0].i : a->dim[0];
  for (std::int64_t call = 0; call < count; ++call) {
    std::int64_t at = *a->in<std::int64_t>(1);
    for (std::int64_t hop = 0; hop < hops; ++hop) at = next[at];
    *a->out<std::int64_t>(2) = at;
  }
  return done();
}

}  // namespace

std::span<const fulcrum_kernel> probe_latency() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, nullptr)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
