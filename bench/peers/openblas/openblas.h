// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// OpenBLAS by dlopen, because the core it runs as must be chosen before it is loaded.
#pragma once

#include <string>

#include "part.h"

namespace fulcrum::peers::openblas {

enum { kRowMajor = 101, kNoTranspose = 111, kTranspose = 112 };

struct Library {
  float (*sdot)(int n, const float* x, int incx, const float* y, int incy) = nullptr;
  void (*sgemv)(int order, int transpose, int m, int n, float alpha, const float* a, int lda, const float* x,
                int incx, float beta, float* y, int incy) = nullptr;
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                int lda, const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
  void (*set_threads)(int count) = nullptr;
  int (*get_threads)() = nullptr;
  std::string core, version;
  bool loaded = false;
};
const Library& library();

/// The library's thread count for as long as this lives: others in the process use it too.
class Threads {
 public:
  explicit Threads(int count) : before_(library().get_threads()) { library().set_threads(count); }
  ~Threads() { library().set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

template <void (*kCall)(const fulcrum_args&), bool kAll>
fulcrum_status run(const fulcrum_args* a, void*, std::int64_t count) {
  const Threads scope(kAll ? usable_threads() : 1);
  return repeat(count, [a] { kCall(*a); });
}

/// Both thread counts: "openblas" on all usable threads, "openblas_t1" on one.
template <void (*kCall)(const fulcrum_args&)>
void add(Kernels& kernels, fulcrum_kernel entry) {
  entry.variant = "openblas";
  entry.threads = usable_threads();
  entry.run = run<kCall, true>;
  kernels.push_back(entry);
  if (usable_threads() == 1) return;
  entry.variant = "openblas_t1";
  entry.threads = 1;
  entry.run = run<kCall, false>;
  kernels.push_back(entry);
}

void add_dense(Kernels& kernels);
void add_cosine(Kernels& kernels);

}  // namespace fulcrum::peers::openblas
