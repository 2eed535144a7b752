// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of Highway's library that our kernels call, for a machine that is always aarch64 with NEON: Debian has the
// library for the host only, and its headers are all that a cross build can take from there.
#include <hwy/aligned_allocator.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace hwy {
namespace {
int64_t g_forced_targets = 0;
}

int64_t SupportedTargets() { return g_forced_targets != 0 ? g_forced_targets : HWY_NEON; }
void SetSupportedTargetsForTest(int64_t targets) { g_forced_targets = targets; }

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

void* AllocateAlignedBytes(size_t bytes, AllocPtr, void*) {
  return std::aligned_alloc(HWY_ALIGNMENT, (bytes + HWY_ALIGNMENT - 1) / HWY_ALIGNMENT * HWY_ALIGNMENT);
}
void FreeAlignedBytes(const void* pointer, FreePtr, void*) { std::free(const_cast<void*>(pointer)); }
void AlignedDeleter::DeleteAlignedArray(void* pointer, FreePtr, void*, ArrayDeleter) { std::free(pointer); }

void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::abort();
}

}  // namespace hwy
