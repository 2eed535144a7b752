// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where NVIDIA's libraries may lie, and loading them. The loader's own path comes first, then a toolkit that the user
// names, then the toolkit's usual folder, then the packages that PyTorch brings along.
#include "backends/cuda/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <sstream>

namespace fulcrum::backends::cuda {
namespace {

struct Wanted {
  const char* name;
  std::vector<const char*> files;  // the newest first
  const char* off_without;
  const char* how_to_get;
  std::string (*version)(const Library& library);
};

std::string dotted(std::size_t major, std::size_t minor, std::size_t patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

/// Versions written as 10000 * major + 100 * minor + patch by a function without arguments.
std::string by_call(const Library& library, const char* function) {
  const auto get = reinterpret_cast<std::size_t (*)()>(library.symbol(function));
  const std::size_t number = get ? get() : 0;
  return number ? dotted(number / 10000, number / 100 % 100, number % 100) : "";
}
std::string cublas_lt_version(const Library& library) { return by_call(library, "cublasLtGetVersion"); }
std::string cudnn_version(const Library& library) { return by_call(library, "cudnnGetVersion"); }
std::string cupti_version(const Library& library) {
  const auto get = reinterpret_cast<int (*)(unsigned*)>(library.symbol("cuptiGetVersion"));
  unsigned number = 0;
  return get && get(&number) == 0 ? dotted(number / 10000, number / 100 % 100, number % 100) : "";
}
/// NVML answers only between init and shutdown, which count: this leaves it as it was.
std::string nvml_version(const Library& library) {
  const auto init = reinterpret_cast<int (*)()>(library.symbol("nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<int (*)()>(library.symbol("nvmlShutdown"));
  const auto get = reinterpret_cast<int (*)(char*, unsigned)>(library.symbol("nvmlSystemGetNVMLVersion"));
  char text[80] = {};
  if (!init || !shutdown || !get || init() != 0) return "";
  const bool answered = get(text, sizeof(text)) == 0;
  shutdown();
  return answered ? text : "";
}

const Wanted kCublasLt{"cublasLt",
                       {"libcublasLt.so.13", "libcublasLt.so.12"},
                       "matmul and what is built on it",
                       "install libcublas of the CUDA toolkit, or pip install nvidia-cublas",
                       cublas_lt_version};
const Wanted kCudnn{"cudnn",
                    {"libcudnn.so.9"},
                    "variants named cudnn",
                    "install cuDNN 9, or pip install nvidia-cudnn-cu13",
                    cudnn_version};
const Wanted kCupti{"cupti",
                    {"libcupti.so.13", "libcupti.so.12"},
                    "the ledger's device phases (--ledger)",
                    "install cuda-cupti of the CUDA toolkit, or pip install nvidia-cuda-cupti",
                    cupti_version};
const Wanted kNvml{"nvml",
                   {"libnvidia-ml.so.1"},
                   "clocks, temperature, power and throttle reasons beside results",
                   "it comes with NVIDIA's driver; in a container, allow the capability utility",
                   nvml_version};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Folders in the order they are tried; patterns as glob(3) reads them.
std::vector<std::string> patterns() {
  std::vector<std::string> list;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = variable(name);
    if (home.empty()) continue;
    for (const char* folder : {"/lib64", "/lib", "/extras/CUPTI/lib64"}) list.push_back(home + folder);
  }
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib",
                             "/usr/local/cuda/extras/CUPTI/lib64", "/opt/cuda/lib64"})
    list.emplace_back(folder);
  std::vector<std::string> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string prefix = variable(name); !prefix.empty()) prefixes.push_back(prefix);
  }
  if (const std::string home = variable("HOME"); !home.empty()) prefixes.push_back(home + "/.local");
  for (const char* prefix : {"/usr/local", "/usr", "/opt/conda", "/opt/*", "/opt/*/.venv", "/opt/*/venv"})
    prefixes.emplace_back(prefix);
  for (const std::string& prefix : prefixes) {
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::string root = prefix + "/lib/python3*/" + packages;
      list.push_back(root + "/nvidia/*/lib");
      list.push_back(root + "/torch/lib");
    }
  }
  return list;
}

std::vector<std::string> matching(const std::string& pattern) {
  glob_t matches{};
  std::vector<std::string> found;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0)
    found.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  globfree(&matches);
  return found;
}

/// Files called `file` in those folders.
std::vector<std::string> candidates(const char* file) {
  std::vector<std::string> found;
  for (const std::string& pattern : patterns()) {
    for (std::string& path : matching(pattern + "/" + file)) found.push_back(std::move(path));
  }
  return found;
}

