// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS and oneDNN by dlopen, with prototypes of our own: neither headers nor the libraries are needed to build.
// A library that is missing says so and takes only its own variants with it.
#pragma once

#include <cstdint>
#include <string>

namespace fulcrum::backends::cpulib {

/// Interface of the C BLAS with 32-bit integers.
enum CblasOrder { kRowMajor = 101 };
enum CblasTranspose { kNoTranspose = 111, kTranspose = 112 };
using Sgemm = void (*)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                       const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
using Sgemv = void (*)(int order, int transpose, int m, int n, float alpha, const float* a, int lda,
                       const float* x, int incx, float beta, float* y, int incy);
using Sdot = float (*)(int n, const float* x, int incx, const float* y, int incy);

struct OpenBlas {
  bool loaded = false;
  std::string why_not;   // when not loaded
  std::string version;   // "OpenBLAS 0.3.21"
  std::string config;    // as the library spells it
  std::string detected;  // the core it took this CPU for
  std::string core;      // the one whose kernels run: another one when `detected` wasted this CPU
  std::string set_by;    // who chose it: "openblas", "fulcrum", "user"
  Sgemm sgemm = nullptr;
  Sgemv sgemv = nullptr;
  Sdot sdot = nullptr;
  void (*set_num_threads)(int) = nullptr;
};

struct OneDnn {
  bool loaded = false;
  std::string why_not;
  std::string version;  // "oneDNN 2.6.3"
  std::string isa;      // "avx512_core_bf16"
  int major = 0;
  void* handle = nullptr;  // of dlopen, for what primitives.h finds in it
  int (*sgemm)(char transpose_a, char transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
               float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
               float* c, std::int64_t ldc) = nullptr;
  // Of its OpenMP runtime; null when it has another.
  void (*set_num_threads)(int) = nullptr;
  void (*parallel)(void (*work)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
  int (*team_size)() = nullptr;
};

/// Loaded on first use.
const OpenBlas& openblas();
const OneDnn& onednn();

/// For fulcrum_kernel.detail and .isa.
const char* openblas_detail();
const char* openblas_core();
const char* onednn_detail();
const char* onednn_isa();

/// Makes the library run the next call on this many threads.
void use_threads(const OpenBlas& library, int threads);
void use_threads(const OneDnn& library, int threads);

/// The core OpenBLAS should be told, by what the CPU can do: "SkylakeX", "Zen", "Haswell", "Sandybridge"; empty: its
/// own choice stands.
std::string right_core(bool avx512, bool avx2_fma, bool avx, bool amd);
/// True when kernels for core `detected` leave wider vectors of this CPU unused than those for `right`.
bool wastes(const std::string& detected, const std::string& right);

}  // namespace fulcrum::backends::cpulib
