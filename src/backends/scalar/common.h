// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What scalar kernels share: their name for the instruction set, element-wise kernels from one range function, and
// sums of products that keep the error bound of ops that promise one.
#pragma once

#include <fulcrum/ops/elementwise.h>

#include <fulcrum/backends.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/table.h"

namespace fulcrum::backends::scalar {

inline const char* isa() { return "scalar"; }

/// One kernel, "default", from run() and partial() of a file.
inline fulcrum_kernel make_kernel(std::int32_t level, decltype(fulcrum_kernel::run) run,
                                  decltype(fulcrum_kernel::partial) partial) {
  return fulcrum_kernel{.variant = "default", .level = level, .isa = isa, .run = run, .partial = partial};
}

/// Element-wise over x (pointer 0) into out (pointer 1), n = dim 0; kFunction(x), or kFunction(args, x).
template <auto kFunction>
void map(const fulcrum_args& a, std::int64_t begin, std::int64_t end) {
  const auto* x = a.in<float>(0);
  auto* out = a.out<float>(1);
  for (std::int64_t i = begin; i < end; ++i) {
    if constexpr (std::is_invocable_v<decltype(kFunction), float>) {
      out[i] = kFunction(x[i]);
    } else {
      out[i] = kFunction(a, x[i]);
    }
  }
}

template <auto kFunction>
fulcrum_status run_map(const fulcrum_args* a, void*, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) map<kFunction>(*a, 0, a->dim[0]);
  return done();
}

template <auto kFunction>
void partial_map(const fulcrum_args* a, std::int32_t, std::int64_t begin, std::int64_t end, void*) {
  map<kFunction>(*a, begin * ops::kElementPiece, std::min(end * ops::kElementPiece, a->dim[0]));
}

/// Sum of value(i) over [first, last) in four running sums, so that an addition need not wait for the one before it.
template <class Value>
float sum_in_four(std::int64_t first, std::int64_t last, const Value& value) {
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::int64_t i = first;
  for (; i + 4 <= last; i += 4) {
    s0 += value(i);
    s1 += value(i + 1);
    s2 += value(i + 2);
    s3 += value(i + 3);
  }
  for (; i < last; ++i) s0 += value(i);
  return (s0 + s1) + (s2 + s3);
}

/// Sum of a[i] * b[i] over up to 4096 elements: blocks of 64 and then their sums, so that no term goes through more
/// than 40 additions.
inline float dot_product(const float* a, const float* b, std::int64_t n) {
  constexpr std::int64_t kBlock = 64;
  const auto block = [&](std::int64_t number) {
    const std::int64_t first = number * kBlock;
    return sum_in_four(first, std::min(first + kBlock, n), [&](std::int64_t i) { return a[i] * b[i]; });
  };
  return sum_in_four(0, (n + kBlock - 1) / kBlock, block);
}

}  // namespace fulcrum::backends::scalar
