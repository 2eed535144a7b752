// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How much local memory a thread of each kernel needs, read from code as it is loaded: CUPTI's records leave it at 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fulcrum::trace::inject {

class FrameSizes {
 public:
  /// Takes in the kernels of a cubin, an ELF file in memory; anything else is passed over.
  void add(const void* cubin, std::size_t bytes);
  /// Bytes a thread, by the kernel's mangled name; 0: none, or its code was loaded before we looked.
  std::uint32_t of(std::string_view kernel) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::uint32_t> bytes_;  // of those that need any
};

/// Of this process.
FrameSizes& frame_sizes();

}  // namespace fulcrum::trace::inject
