// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory of the calling thread for scalar kernels that keep rows of an intermediate image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace fulcrum::backends::scalar {

/// At least `bytes` bytes, valid until this thread's next call; kept for later calls. Null when memory is short: the
/// caller must have a way without it.
inline std::uint8_t* scratch(std::size_t bytes) {
  thread_local std::unique_ptr<std::uint8_t[]> memory;
  thread_local std::size_t capacity = 0;
  if (bytes > capacity) {
    capacity = 0;
    memory.reset(new (std::nothrow) std::uint8_t[bytes]);
    if (memory) capacity = bytes;
  }
  return memory.get();
}

}  // namespace fulcrum::backends::scalar
