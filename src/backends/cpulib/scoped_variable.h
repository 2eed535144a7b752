// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Sets environment variables that a library reads while it is loaded, and takes them back: processes that are
// started later must not inherit them.
#pragma once

#include <fulcrum/core.h>

#include <cstdlib>

namespace fulcrum::backends::cpulib {

class ScopedVariable {
 public:
  /// The user's own value stands.
  ScopedVariable(const char* name, const std::string& value) : name_(name), ours_(!environment(name)) {
    if (ours_) setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (ours_) unsetenv(name_);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  bool ours_;
};

}  // namespace fulcrum::backends::cpulib
