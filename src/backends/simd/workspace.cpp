// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See workspace.h.
#include "backends/simd/workspace.h"

#include <memory>
#include <new>

namespace fulcrum::backends::simd {
namespace {

constexpr std::align_val_t kAlignment{128};

struct Free {
  void operator()(void* memory) const { ::operator delete(memory, kAlignment); }
};

}  // namespace

void* workspace_bytes(std::size_t bytes) {
  thread_local std::unique_ptr<void, Free> memory;
  thread_local std::size_t capacity = 0;
  if (bytes > capacity) {
    capacity = 0;
    // Not one byte more than was asked for, so that sanitizers see those who write behind it.
    memory.reset(::operator new(bytes, kAlignment, std::nothrow));
    if (memory) capacity = bytes;
  }
  return memory.get();
}

}  // namespace fulcrum::backends::simd