std::string path_of(void* handle, const char* otherwise) {
  link_map* map = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name;
  return known ? map->l_name : otherwise;
}

std::string not_found(const Wanted& wanted) {
  std::string files;
  for (const char* file : wanted.files) files += (files.empty() ? "" : " and ") + std::string(file);
  return files + ": not in the loader's path, CUDA_HOME, /usr/local/cuda or a Python package";
}

Library load(const Wanted& wanted) {
  Library library;
  library.name = wanted.name;
  std::string broken;  // one that is there and does not load says more than one that is nowhere
  const auto attempt = [&](const char* path) {
    library.handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    const char* reason = library.handle ? nullptr : dlerror();
    if (reason && path[0] == '/' && broken.empty()) broken = reason;
    return library.handle != nullptr;
  };
  for (const char* file : wanted.files) {
    if (attempt(file)) break;
    for (const std::string& path : candidates(file)) {
      if (attempt(path.c_str())) break;
    }
    if (library) break;
  }
  if (library) {
    library.path = path_of(library.handle, wanted.files.front());
    library.version = wanted.version(library);
  } else {
    library.why_not = broken.empty() ? not_found(wanted) : broken;
  }
  return library;
}

/// "13.1.0.3" of a link to libcublasLt.so.13.1.0.3; empty where the file itself has the short name.
std::string version_in_name(const std::string& path) {
  char* resolved = realpath(path.c_str(), nullptr);
  const std::string real = resolved ? resolved : "";
  std::free(resolved);
  const std::size_t at = real.rfind(".so.");
  const std::string version = at == std::string::npos ? "" : real.substr(at + 4);
  return version.find('.') == std::string::npos ? "" : version;
}

/// Folders that the loader searches, from its configuration.
std::vector<std::string> loader_folders() {
  std::vector<std::string> folders;
  std::istringstream paths(variable("LD_LIBRARY_PATH"));
  for (std::string folder; std::getline(paths, folder, ':');) folders.push_back(folder);
  for (const std::string& file : matching("/etc/ld.so.conf.d/*.conf")) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('/')) folders.push_back(line);
    }
  }
  for (const char* folder : {"/usr/lib64", "/usr/lib"}) folders.emplace_back(folder);
  return folders;
}

/// The same search without loading.
Library locate(const Wanted& wanted) {
  Library library;
  library.name = wanted.name;
  const std::vector<std::string> system = loader_folders();
  for (const char* file : wanted.files) {
    std::vector<std::string> list;
    for (const std::string& folder : system) list.push_back(folder + "/" + file);
    const std::vector<std::string> more = candidates(file);
    list.insert(list.end(), more.begin(), more.end());
    for (const std::string& path : list) {
      if (access(path.c_str(), R_OK) != 0) continue;
      library.path = path;
      library.version = version_in_name(path);
      return library;
    }
  }
  library.why_not = not_found(wanted);
  return library;
}

/// One library: loaded when something wants it, located when somebody reports.
class Entry {
 public:
  explicit constexpr Entry(const Wanted& wanted) : wanted_(wanted) {}
  const Library& library() {
    std::call_once(loading_, [this] { loaded_.store(new Library(load(wanted_))); });
    return *loaded_.load();
  }
  LibraryReport report() {
    const Library* library = loaded_.load();
    if (!library) {
      std::call_once(locating_, [this] { located_.store(new Library(locate(wanted_))); });
      library = located_.load();
    }
    return LibraryReport{library, wanted_.off_without, wanted_.how_to_get};
  }

 private:
  const Wanted& wanted_;
  std::once_flag loading_, locating_;
  std::atomic<const Library*> loaded_{nullptr}, located_{nullptr};  // never destroyed: plans may outlive them
};

Entry cublas_lt_entry(kCublasLt), cudnn_entry(kCudnn), cupti_entry(kCupti), nvml_entry(kNvml);

}  // namespace

void* Library::symbol(const char* function) const { return handle ? dlsym(handle, function) : nullptr; }

const Library& cublas_lt() { return cublas_lt_entry.library(); }
const Library& cudnn() {
  cublas_lt();  // cuDNN wants it by soname, and finds the one that is loaded where its own search would fail
  return cudnn_entry.library();
}
const Library& cupti() { return cupti_entry.library(); }
const Library& nvml() { return nvml_entry.library(); }

std::vector<LibraryReport> library_reports() {
  nvml();  // small, the driver's own, and wanted by whoever asks for the device's state
  return {cublas_lt_entry.report(), cudnn_entry.report(), cupti_entry.report(), nvml_entry.report()};
}

}  // namespace fulcrum::backends::cuda
