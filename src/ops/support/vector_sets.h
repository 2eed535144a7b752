// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The vectors that searches are measured on, the same bits on every machine, and distances between them.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::ops {

enum class VectorSet : std::int64_t { clustered, gaussian };

/// Vectors of a set have ids; queries are the ids from here on.
inline constexpr std::uint64_t kFirstQuery = std::uint64_t{1} << 32;

/// Vectors first, first + 1, ... of a set, as many as fit `rows`. clustered: one of 1,000 centres, plus a combination of
/// 16 directions, plus noise. gaussian: every element drawn by itself.
void draw_vectors(VectorSet set, std::int64_t dimension, std::uint64_t first, std::span<float> rows);

/// 64-bit FNV-1a, continued from `hash`.
inline constexpr std::uint64_t kFnvStart = 0xCBF29CE484222325;
std::uint64_t fnv1a(std::span<const std::byte> bytes, std::uint64_t hash = kFnvStart);

/// Sum of (a - b)^2, and of a * b, in 32 running sums: the same bits on every machine.
using VectorProduct = float (*)(const float* a, const float* b, std::int64_t n);
VectorProduct squared_distance();
VectorProduct inner_product();

}  // namespace fulcrum::ops
