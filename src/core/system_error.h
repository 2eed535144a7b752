// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What the operating system refused, in words, with what to do about it; and a descriptor that closes itself.
#pragma once

#include <fulcrum/core.h>
#include <unistd.h>

namespace fulcrum {

/// "cannot <action> <path>: <reason>" for errno `number`, with a hint for the causes that people meet.
Error system_error(std::string_view action, const std::filesystem::path& path, int number);

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      number_ = other.release();
    }
    return *this;
  }
  ~Descriptor() { reset(); }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

/// Writes all of it; 0, or the errno that stopped it.
int write_all(int descriptor, std::string_view content);
/// The folder's entry for a new or renamed file reaches the disk; file systems that cannot do that are let
/// pass.
void sync_folder(const std::filesystem::path& folder);
/// The folder that holds `path`, "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace fulcrum
