// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_read: the sum of all bit patterns, four at a time.
#include <fulcrum/ops/probes.h>

#include <bit>

#include "backends/scalar/probe.h"

namespace fulcrum::backends::scalar::kernels {
namespace {

/// All passes over the elements [begin, end).
std::uint32_t sum_bits(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const auto* x = a.in<float>(0);
  const auto bits = [x](std::int64_t i) { return std::bit_cast<std::uint32_t>(x[i]); };
  std::uint32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (std::int64_t pass = 0; pass < a.scalar[0].i; ++pass) {
    std::int64_t i = begin;
    for (; i + 4 <= end; i += 4) {
      s0 += bits(i);
      s1 += bits(i + 1);
      s2 += bits(i + 2);
      s3 += bits(i + 3);
    }
    for (; i < end; ++i) s0 += bits(i);
    end_of_pass();
  }
  return (s0 + s1) + (s2 + s3);
}

fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t call = 0; call < count; ++call) {
    *a->out<std::int32_t>(1) = std::bit_cast<std::int32_t>(sum_bits(*a, 0, a->dim[0]));
  }
  return done();
}

void partial(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* part = static_cast<std::uint32_t*>(scratch) + begin;
  std::fill_n(part, end - begin, 0U);
  *part = sum_bits(*a, begin * ops::kProbePiece, std::min(end * ops::kProbePiece, a->dim[0]));
}

}  // namespace

std::span<const fulcrum_kernel> probe_read() {
  static const fulcrum_kernel kernels[] = {make_kernel(2, run, partial)};
  return kernels;
}

}  // namespace fulcrum::backends::scalar::kernels
