// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Three threads with 60, 30 and 10 of 100 steps.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

static long rounds = 20000;

#define BODY(share)                                                                                 \
  NOINLINE uint64_t thread_work_##share(uint64_t x, long n) { return chain(x, share * n) + share; } \
  static void* run_##share(void* out) {                                                             \
    uint64_t x = 1, state = 7;                                                                      \
    pthread_setname_np(pthread_self(), "worker_" #share);                                           \
    for (long i = 0; i < rounds; ++i) x += thread_work_##share(x, round_length(&state));            \
    *(uint64_t*)out = x;                                                                            \
    return NULL;                                                                                    \
  }
BODY(60)
BODY(30)
BODY(10)

int main(int count, char** arguments) {
  if (count > 1) rounds = atol(arguments[1]);
  pthread_t threads[3];
  uint64_t out[3];
  pthread_create(&threads[0], NULL, run_60, &out[0]);
  pthread_create(&threads[1], NULL, run_30, &out[1]);
  pthread_create(&threads[2], NULL, run_10, &out[2]);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%llu\n", (unsigned long long)(out[0] + out[1] + out[2]));
  return 0;
}
