// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Regions with known entries and shares, nested, in C: outer has 100 of 120 steps, of which inner has 60. A child process
// counts into the same regions.
#include <fulcrum/region.h>
#include <stdio.h>
#include <sys/wait.h>

#include "work.h"

NOINLINE uint64_t inner(uint64_t x, long n) {
  FULCRUM_REGION("inner", 60 * n);
  return chain(x, 60 * n) + 1;
}
NOINLINE uint64_t outer(uint64_t x, long n) {
  FULCRUM_REGION("outer", 0);
  x = chain(x, 40 * n);
  return inner(x, n) + 1;
}

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 10000;
  uint64_t x = 1;
  const pid_t child = fork();
  for (long i = 0; i < rounds; ++i) {
    x += outer(x, 100);
    x = chain(x, 20 * 100);
  }
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  printf("%llu\n", (unsigned long long)x);
  return 0;
}
