// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What all element-wise f32 ops share: one size n, pieces of a cache line, and a reference that is one function of
// one fp64 value.
#pragma once

#include <fulcrum/ops/elementwise.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace fulcrum::ops {

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return value / by + (value % by != 0);
}

/// a * b, or -1 when it overflows; -1 in stays -1.
inline std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &result) ? -1 : result;
}

/// The sizes of a vector that every streaming op is measured at.
inline std::vector<std::string_view> vector_sizes() {
  return {"n=1000", "n=10000", "n=100000", "n=1000000", "n=16777216", "n=268435456"};
}

/// Element-wise calls are cut where a cache line of f32 and a vector of any instruction set ends.
inline constexpr std::int64_t kSliceElements = 32;

/// What a unary op may be off: nothing, or so many units in the last place.
inline double exact(double) { return 0; }
template <int kUlps>
double within_ulps(double truth) {
  return ulps(kUlps, truth);
}

/// The truth of a unary op: kTruth(x) or kTruth(args, x) is its fp64 value, kAllowed(truth) the error it may show.
template <auto kTruth, double (*kAllowed)(double)>
void unary_reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  const auto* x = args.in<float>(0);
  for (std::size_t i = 0; i < index.size(); ++i) {
    if constexpr (std::is_invocable_v<decltype(kTruth), double>) {
      truth[i].value = kTruth(x[index[i]]);
    } else {
      truth[i].value = kTruth(args, x[index[i]]);
    }
    truth[i].allowed = kAllowed(truth[i].value);
  }
}

/// Work of a unary op by what one element costs.
template <int kFlops, int kSlots>
Work unary_work(const Args& args) {
  const auto n = static_cast<double>(args.dim[0]);
  return Work{.flops = kFlops * n,
              .issue_slots = kSlots * n,
              .read_bytes = 4 * n,
              .write_bytes = 4 * n,
              .link_in_bytes = 4 * n,
              .link_out_bytes = 4 * n};
}

/// A parameter as kernels see it.
inline float parameter(const Args& args, int number) { return static_cast<float>(args.scalar[number].f); }

/// Everything of a unary op but its name, formula, reference, work and symbols; parameters are further slots.
inline Op unary() {
  return Op{
      .category = "streaming",
      .slots = {in("x", uniform(-4, 4)), out("out"), dim("n")},
      .extent = [](const Args& args, int) { return args.dim[0]; },
      .in_place = true,
      .slice_dim = "n",
      .slice_unit = kSliceElements,
      .split = Split{.phases = 1,
                     .pieces = [](const Args& args, int) { return divide_up(args.dim[0], kElementPiece); }},
      .default_sizes = vector_sizes(),
      .reference_cost = [](const Args&) { return 20.0; },
  };
}

}  // namespace fulcrum::ops
