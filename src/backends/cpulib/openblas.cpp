// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Loads OpenBLAS. Version 0.3.21 takes CPUs that are newer than itself for old ones (an Emerald Rapids for a
// Prescott, at a fifth of the speed), so the core it chose is compared with what CPUID says, and when it wastes the
// machine the library is unloaded and loaded again with the right one.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fulcrum/backends.h>

#include <algorithm>
#include <cctype>
#include <mutex>

#include "backends/cpulib/libraries.h"
#include "backends/cpulib/scoped_variable.h"

namespace fulcrum::backends::cpulib {
namespace {

constexpr const char* kNames[] = {"libopenblas.so.0", "libopenblas.so"};
constexpr const char* kPackage = "libopenblas0-pthread";
/// Idle workers yield for 2^20 cycles, not 2^26: they must not disturb what is measured next.
constexpr const char* kIdleCycles = "20";

/// Vector width class of a core's kernels: 3 AVX-512, 2 AVX2, 1 AVX, 0 older; -1: not known.
int width_class(std::string core) {
  std::transform(core.begin(), core.end(), core.begin(), [](unsigned char c) { return std::tolower(c); });
  struct Known {
    std::string_view name;
    int width;
  };
  static constexpr Known kCores[] = {
      {"skylakex", 3},  {"cooperlake", 3},  {"sapphirerapids", 3}, {"haswell", 2},    {"zen", 2},
      {"excavator", 2}, {"sandybridge", 1}, {"bulldozer", 1},      {"piledriver", 1}, {"steamroller", 1},
      {"prescott", 0},  {"core2", 0},       {"katmai", 0},         {"coppermine", 0}, {"northwood", 0},
      {"banias", 0},    {"atom", 0},        {"penryn", 0},         {"dunnington", 0}, {"nehalem", 0},
      {"athlon", 0},    {"opteron", 0},     {"opteron_sse3", 0},   {"barcelona", 0},  {"nano", 0},
      {"bobcat", 0},
  };
  for (const Known& known : kCores) {
    if (known.name == core) return known.width;
  }
  return -1;
}

std::string right_core_of_this_cpu() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return right_core(avx512, avx2_fma, __builtin_cpu_supports("avx"), __builtin_cpu_is("amd"));
#else
  return {};
#endif
}

void* open_library() {
  const ScopedVariable idle("OPENBLAS_THREAD_TIMEOUT", kIdleCycles);
  for (const char* name : kNames) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

std::string text_of(void* library, const char* function) {
  const char* (*get)() = nullptr;
  return find(library, function, get) && get() ? get() : "";
}

/// "OpenBLAS 0.3.21" of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...".
std::string version_of(const std::string& config) {
  const std::size_t second = config.find(' ', config.find(' ') + 1);
  return config.substr(0, second);
}

OpenBlas load() {
  OpenBlas blas;
  void* library = open_library();
  if (!library) {
    blas.why_not = fmt::format("OpenBLAS is not installed (apt install {})", kPackage);
    return blas;
  }
  blas.detected = blas.core = text_of(library, "openblas_get_corename");
  blas.set_by = environment("OPENBLAS_CORETYPE") ? "user" : "openblas";
  const std::string right = right_core_of_this_cpu();
  if (blas.set_by != "user" && wastes(blas.detected, right)) {
    dlclose(library);
    const ScopedVariable core("OPENBLAS_CORETYPE", right);
    library = open_library();
    if (!library) return OpenBlas{.why_not = "OpenBLAS could be loaded once but not twice"};
    blas.core = text_of(library, "openblas_get_corename");
    blas.set_by = "fulcrum";
  }
  blas.config = text_of(library, "openblas_get_config");
  blas.version = version_of(blas.config);
  blas.loaded = find(library, "cblas_sgemm", blas.sgemm) && find(library, "cblas_sgemv", blas.sgemv) &&
                find(library, "cblas_sdot", blas.sdot) &&
                find(library, "openblas_set_num_threads", blas.set_num_threads);
  if (!blas.loaded)
    blas.why_not = fmt::format("the installed OpenBLAS lacks a function (apt install {})", kPackage);
  return blas;
}

}  // namespace

std::string right_core(bool avx512, bool avx2_fma, bool avx, bool amd) {
  if (avx512) return "SkylakeX";
  if (avx2_fma) return amd ? "Zen" : "Haswell";
  return avx ? "Sandybridge" : "";
}

bool wastes(const std::string& detected, const std::string& right) {
  if (right.empty()) return false;
  const int width = width_class(detected);
  return width >= 0 && width < width_class(right);  // a core we do not know is newer than our list: leave it
}

const OpenBlas& openblas() {
  static const OpenBlas blas = load();
  return blas;
}

const char* openblas_detail() {
  static const std::string text = [] {
    const OpenBlas& blas = openblas();
    if (blas.set_by != "fulcrum") return fmt::format("{}, core {}", blas.version, blas.core);
    return fmt::format("{}, core {} (set by fulcrum; it had taken this CPU for {})", blas.version, blas.core,
                       blas.detected);
  }();
  return text.c_str();
}

const char* openblas_core() { return openblas().core.c_str(); }

void use_threads(const OpenBlas& library, int threads) {
  static std::mutex mutex;
  static int current = 0;
  const std::lock_guard lock(mutex);
  if (current != threads) library.set_num_threads(threads);
  current = threads;
}

}  // namespace fulcrum::backends::cpulib
