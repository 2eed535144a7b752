// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The backend module `peers`: other projects' libraries as kernels, to be measured against and never dispatched to.
// This file is built for any CPU; it asks CPUID before it loads a part, because parts are built for one level.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "part.h"

#ifndef FULCRUM_PEERS_ISA
#define FULCRUM_PEERS_ISA "x86-64-v4"
#endif

namespace fulcrum::peers {
namespace {

/// Parts that may have been built, in the order in which bench shows them.
constexpr const char* kParts[] = {"eigen",  "onednn",    "openblas", "hnswlib",
                                  "opencv", "graphblas", "autovec",  "fastmath"};

bool cpu_fits() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return std::string(FULCRUM_PEERS_ISA) == "x86-64-v3" ? v3 : v4;
#else
  return false;
#endif
}

/// Sets a variable that a library reads while it is loaded, unless the user did; processes started later must not
/// inherit it.
class LoadTimeVariable {
 public:
  LoadTimeVariable(const char* name, const char* value) : name_(name), ours_(!std::getenv(name)) {
    if (ours_) setenv(name, value, 1);
  }
  ~LoadTimeVariable() {
    if (ours_) unsetenv(name_);
  }
  LoadTimeVariable(const LoadTimeVariable&) = delete;
  LoadTimeVariable& operator=(const LoadTimeVariable&) = delete;

 private:
  const char* name_;
  bool ours_;
};

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&cpu_fits), &info) == 0 || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

struct Loaded {
  Kernels kernels;
  std::string description = "{\"isa\": \"" FULCRUM_PEERS_ISA "\"";  // a JSON object, closed by load()

  void take(const std::string& name, const std::string& folder) {
    void* library = dlopen((folder + "/peer_" + name + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* problem = library ? nullptr : dlerror();
    const auto entry = library ? reinterpret_cast<PartEntry>(dlsym(library, kPartEntry)) : nullptr;
    const Part* part = entry ? entry() : nullptr;
    description += ", " + quoted(name) + ": ";
    if (!part) {
      description += "{\"loaded\": false, \"why_not\": " + quoted(problem ? problem : "no kernels") + "}";
      return;
    }
    kernels.insert(kernels.end(), part->kernels, part->kernels + part->count);
    description += "{\"loaded\": true, \"version\": " + quoted(part->version) +
                   ", \"core\": " + quoted(part->core) + "}";
  }
};

Loaded load() {
  Loaded loaded;
  // Idle OpenMP workers spin some 100 us and then sleep: long enough for calls back to back, short enough not to
  // disturb the kernel that is measured in turn.
  const LoadTimeVariable spin("GOMP_SPINCOUNT", "10000");
  const std::string folder = own_folder();
  if (cpu_fits()) {
    for (const char* name : kParts) loaded.take(name, folder);
  }
  loaded.description += "}";
  return loaded;
}

const Loaded& loaded() {
  static const Loaded instance = load();
  return instance;
}

int available() { return !loaded().kernels.empty(); }

const char* why_not() {
  return cpu_fits()
             ? "no library was there when it was built, or none is there now (docs/peers.md lists them)"
             : "it was built for " FULCRUM_PEERS_ISA
               ", which this CPU is not; configure with another "
               "FULCRUM_PEERS_ISA";
}

const char* describe() { return loaded().description.c_str(); }

const fulcrum_kernel* kernels(std::int64_t* count) {
  *count = static_cast<std::int64_t>(loaded().kernels.size());
  return loaded().kernels.data();
}

}  // namespace
}  // namespace fulcrum::peers

extern "C" __attribute__((visibility("default"))) const fulcrum_backend* fulcrum_backend_v1(
    const fulcrum_host*) {
  static const fulcrum_backend backend{.abi_version = FULCRUM_ABI_VERSION,
                                       .struct_bytes = sizeof(fulcrum_backend),
                                       .name = "peers",
                                       .kind = "peer",
                                       .available = fulcrum::peers::available,
                                       .why_not = fulcrum::peers::why_not,
                                       .describe = fulcrum::peers::describe,
                                       .kernels = fulcrum::peers::kernels,
                                       .kernel_bytes = sizeof(fulcrum_kernel)};
  return &backend;
}
