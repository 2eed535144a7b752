// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a CPU program: how long it stayed in its OpenMP target regions, data environment included. Those are
// the stretches that its CUDA twin spends between the first upload and the last download. Written to $REGION_FILE.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int depth;
static double began, inside, parallel;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void enter(void) {
  if (depth++ == 0) began = now();
}
static void leave(void) {
  if (--depth == 0) inside += now() - began;
}
static void* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (!found) abort();
  return found;
}

void GOMP_target_data_ext(int device, size_t n, void** hosts, size_t* sizes, unsigned short* kinds) {
  void (*real)(int, size_t, void**, size_t*, unsigned short*) = next("GOMP_target_data_ext");
  enter();
  real(device, n, hosts, sizes, kinds);
}
void GOMP_target_end_data(void) {
  void (*real)(void) = next("GOMP_target_end_data");
  real();
  leave();
}
void GOMP_target_ext(int device, void (*work)(void*), size_t n, void** hosts, size_t* sizes,
                     unsigned short* kinds, unsigned flags, void** depend, void** args) {
  void (*real)(int, void (*)(void*), size_t, void**, size_t*, unsigned short*, unsigned, void**, void**) =
      next("GOMP_target_ext");
  enter();
  real(device, work, n, hosts, sizes, kinds, flags, depend, args);
  leave();
}
void GOMP_parallel(void (*work)(void*), void* data, unsigned threads, unsigned flags) {
  void (*real)(void (*)(void*), void*, unsigned, unsigned) = next("GOMP_parallel");
  const double start = now();
  real(work, data, threads, flags);
  parallel += now() - start;
}

__attribute__((destructor)) static void tell(void) {
  const char* file = getenv("REGION_FILE");
  FILE* out = file ? fopen(file, "w") : NULL;
  if (!out) return;
  fprintf(out, "{\"region\": %.9f, \"parallel\": %.9f}\n", inside, parallel);
  fclose(out);
}
