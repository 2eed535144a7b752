// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Five functions with known shares: 40, 30, 15, 10 and 5 of 100, each below a caller; the argument is how many rounds.
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

NOINLINE uint64_t share_40(uint64_t x, long n) { return chain(x, 40 * n) + 1; }
NOINLINE uint64_t share_30(uint64_t x, long n) { return chain(x, 30 * n) + 2; }
NOINLINE uint64_t share_15(uint64_t x, long n) { return chain(x, 15 * n) + 3; }
NOINLINE uint64_t share_10(uint64_t x, long n) { return chain(x, 10 * n) + 4; }
NOINLINE uint64_t share_05(uint64_t x, long n) { return chain(x, 5 * n) + 5; }

// 55 and 45 of 100 below them.
NOINLINE uint64_t caller_55(uint64_t x, long n) { return share_40(x, n) ^ share_15(x, n); }
NOINLINE uint64_t caller_45(uint64_t x, long n) { return share_30(x, n) ^ share_10(x, n) ^ share_05(x, n); }

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 20000;
  uint64_t x = 1, state = 7;
  for (long i = 0; i < rounds; ++i) {
    const long n = round_length(&state);
    x += caller_55(x, n);
    x += caller_45(x, n);
  }
  printf("%llu\n", (unsigned long long)x);
  return 0;
}
