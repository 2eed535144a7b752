// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Vectors of numbers that are the same in every run.
#pragma once

#include <fulcrum/ops.h>

#include <cstdint>
#include <vector>

namespace fulcrum::test {

inline std::vector<float> drawn(std::size_t n, std::uint64_t key, float low = -1, float high = 1) {
  std::vector<float> result(n);
  for (std::size_t i = 0; i < n; ++i) result[i] = ops::random_uniform(key, i, low, high);
  return result;
}

}  // namespace fulcrum::test
