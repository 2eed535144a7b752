// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One function spends its time in the mathematics library.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

NOINLINE double calls_libm(double x, long n) {
  for (long i = 0; i < n; ++i) x = sin(x + 1.0);
  return x;
}
NOINLINE uint64_t calls_nothing(uint64_t x, long n) { return chain(x, n) + 1; }

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 20000;
  double x = 0.5;
  uint64_t y = 1, state = 7;
  for (long i = 0; i < rounds; ++i) {
    const long n = round_length(&state);
    x = calls_libm(x, 10 * n);
    y += calls_nothing(y, 10 * n);
  }
  printf("%g %llu\n", x, (unsigned long long)y);
  return 0;
}
