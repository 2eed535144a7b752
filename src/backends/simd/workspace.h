// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Scratch memory of the calling thread for kernels that copy blocks into a better layout.
#pragma once

#include <cstddef>

namespace fulcrum::backends::simd {

/// At least `bytes`, vector-aligned, valid until this thread's next call; allocated on first use and kept.
/// Null when memory is short: the caller must have a way without it.
void* workspace_bytes(std::size_t bytes);

/// The same for floats.
inline float* workspace(std::size_t floats) {
  return static_cast<float*>(workspace_bytes(floats * sizeof(float)));
}

}  // namespace fulcrum::backends::simd
