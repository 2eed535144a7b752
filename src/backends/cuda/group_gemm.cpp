// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See group_gemm.h: which products it is for.
#include "backends/cuda/group_gemm.h"

#include <limits>

#include "backends/cuda/tensor_map.h"

namespace fulcrum::backends::cuda {

bool group_takes(const Gemm& g, const GemmOperands& operands) {
  constexpr int64_t kMostEntries = 65535, kMost = std::numeric_limits<int32_t>::max() / 16, kChunkBytes = 16;
  const auto bits = reinterpret_cast<uintptr_t>(operands.a) | reinterpret_cast<uintptr_t>(operands.b) |
                    reinterpret_cast<uintptr_t>(operands.c);
  const int64_t tiles = (g.m / kGroupTile + 2) * (g.n / kGroupTile + 2);
  const int64_t vector = kChunkBytes / static_cast<int64_t>(bytes_of(g.element));
  const bool is_for_it = available() && device().major == 9 && device().minor == 0 && device().clusters;
  return is_for_it && bits % kChunkBytes == 0 && g.k > 0 && g.k < kMost && g.m < kMost && g.n < kMost &&
         g.k % vector == 0 && g.n % vector == 0 && g.batch <= kMostEntries && tiles <= kMost && has_maps();
}

int group_split_for(const Gemm& g) {
  constexpr int64_t kDepth = 64;
  const int64_t tiles = (g.m + kGroupTile - 1) / kGroupTile * ((g.n + kGroupTile - 1) / kGroupTile) * g.batch;
  return tiles * 2 <= device().sms && g.k > kDepth ? 2 : 1;
}

}  // namespace fulcrum::backends::cuda
