// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads oneDNN and, through it, the OpenMP runtime whose thread count it follows.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <algorithm>

#include "backends/cpulib/libraries.h"
#include "backends/cpulib/scoped_variable.h"

namespace fulcrum::backends::cpulib {
namespace {

constexpr const char* kNames[] = {"libdnnl.so.2", "libdnnl.so.3", "libdnnl.so"};
constexpr const char* kPackage = "libdnnl2";
/// Idle OpenMP workers spin some 100 us and then sleep, instead of some milliseconds: long enough for calls back to
/// back, short enough not to disturb what is measured next. The more of them there are, the likelier one has the core
/// of another that still works, and all wait until it has spun to its end: with 16 threads calls of 10 us were held up
/// for 36 to 55 us at 200 turns, 184 to 323 us at 10,000; two threads gain by the 10,000.
std::string spin_count() {
  constexpr int kTurns = 40'000, kLeastTurns = 100;
  const int threads = usable_threads();
  return std::to_string(std::max(kLeastTurns, kTurns / (threads * threads)));
}

/// The head of dnnl_version_t, the same in all versions.
struct Version {
  int major, minor, patch;
};

struct IsaName {
  unsigned bits;
  const char* name;
};
/// dnnl_cpu_isa_t of 2.x and 3.x.
constexpr IsaName kIsaNames[] = {{0x1, "sse41"},
                                 {0x3, "avx"},
                                 {0x7, "avx2"},
                                 {0xf, "avx2_vnni"},
                                 {0x27, "avx512_core"},
                                 {0x67, "avx512_core_vnni"},
                                 {0xe7, "avx512_core_bf16"},
                                 {0x1ef, "avx512_core_fp16"},
                                 {0x3e7, "avx512_core_amx"},
                                 {0xfef, "avx512_core_amx"}};

std::string isa_of(void* library) {
  const auto get = reinterpret_cast<unsigned (*)()>(dlsym(library, "dnnl_get_effective_cpu_isa"));
  if (!get) return "unknown";
  const unsigned bits = get();
  for (const IsaName& known : kIsaNames) {
    if (known.bits == bits) return known.name;
  }
  return fmt::format("{:#x}", bits);
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

OneDnn load() {
  OneDnn dnn;
  void* library = nullptr;
  {
    const ScopedVariable spin("GOMP_SPINCOUNT", spin_count());
    for (const char* name : kNames) {
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  if (!library) {
    dnn.why_not = fmt::format("oneDNN is not installed (apt install {})", kPackage);
    return dnn;
  }
  const auto version = reinterpret_cast<const Version* (*)()>(dlsym(library, "dnnl_version"));
  if (version) {
    dnn.version = fmt::format("oneDNN {}.{}.{}", version()->major, version()->minor, version()->patch);
    dnn.major = version()->major;
  }
  dnn.handle = library;
  dnn.isa = isa_of(library);
  find(library, "omp_set_num_threads", dnn.set_num_threads);
  if (find(library, "omp_get_thread_num", dnn.thread_number) &&
      find(library, "omp_get_num_threads", dnn.team_size)) {
    find(library, "GOMP_parallel", dnn.parallel);
  }
  dnn.sgemm = reinterpret_cast<decltype(dnn.sgemm)>(dlsym(library, "dnnl_sgemm"));
  dnn.loaded = dnn.sgemm != nullptr;
  if (!dnn.loaded)
    dnn.why_not = fmt::format("the installed oneDNN has no dnnl_sgemm (apt install {})", kPackage);
  return dnn;
}

}  // namespace

const OneDnn& onednn() {
  static const OneDnn dnn = load();
  return dnn;
}

const char* onednn_detail() {
  static const std::string text = fmt::format("{}, {}", onednn().version, onednn().isa);
  return text.c_str();
}

const char* onednn_isa() { return onednn().isa.c_str(); }

void use_threads(const OneDnn& library, int threads) {
  // OpenMP keeps the count per calling thread.
  static thread_local int current = 0;
  if (current != threads && library.set_num_threads) library.set_num_threads(threads);
  current = threads;
}

}  // namespace fulcrum::backends::cpulib
