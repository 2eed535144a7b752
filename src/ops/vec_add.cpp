// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// vec_add: one vector to another, or many small ones in one call. In packed form the vectors lie one behind the
// other, which is the plain op on B * n elements; in list form a, b and out are arrays of B pointers, len holds the
// lengths and n is their sum.
#include <fulcrum/ops/elementwise.h>

#include <fmt/format.h>

#include "ops/support/elementwise.h"

namespace fulcrum::ops {
namespace {

enum Pointer { kA, kB, kLen, kOut };

bool is_list(const Args& args) { return args.scalar[0].i == 1; }

std::int64_t elements(const Args& args) {
  return is_list(args) ? args.dim[0] : product(args.dim[1], args.dim[0]);
}

std::int64_t extent(const Args& args, int slot) {
  if (slot == kLen) return is_list(args) ? args.dim[1] : 0;
  return elements(args);
}

Status validate(const Args& args) {
  if (is_list(args) && args.dim[1] == 0 && args.dim[0] > 0) {
    return Error{Code::invalid_shape, fmt::format("n={} of vec_add has no vector to be in: B=0", args.dim[0]),
                 "in list form n is the sum of the B lengths"};
  }
  return {};
}

Work work(const Args& args) {
  const auto n = static_cast<double>(elements(args));
  return Work{.flops = n,
              .issue_slots = n,
              .read_bytes = 8 * n,
              .write_bytes = 4 * n,
              .link_in_bytes = 8 * n,
              .link_out_bytes = 4 * n};
}

/// Rounding the fp64 sum of two f32 to f32 is the correctly rounded f32 sum: 53 bits are more than 2 * 24 + 1.
Truth sum(float a, float b) { return Truth{.value = static_cast<float>(static_cast<double>(a) + b)}; }

void reference(const Args& args, int, std::span<const std::int64_t> index, Truth* truth) {
  if (!is_list(args)) {
    for (std::size_t i = 0; i < index.size(); ++i) {
      truth[i] = sum(args.in<float>(kA)[index[i]], args.in<float>(kB)[index[i]]);
    }
    return;
  }
  // Indices count through the vectors in order and come sorted.
  const auto* lengths = args.in<std::int64_t>(kLen);
  std::int64_t vector = 0;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    while (index[i] - first >= lengths[vector]) first += lengths[vector++];
    const std::int64_t at = index[i] - first;
    truth[i] = sum(args.in<const float*>(kA)[vector][at], args.in<const float*>(kB)[vector][at]);
  }
}

}  // namespace

Op vec_add() {
  return Op{
      .name = "vec_add",
      .summary = "out[i] = a[i] + b[i]",
      .category = "streaming",
      .slots = {in("a", uniform(-1, 1)), in("b", uniform(-1, 1)), in_optional("len", DType::i64), out("out"),
                dim("n"), dim("B", 1), choice("layout", {"packed", "list"})},
      .extent = extent,
      .validate = validate,
      .work = work,
      .reference = reference,
      .in_place = true,
      .slice_dim = "n",
      .slice_unit = kSliceElements,
      .split = Split{.phases = 1,
                     .pieces =
                         [](const Args& args, int) {
                           return is_list(args) ? args.dim[1] : divide_up(elements(args), kElementPiece);
                         }},
      .symbols = {"*vec_add*", "*vector_add*", "*vecadd*", "cblas_saxpy", "saxpy_"},
      .default_sizes = {"n=1000", "n=10000", "n=100000", "n=1000000", "n=16777216", "n=268435456",
                        "n=16,B=100", "n=1000,B=100", "n=1000,B=1000", "n=64,B=10000"},
      .reference_cost = [](const Args&) { return 5.0; },
      .list_lengths = [](const Args& args) { return is_list(args) ? static_cast<int>(kLen) : -1; },
  };
}

}  // namespace fulcrum::ops
