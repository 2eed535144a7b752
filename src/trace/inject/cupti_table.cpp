// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Finding libcupti. One that is mapped already wins: frameworks carry their own, and a second one in a process is a
// second client. Otherwise the one that fits the driver's major version.
#include "trace/inject/cupti_table.h"

#include <dlfcn.h>

namespace fulcrum::trace::inject {
namespace {

int driver_major() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return 0;
  const auto get = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  return get != nullptr && get(&version) == 0 ? version / 1000 : 0;
}

void* open_library(std::string& why) {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD)) return library;
  // A CUPTI newer than the driver does not start; an older one on a newer driver does.
  const bool is_12 = driver_major() == 12;
  for (const char* name :
       {is_12 ? "libcupti.so.12" : "libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/lib64/libcupti.so.13",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.12",
        "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12"})
    if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) return library;
  why = "no libcupti.so.13 or .12 in the program or on the library path";
  return nullptr;
}

}  // namespace

int major_of(std::uint32_t version) {
  if (version >= 10000) return int(version / 10000);
  return version >= 19 && version < 40 ? 12 : 0;  // 19 is CUDA 12.0, 28 its last: they were counted
}

std::string load_cupti(Cupti& cupti) {
  std::string why;
  void* library = open_library(why);
  if (library == nullptr) return why;
#define FULCRUM_FIND(name)                                                    \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name)); \
  if (cupti.name == nullptr) return "libcupti has no " #name;
  FULCRUM_CUPTI_FUNCTIONS(FULCRUM_FIND)
#undef FULCRUM_FIND
#define FULCRUM_TRY_FIND(name) cupti.name = reinterpret_cast<decltype(cupti.name)>(dlsym(library, #name));
  FULCRUM_CUPTI_EXTRAS(FULCRUM_TRY_FIND)
#undef FULCRUM_TRY_FIND
  if (cupti.cuptiGetVersion(&cupti.version) != CUPTI_SUCCESS) return "cuptiGetVersion failed";
  const int major = major_of(cupti.version);
  if (major != 12 && major != 13)
    return "CUPTI of version " + std::to_string(cupti.version) + " is not known";
  return {};
}

const char* name_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return "MEMCPY";
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return "MEMSET";
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return "DRIVER";
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return "RUNTIME";
    case CUPTI_ACTIVITY_KIND_DEVICE:
      return "DEVICE";
    case CUPTI_ACTIVITY_KIND_CONTEXT:
      return "CONTEXT";
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return "CONCURRENT_KERNEL";
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return "OVERHEAD";
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return "MEMCPY2";
    case CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER:
      return "UNIFIED_MEMORY_COUNTER";
    case CUPTI_ACTIVITY_KIND_STREAM:
      return "STREAM";
    case CUPTI_ACTIVITY_KIND_JIT:
      return "JIT";
    default:
      return "OTHER";
  }
}

}  // namespace fulcrum::trace::inject
