// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A recursion as deep as the second argument says, with the work at its bottom.
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

NOINLINE uint64_t bottom(uint64_t x, long n) { return chain(x, 1000 * n) + 1; }

NOINLINE uint64_t descend(uint64_t x, long n, long depth) {
  volatile uint64_t frame[4] = {x, x, x, x};
  if (depth == 0) return bottom(x, n);
  return descend(x, n, depth - 1) + frame[depth & 3];
}

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 2000;
  const long depth = count > 2 ? atol(arguments[2]) : 200;
  uint64_t x = 1, state = 7;
  for (long i = 0; i < rounds; ++i) x += descend(x, round_length(&state), depth);
  printf("%llu\n", (unsigned long long)x);
  return 0;
}
