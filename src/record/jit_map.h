// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of generated code, from the map file that a runtime writes while it runs: /tmp/perf-PID.map, one line
// "START SIZE name" a function, in hexadecimal. Files grow, so one is read on where the last look ended.
#pragma once

#include <fulcrum/core.h>
#include <sys/types.h>

#include <map>

namespace fulcrum::record {

class JitMap {
 public:
  explicit JitMap(pid_t pid);
  struct Entry {
    std::uint64_t begin = 0, end = 0;
    std::string name;
    /// Python's trampolines, which keep 8 bytes between them and their return address.
    bool python() const { return name.starts_with("py::"); }
  };
  /// Looks into the file again when the address is not known.
  const Entry* find(std::uint64_t address);
  bool empty() const { return by_begin_.empty(); }

  /// Takes in lines; returns how many bytes of whole lines there were.
  std::size_t add_lines(std::string_view text);

 private:
  void read_on();
  std::filesystem::path path_;
  std::uint64_t read_bytes_ = 0, looked_ns_ = 0;
  std::map<std::uint64_t, Entry> by_begin_;
};

}  // namespace fulcrum::record
