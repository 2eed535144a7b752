// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A process that gets no more memory: large allocations throw, small ones still find room.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace fulcrum::testing {

/// While it lives. Not under sanitizers, which need address space of their own.
class NoMoreMemory {
 public:
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kPossible = false;
#else
  static constexpr bool kPossible = true;
#endif
  NoMoreMemory() {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kSpareBytes;
    setrlimit(RLIMIT_AS, &now);
  }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;
  ~NoMoreMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  static constexpr rlim_t kSpareBytes = 8 << 20;
  rlimit before_{};
};

}  // namespace fulcrum::testing
