// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See workspace.h.
#include "backends/simd/workspace.h"

#include <hwy/aligned_allocator.h>

namespace fulcrum::backends::simd {

float* workspace(std::size_t floats) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  thread_local std::size_t capacity = 0;
  if (floats > capacity) {
    capacity = 0;
    memory = hwy::AllocateAligned<float>(floats);
    if (memory) capacity = floats;
  }
  return memory.get();
}

}  // namespace fulcrum::backends::simd
