// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Looks for the injected library, CUPTI and the driver.
#include "trace/run/locate.h"

#include <dlfcn.h>

#include "trace/run/child.h"

namespace fulcrum::trace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInjector = "libfulcrum_inject.so";

void add_listed(const std::optional<std::string>& list, std::vector<fs::path>& folders) {
  std::string_view rest = list ? std::string_view(*list) : std::string_view{};
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (!folder.empty()) folders.emplace_back(folder);
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
}

/// Where the loader finds a library, from the paths in its cache: CUPTI should not be loaded only to be found.
std::string cached_path(const std::string& name) {
  const auto cache = read_file("/etc/ld.so.cache");
  if (!cache.ok()) return "";
  const std::size_t end = cache->find("/" + name + '\0');
  if (end == std::string::npos) return "";
  const std::size_t before = cache->rfind('\0', end);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return cache->substr(begin, end + 1 + name.size() - begin);
}

}  // namespace

std::string find_injector() {
  std::vector<fs::path> folders;
  add_listed(environment("FULCRUM_MODULE_PATH"), folders);
  std::error_code failed;
  std::vector<fs::path> origins{fs::read_symlink("/proc/self/exe", failed).parent_path()};
  Dl_info ours;
  if (::dladdr(reinterpret_cast<void*>(&find_injector), &ours) != 0 && ours.dli_fname)
    origins.push_back(fs::absolute(ours.dli_fname, failed).parent_path());
  for (const fs::path& origin : origins) {
    for (const char* folder : {".", "../lib/fulcrum", "fulcrum", "lib/fulcrum"})
      folders.push_back(origin / folder);
  }
  for (const fs::path& folder : folders) {
    const fs::path file = fs::absolute(folder / kInjector, failed).lexically_normal();
    // The loader splits LD_PRELOAD at spaces and colons.
    if (fs::exists(file, failed) && file.string().find_first_of(" :") == std::string::npos)
      return file.string();
  }
  return "";
}

std::string find_cupti() {
  std::vector<fs::path> folders;
  add_listed(inherited("LD_LIBRARY_PATH"), folders);
  std::vector<fs::path> toolkits{"/usr/local/cuda"};
  if (const auto home = environment("CUDA_HOME"); home && !home->empty())
    toolkits.insert(toolkits.begin(), *home);
  for (const fs::path& toolkit : toolkits) {
    for (const char* folder : {"lib64", "extras/CUPTI/lib64"}) folders.push_back(toolkit / folder);
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    for (const fs::path& folder : folders) {
      std::error_code failed;
      if (const fs::path file = folder / name; fs::exists(file, failed)) return file.string();
    }
    if (std::string path = cached_path(name); !path.empty()) return path;
  }
  return "";
}

std::string driver_version() {
  const auto text = read_file("/proc/driver/nvidia/version");
  if (!text.ok()) return "";
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."
  std::string_view line(*text);
  line = line.substr(0, line.find('\n'));
  const std::size_t digit = line.find_first_of("0123456789", std::min(line.size(), line.find("Module")));
  if (digit == std::string_view::npos) return "";
  line.remove_prefix(digit);
  return std::string(line.substr(0, line.find(' ')));
}

std::optional<bool> counters_for_root_only() {
  const auto text = read_file("/proc/driver/nvidia/params");
  if (!text.ok()) return std::nullopt;
  constexpr std::string_view kKey = "RmProfilingAdminOnly:";
  const std::size_t at = text->find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digit = text->find_first_of("0123456789", at + kKey.size());
  return digit == std::string::npos ? std::nullopt : std::optional((*text)[digit] != '0');
}

}  // namespace fulcrum::trace
