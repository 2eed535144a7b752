// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory for probes: page aligned, in huge pages where the system gives them, not touched yet, so that the thread
// that writes a page first decides on which NUMA node it lies.
#pragma once

#include <fulcrum/core.h>

#include <utility>

namespace fulcrum::machine {

class Arena {
 public:
  static Result<Arena> make(std::int64_t bytes);
  Arena(Arena&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Arena& operator=(Arena&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Arena();
  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  Arena(std::byte* data, std::int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_;
  std::int64_t bytes_;
};

}  // namespace fulcrum::machine
