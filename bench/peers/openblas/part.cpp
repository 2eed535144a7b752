// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS. Version 0.3.21 takes CPUs newer than itself for old ones and then runs at a fraction of its speed, so it
// is told the core whose kernels fit this CPU; a core that the user names stands.
#include <dlfcn.h>

#include <cstdlib>

#include "openblas/openblas.h"

namespace fulcrum::peers::openblas {
namespace {

constexpr const char* kNames[] = {"libopenblas.so.0", "libopenblas.so"};

const char* right_core() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return "SkylakeX";
  return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
}

void* open_library(int flags) {
  for (const char* name : kNames) {
    if (void* handle = dlopen(name, flags)) return handle;
  }
  return nullptr;
}

/// When it is in the process already, its core was chosen by whoever loaded it.
void* open_with_right_core() {
  if (void* handle = open_library(RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return handle;
  const bool set_core = !std::getenv("OPENBLAS_CORETYPE"), set_idle = !std::getenv("OPENBLAS_THREAD_TIMEOUT");
  if (set_core) setenv("OPENBLAS_CORETYPE", right_core(), 1);
  if (set_idle) setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);  // idle workers must not disturb their neighbour
  void* handle = open_library(RTLD_NOW | RTLD_LOCAL);
  if (set_core) unsetenv("OPENBLAS_CORETYPE");
  if (set_idle) unsetenv("OPENBLAS_THREAD_TIMEOUT");
  return handle;
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Library load() {
  Library blas;
  void* handle = open_with_right_core();
  if (!handle) return blas;
  const char* (*config)() = nullptr;
  const char* (*core)() = nullptr;
  if (find(handle, "openblas_get_config", config)) blas.version = config();
  blas.version = blas.version.substr(0, blas.version.find(' ', blas.version.find(' ') + 1));
  if (find(handle, "openblas_get_corename", core)) blas.core = core();
  blas.loaded = find(handle, "cblas_sdot", blas.sdot) && find(handle, "cblas_sgemv", blas.sgemv) &&
                find(handle, "cblas_sgemm", blas.sgemm) &&
                find(handle, "openblas_set_num_threads", blas.set_threads) &&
                find(handle, "openblas_get_num_threads", blas.get_threads);
  return blas;
}

const char* isa() { return library().core.c_str(); }

const char* detail() {
  static const std::string text = library().version + ", core " + library().core;
  return text.c_str();
}

const Part* part() {
  if (!library().loaded) return nullptr;
  static const Kernels kernels = [] {
    Kernels list;
    add_dense(list);
    add_cosine(list);
    finish(list, isa, detail);
    return list;
  }();
  static const Part instance{kernels.data(), static_cast<std::int64_t>(kernels.size()),
                             library().version.c_str(), isa()};
  return &instance;
}

}  // namespace

const Library& library() {
  static const Library instance = load();
  return instance;
}

}  // namespace fulcrum::peers::openblas

FULCRUM_PEER_PART const fulcrum::peers::Part* fulcrum_peer_part() { return fulcrum::peers::openblas::part(); }
