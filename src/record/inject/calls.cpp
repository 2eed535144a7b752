// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Stands before the BLAS functions that a program calls, notes their sizes and how long they took, and calls the real
// ones. Links the C library only, so that no program gets a C++ runtime it did not have.
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record/inject/shared.h"

namespace fulcrum::record::inject {
namespace {

__thread __attribute__((tls_model("initial-exec"))) int depth;

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

void note(Function function, int64_t a, int64_t b, int64_t c, uint64_t nanoseconds) {
  if (!memory) return;
  const auto number = static_cast<uint32_t>(function);
  uint64_t at =
      (static_cast<uint64_t>(a) * 31 + static_cast<uint64_t>(b)) * 31 + static_cast<uint64_t>(c) + number;
  for (uint32_t tries = 0; tries < 32; ++tries, ++at) {
    CallEntry& entry = memory->calls[at % kCallEntries];
    uint32_t free_entry = 0;
    if (__atomic_compare_exchange_n(&entry.function, &free_entry, number, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      entry.dims[0] = a;
      entry.dims[1] = b;
      entry.dims[2] = c;
      __atomic_store_n(&entry.ready, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&entry.ready, __ATOMIC_ACQUIRE)) {
    }
    if (entry.function != number || entry.dims[0] != a || entry.dims[1] != b || entry.dims[2] != c) continue;
    __atomic_add_fetch(&entry.calls, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&entry.nanoseconds, nanoseconds, __ATOMIC_RELAXED);
    return;
  }
  __atomic_add_fetch(&memory->lost_calls, 1, __ATOMIC_RELAXED);
}

struct Search {
  const char* name;
  void* ours;
  void* found;
};

int look_into(dl_phdr_info* info, size_t, void* argument) {
  auto* search = static_cast<Search*>(argument);
  if (!info->dlpi_name || !*info->dlpi_name) return 0;
  void* library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return 0;
  void* found = dlsym(library, search->name);
  dlclose(library);
  if (!found || found == search->ours) return 0;
  search->found = found;
  return 1;
}

}  // namespace

/// The function that would have been called without us. A library that was opened with a scope of its own is not in
/// the order that RTLD_NEXT follows, so every loaded file is looked into then.
void* real_function(const char* name, void* ours) {
  void* next = dlsym(RTLD_NEXT, name);
  if (next && next != ours) return next;
  Search search{name, ours, nullptr};
  dl_iterate_phdr(look_into, &search);
  if (search.found) return search.found;
  static constexpr char kMessage[] = "fulcrum: a function was called that no loaded library has\n";
  if (write(2, kMessage, sizeof(kMessage) - 1) < 0) abort();
  abort();
}

}  // namespace fulcrum::record::inject

using fulcrum::record::inject::Function;

namespace fulcrum::record::inject {
namespace {

/// Calls the real function and notes the call. `slot` keeps the address, found on the first call.
template <class F, class... Arguments>
auto pass_on(F*& slot, const char* name, F* ours, Function function, int64_t a, int64_t b, int64_t c,
             Arguments... arguments) {
  F* call = __atomic_load_n(&slot, __ATOMIC_RELAXED);
  if (!call) {
    call = reinterpret_cast<F*>(real_function(name, reinterpret_cast<void*>(ours)));
    __atomic_store_n(&slot, call, __ATOMIC_RELAXED);
  }
  // One implementation calls another (cblas_sgemm its sgemm_): only the outer call is the program's.
  struct Clock {
    bool outer = depth++ == 0;
    uint64_t begin = now_ns();
    Function function;
    int64_t a, b, c;
    ~Clock() {
      --depth;
      if (outer) note(function, a, b, c, now_ns() - begin);
    }
  } clock{.function = function, .a = a, .b = b, .c = c};
  return call(arguments...);
}

}  // namespace
}  // namespace fulcrum::record::inject

#define FULCRUM_EXPORT extern "C" __attribute__((visibility("default")))
#define FULCRUM_PASS_ON(name, function, a, b, c, ...) \
  static decltype(&name) slot;                        \
  return fulcrum::record::inject::pass_on(slot, #name, &name, function, a, b, c, __VA_ARGS__)

// The interface of one real type; `t` is its letter.
#define FULCRUM_BLAS(t, Real)                                                                              \
  FULCRUM_EXPORT void cblas_##t##gemm(int order, int ta, int tb, int m, int n, int k, Real alpha,          \
                                      const Real* a, int lda, const Real* b, int ldb, Real beta, Real* c,  \
                                      int ldc) {                                                           \
    FULCRUM_PASS_ON(cblas_##t##gemm, Function::t##gemm, m, n, k, order, ta, tb, m, n, k, alpha, a, lda, b, \
                    ldb, beta, c, ldc);                                                                    \
  }                                                                                                        \
  FULCRUM_EXPORT void cblas_##t##gemv(int order, int ta, int m, int n, Real alpha, const Real* a, int lda, \
                                      const Real* x, int incx, Real beta, Real* y, int incy) {             \
    FULCRUM_PASS_ON(cblas_##t##gemv, Function::t##gemv, m, n, 0, order, ta, m, n, alpha, a, lda, x, incx,  \
                    beta, y, incy);                                                                        \
  }                                                                                                        \
  FULCRUM_EXPORT Real cblas_##t##dot(int n, const Real* x, int incx, const Real* y, int incy) {            \
    FULCRUM_PASS_ON(cblas_##t##dot, Function::t##dot, n, 0, 0, n, x, incx, y, incy);                       \
  }                                                                                                        \
  FULCRUM_EXPORT void cblas_##t##axpy(int n, Real alpha, const Real* x, int incx, Real* y, int incy) {     \
    FULCRUM_PASS_ON(cblas_##t##axpy, Function::t##axpy, n, 0, 0, n, alpha, x, incx, y, incy);              \
  }                                                                                                        \
  FULCRUM_EXPORT void t##gemm_(const char* ta, const char* tb, const int* m, const int* n, const int* k,   \
                               const Real* alpha, const Real* a, const int* lda, const Real* b,            \
                               const int* ldb, const Real* beta, Real* c, const int* ldc) {                \
    FULCRUM_PASS_ON(t##gemm_, Function::t##gemm, *m, *n, *k, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, \
                    c, ldc);                                                                               \
  }

FULCRUM_BLAS(s, float)
FULCRUM_BLAS(d, double)
