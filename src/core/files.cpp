// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole files: read at once, replaced at once. And the folder where fulcrum keeps its data.
#include <fcntl.h>
#include <fmt/format.h>
#include <fulcrum/core.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "core/system_error.h"

namespace fulcrum {
namespace {

namespace fs = std::filesystem;

/// A device, a pipe or a terminal cannot be replaced by a rename: it is written to.
Status write_through(const fs::path& path, std::string_view content) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return system_error("write", path, errno);
  if (const int error = write_all(file.get(), content)) return system_error("write", path, error);
  return {};
}

/// A name beside the target that no other process or thread has.
fs::path temporary_beside(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  return folder_of(target) /
         fmt::format(".{}.{}.{}.tmp", target.filename().string(), ::getpid(), counter.fetch_add(1));
}

/// Content and mode on the disk under the temporary name; the caller removes it after an error.
int fill(const Descriptor& file, std::string_view content, std::optional<mode_t> mode) {
  if (const int error = write_all(file.get(), content)) return error;
  if (mode && ::fchmod(file.get(), *mode) != 0) return errno;
  return ::fsync(file.get()) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("read", path, errno);
  std::string content;
  struct stat facts {};
  if (::fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
    content.reserve(static_cast<std::size_t>(facts.st_size));
  }
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path, errno);
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

Status write_file(const fs::path& path, std::string_view content) {
  struct stat facts {};
  const bool exists = ::stat(path.c_str(), &facts) == 0;
  if (exists && S_ISDIR(facts.st_mode)) return system_error("write", path, EISDIR);
  if (exists && !S_ISREG(facts.st_mode)) return write_through(path, content);

  // Behind a link stands the file that is meant; a rename would replace the link.
  std::error_code ignored;
  const fs::path target = exists ? fs::canonical(path, ignored) : path;
  const fs::path temporary = temporary_beside(target.empty() ? path : target);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return system_error("write", path, errno);
  int error = fill(file, content, exists ? std::optional(facts.st_mode & 07777) : std::nullopt);
  file.reset();
  if (error == 0 && ::rename(temporary.c_str(), target.empty() ? path.c_str() : target.c_str()) != 0)
    error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    return system_error("write", path, error);
  }
  sync_folder(folder_of(temporary));
  return {};
}

Result<fs::path> data_folder() {
  fs::path folder;
  if (const auto data = environment("FULCRUM_DATA"); data && !data->empty()) {
    folder = *data;
  } else if (const auto xdg = environment("XDG_DATA_HOME"); xdg && fs::path(*xdg).is_absolute()) {
    folder = fs::path(*xdg) / "fulcrum";
  } else if (const auto home = environment("HOME"); home && !home->empty()) {
    folder = fs::path(*home) / ".local" / "share" / "fulcrum";
  } else {
    return Error{Code::environment, "there is no folder to keep data in: HOME is not set",
                 "set FULCRUM_DATA to a folder that you can write to"};
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    Error failed = system_error("make the data folder", folder, error.value());
    failed.hint = "set FULCRUM_DATA to a folder that you can write to";
    return failed;
  }
  return folder;
}

}  // namespace fulcrum
