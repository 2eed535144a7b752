// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel's text files under a root, "/" or a recorded tree. Any of them may be missing: containers hide some,
// architectures lack others.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::machine {

class SystemFiles {
 public:
  explicit SystemFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// The file without white space at its ends; nothing when it cannot be read.
  std::optional<std::string> text(const std::string& path) const;
  std::string text_or(const std::string& path, std::string_view otherwise) const;
  std::optional<std::int64_t> number(const std::string& path) const;
  /// Names in a folder, sorted; empty when it is not there.
  std::vector<std::string> names(const std::string& folder) const;

 private:
  std::filesystem::path root_;
};

/// Without white space at both ends.
std::string_view trim(std::string_view text);
/// "0-3,8" as the CPUs 0 1 2 3 8; what is no such list gives what could be read before the error.
std::vector<int> parse_cpu_list(std::string_view text);
/// "32K", "1M", "2G" or plain bytes; nothing when it is no size.
std::optional<std::int64_t> parse_cache_size(std::string_view text);
/// The choice in brackets: "always [madvise] never" gives "madvise".
std::string bracketed(std::string_view text);
/// Value of "Key:   1234 kB" in bytes; 0 when the key is not there.
std::int64_t meminfo_bytes(std::string_view text, std::string_view key);

}  // namespace fulcrum::machine
