// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Parallel loops with known numbers of iterations: n of them twice, n * 40 as one space, 77 given out by turns.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static double turn(int at) {
  double sum = 0;
  for (int i = 0; i < 20000; ++i) sum += sqrt((double)(at + i));
  return sum;
}

__attribute__((noinline)) static void spread(double *out, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; ++i) out[i] = turn(i);
}

__attribute__((noinline)) static void flat(double *out, int n) {
#pragma omp parallel for collapse(2)
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < 40; ++j) out[i] = turn(j) + i;
}

__attribute__((noinline)) static void by_turns(double *out, int n) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; ++i) out[i] = turn(i);
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 100;
  double *out = calloc(n > 77 ? n : 77, sizeof(double));
  if (!out) return 1;
  spread(out, n);
  spread(out, n);
  flat(out, n);
  by_turns(out, 77);
  printf("%g\n", out[n / 2]);
  free(out);
  return 0;
}
