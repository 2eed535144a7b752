// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks for something newer than a traced binary: a source in its line table; without one a source of the same name
// around it; another build of the same name beside its build folder.
#include "trace/run/stale.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "trace/run/line_table.h"

namespace fulcrum::trace {
namespace {

namespace fs = std::filesystem;

/// Clocks of file systems and of build machines may be off by as much.
constexpr std::int64_t kSlackNs = 1'000'000'000;
constexpr std::int64_t kLargestBinary = std::int64_t{4} << 30;

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// 0: no regular file.
std::int64_t modified_ns(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? modified_ns(status) : 0;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](std::string_view s) { return text.starts_with(s); });
}

/// What its user did not build here.
bool is_installed(std::string_view path) {
  return starts_with_any(path, {"/usr/", "/lib", "/opt/", "/nix/", "/snap/", "/bin/", "/sbin/"}) ||
         path.find("/site-packages/") != path.npos || path.find("/dist-packages/") != path.npos ||
         path.find("conda") != path.npos || path.empty() || path[0] != '/';
}

std::vector<std::string> sources_in(const std::string& path) {
  std::vector<std::string> sources;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (file >= 0 && ::fstat(file, &status) == 0 && status.st_size > 0 && status.st_size < kLargestBinary) {
    const auto size = static_cast<std::size_t>(status.st_size);
    if (void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0); map != MAP_FAILED) {
      sources = sources_of({static_cast<const char*>(map), size});
      ::munmap(map, size);
    }
  }
  if (file >= 0) ::close(file);
  return sources;
}

struct Newest {
  fs::path path;
  std::int64_t at_ns = 0;
  void offer(const fs::path& candidate) {
    const std::int64_t when = modified_ns(candidate);
    if (when > at_ns) *this = {candidate, when};
  }
};

Newest newest_source(const fs::path& binary) {
  Newest newest;
  const std::vector<std::string> listed = sources_in(binary.string());
  for (const std::string& source : listed) {
    if (!is_installed(source)) newest.offer(source);
  }
  if (!listed.empty()) return newest;
  // No line table: src/app.cu belongs to build/app, and app.cu to app.
  const fs::path stem = binary.stem(), folder = binary.parent_path();
  const std::array folders{folder, folder.parent_path(), folder.parent_path().parent_path()};
  for (const fs::path& around : folders) {
    for (const char* below : {"", "src"}) {
      for (const char* ending : {".cu", ".cpp", ".cc", ".cxx", ".c"}) {
        fs::path source = around / below / stem;
        source += ending;
        newest.offer(source);
      }
    }
  }
  return newest;
}

bool is_build_folder(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  return has("build") || has("release") || has("debug") || name == "out" || name == "bin";
}

/// build-release/app when build/app was traced, Release/app when Debug/app was.
Newest newest_build(const fs::path& binary) {
  Newest newest;
  const fs::path folder = binary.parent_path();
  if (!is_build_folder(folder.filename().string())) return newest;
  std::error_code failed;
  int looked_at = 0;
  for (fs::directory_iterator at(folder.parent_path(), failed), end;
       !failed && at != end && ++looked_at < 256; at.increment(failed)) {
    const fs::path& other = at->path();
    if (other != folder && is_build_folder(other.filename().string()))
      newest.offer(other / binary.filename());
  }
  return newest;
}

}  // namespace

void look_for_newer(std::vector<GpuTrace::Binary>& binaries) {
  for (GpuTrace::Binary& binary : binaries) {
    if (is_installed(binary.path)) continue;
    const std::int64_t now = modified_ns(fs::path(binary.path));
    // Rebuilt or removed since: nothing that can be said of the one that ran.
    if (now == 0 || (binary.modified_ns != 0 && binary.modified_ns != now)) continue;
    binary.modified_ns = now;
    for (const Newest& candidate : {newest_source(binary.path), newest_build(binary.path)}) {
      if (candidate.at_ns <= now + kSlackNs || candidate.at_ns - now <= binary.newer_by_ns) continue;
      binary.newer = candidate.path.string();
      binary.newer_by_ns = candidate.at_ns - now;
    }
  }
}

}  // namespace fulcrum::trace
