// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory with a guard of known bytes on either side, for the buffers of a Problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace fulcrum::ops {

class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  /// Data starts on a page; empty() stays true when there is no memory.
  explicit GuardedBuffer(std::int64_t bytes);

  bool empty() const { return !memory_; }
  std::byte* data() const { return memory_.get() ? memory_.get() + kGuardBytes : nullptr; }
  std::int64_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {data(), static_cast<std::size_t>(bytes_)}; }
  bool guards_intact() const;

  static constexpr std::int64_t kGuardBytes = 4096;

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t bytes_ = 0;
};

/// Tells changed bytes from unchanged ones; no more is asked of it than to be quick.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

/// Bytes that a program may still take without swapping; 0 when the system does not say.
std::int64_t free_memory_bytes();

}  // namespace fulcrum::ops
