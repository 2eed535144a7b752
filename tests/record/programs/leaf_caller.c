// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The function that matters has 93 of 100 steps, 85 of them in a leaf of a library, which is linked or opened at run
// time (second argument: its path). A walk along frame pointers starts at the leaf's caller's caller and misses it.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

typedef uint64_t (*leaf_function)(uint64_t, long);

NOINLINE uint64_t hot_93(leaf_function leaf, uint64_t x, long n) {
  x += leaf(x, 85 * n);
  return chain(x, 8 * n) + 1;
}
NOINLINE uint64_t rest_07(uint64_t x, long n) { return chain(x, 7 * n) + 2; }
NOINLINE uint64_t both(leaf_function leaf, uint64_t x, long n) { return hot_93(leaf, x, n) ^ rest_07(x, n); }

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 20000;
  void* library = count > 2 ? dlopen(arguments[2], RTLD_NOW) : NULL;
  leaf_function leaf = library ? (leaf_function)dlsym(library, "library_leaf") : NULL;
  if (!leaf) return 1;
  uint64_t x = 1, state = 7;
  for (long i = 0; i < rounds; ++i) x += both(leaf, x, round_length(&state));
  printf("%llu\n", (unsigned long long)x);
  return 0;
}
