// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// errno as an Error, and the few file operations that both plain files and run records need.
#include "core/system_error.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace fulcrum {
namespace {

struct Advice {
  int number;
  std::string_view hint;
};
constexpr std::array kAdvice{
    Advice{ENOENT, "check the spelling; a folder that is missing must be made first"},
    Advice{ENOTDIR, "a part of the path is a file, not a folder"},
    Advice{EISDIR, "this is a folder: name a file in it"},
    Advice{EACCES, "you have no permission there: choose another path, or change its owner or mode"},
    Advice{EPERM, "you have no permission there: choose another path, or change its owner or mode"},
    Advice{EROFS, "the file system is read-only: choose another path"},
    Advice{ENOSPC, "the disk is full: free some space or choose another path"},
    Advice{EDQUOT, "your disk quota is used up: free some space or choose another path"},
    Advice{EFBIG, "the file has reached the size limit (ulimit -f): raise it or choose another path"},
    Advice{EMFILE, "too many files are open: raise the limit (ulimit -n)"},
    Advice{ENAMETOOLONG, "choose a shorter name"},
};

}  // namespace

Error system_error(std::string_view action, const std::filesystem::path& path, int number) {
  std::string hint;
  for (const Advice& advice : kAdvice) {
    if (advice.number == number) hint = advice.hint;
  }
  return Error{
      Code::environment,
      fmt::format("cannot {} {}: {}", action, path.string(), std::generic_category().message(number)),
      std::move(hint)};
}

int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor) ::fsync(descriptor.get());
}

}  // namespace fulcrum
