// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Finding and loading backend modules.
#include "backends/modules.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <mutex>

namespace fulcrum::backends {
namespace {

constexpr std::string_view kPrefix = "libfulcrum_";
constexpr std::string_view kSuffix = ".so";
constexpr const char* kBesideProgram[] = {".", "../lib", "../lib/fulcrum"};
constexpr std::size_t kMaxBroken = 8;
/// A module must fill everything up to its kernels; what comes behind may be missing.
constexpr std::uint32_t kLeastBytes = offsetof(fulcrum_backend, allocate);

/// "cuda" of ".../libfulcrum_cuda.so"; empty when the file is no module by its name.
std::string name_of(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) return {};
  if (file.size() <= kPrefix.size() + kSuffix.size()) return {};
  return file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
}

/// A module that could not be loaded. why_not() of the C table has no argument, so each has a function of its own.
struct Broken {
  std::string name, reason;
  fulcrum_backend table{};
};
std::array<Broken, kMaxBroken> broken_modules;

template <std::size_t kIndex>
const char* reason_of() {
  return broken_modules[kIndex].reason.c_str();
}

template <std::size_t... kIndices>
constexpr auto reason_functions(std::index_sequence<kIndices...>) {
  return std::array{&reason_of<kIndices>...};
}

const fulcrum_backend* broken(const std::filesystem::path& path, std::string reason) {
  static std::mutex mutex;
  static std::size_t count = 0;
  constexpr auto kReasons = reason_functions(std::make_index_sequence<kMaxBroken>{});
  const std::lock_guard lock(mutex);
  const std::size_t index = std::min(count, kMaxBroken - 1);
  if (count < kMaxBroken) ++count;
  Broken& entry = broken_modules[index];
  entry.name = name_of(path).empty() ? path.stem().string() : name_of(path);
  entry.reason = std::move(reason);
  entry.table = fulcrum_backend{
      .abi_version = FULCRUM_ABI_VERSION,
      .struct_bytes = sizeof(fulcrum_backend),
      .name = entry.name.c_str(),
      .kind = "gpu",
      .available = [] { return 0; },
      .why_not = kReasons[index],
  };
  return &entry.table;
}

void log_from_module(int32_t level, const char* message) {
  log(static_cast<LogLevel>(std::clamp(level, 0, 3)), message ? message : "");
}

/// The table padded with nulls when the module was built against a header with fewer fields.
const fulcrum_backend* complete_table(const fulcrum_backend* table) {
  if (table->struct_bytes >= sizeof(fulcrum_backend)) return table;
  static std::deque<fulcrum_backend> padded;  // as long as the program, like the module
  fulcrum_backend& copy = padded.emplace_back();
  std::memcpy(&copy, table, table->struct_bytes);
  return &copy;
}

}  // namespace

const fulcrum_backend* load_module(const std::filesystem::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    return broken(path,
                  fmt::format("{} cannot be loaded: {}", path.string(), reason ? reason : "unknown reason"));
  }
  const auto entry = reinterpret_cast<fulcrum_backend_entry>(dlsym(library, FULCRUM_BACKEND_ENTRY));
  if (!entry) {
    return broken(path, fmt::format("{} is no backend module: it has no function {}", path.string(),
                                    FULCRUM_BACKEND_ENTRY));
  }
  static const fulcrum_host host{FULCRUM_ABI_VERSION, sizeof(fulcrum_host), log_from_module};
  const fulcrum_backend* table = entry(&host);
  if (!table) return broken(path, fmt::format("{} wants a newer fulcrum than this one", path.string()));
  if (table->abi_version != FULCRUM_ABI_VERSION) {
    return broken(path,
                  fmt::format("{} speaks version {} of the backend interface, this program {}: build both "
                              "from the same source",
                              path.string(), table->abi_version, FULCRUM_ABI_VERSION));
  }
  if (table->struct_bytes < kLeastBytes || !table->name || !table->kind || !table->kernels) {
    return broken(path, fmt::format("{} fills {} bytes of its table, too few for a name, a kind and kernels",
                                    path.string(), table->struct_bytes));
  }
  const fulcrum_backend* complete = complete_table(table);
  if (complete->kernel_bytes != 0 && complete->kernel_bytes != sizeof(fulcrum_kernel)) {
    return broken(path,
                  fmt::format("{} describes a kernel in {} bytes, this program in {}: build both from the "
                              "same source",
                              path.string(), complete->kernel_bytes, sizeof(fulcrum_kernel)));
  }
  return complete;
}

std::vector<std::filesystem::path> find_modules(std::string_view module_path,
                                                const std::filesystem::path& program_folder) {
  std::vector<std::filesystem::path> found;
  const auto take = [&found](const std::filesystem::path& path) {
    const auto same = [&path](const auto& other) { return other.filename() == path.filename(); };
    if (!name_of(path).empty() && std::none_of(found.begin(), found.end(), same)) found.push_back(path);
  };
  while (!module_path.empty()) {
    const std::string_view folder = module_path.substr(0, module_path.find(':'));
    module_path.remove_prefix(std::min(folder.size() + 1, module_path.size()));
    std::error_code ignored;
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder, ignored))
      files.push_back(file.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) take(file);
  }
  for (const char* folder : kBesideProgram) {
    const std::filesystem::path file = (program_folder / folder / "libfulcrum_cuda.so").lexically_normal();
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) take(file);
  }
  return found;
}

std::filesystem::path find_module(std::string_view name, std::string_view module_path,
                                  const std::filesystem::path& program_folder) {
  std::vector<std::filesystem::path> folders;
  while (!module_path.empty()) {
    const std::string_view folder = module_path.substr(0, module_path.find(':'));
    module_path.remove_prefix(std::min(folder.size() + 1, module_path.size()));
    folders.emplace_back(folder);
  }
  for (const char* folder : kBesideProgram) folders.push_back(program_folder / folder);
  for (const auto& folder : folders) {
    auto file = (folder / fmt::format("{}{}{}", kPrefix, name, kSuffix)).lexically_normal();
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return {};
}

std::filesystem::path program_folder() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? std::filesystem::path(".") : program.parent_path();
}

}  // namespace fulcrum::backends
