// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Preloaded into a CPU program: how long it stayed in its OpenMP target regions, data environment included ("region").
// Those are the stretches in which its CUDA twin holds memory on the device. Written to $REGION_FILE, with the time from the
// beginning of the first to the end of the last one ("span").
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int depth;
static double first, last, began, inside, parallel;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void enter(void) {
  if (depth++ == 0) began = now();
  if (first == 0) first = began;
}
static void leave(void) {
  if (--depth > 0) return;
  last = now();
  inside += last - began;
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
  fprintf(out, "{\"region\": %.9f, \"span\": %.9f, \"parallel\": %.9f}\n", inside, last - first, parallel);
  fclose(out);
}
