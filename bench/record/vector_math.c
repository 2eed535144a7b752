// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Nanoseconds an element of the math library's functions, as the compiler builds a loop of them: built once with calls of
// scalar functions and once with vector ones by vector_math.py, which compares the two. Prints "NAME NANOSECONDS", the
// fastest of several passes over data in the first-level cache.
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { kElements = 1024, kTurns = 40, kPasses = 15 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Arguments between low and high, in no order that a branch could learn.
#define MEASURE(name, type, low, high, call)                                                \
  static type name##_##type##_x[kElements], name##_##type##_y[kElements];                   \
  __attribute__((noinline)) static void name##_##type##_loop(void) {                        \
    for (int i = 0; i < kElements; ++i) {                                                   \
      const type x = name##_##type##_x[i];                                                  \
      name##_##type##_y[i] = call;                                                          \
    }                                                                                       \
  }                                                                                         \
  static void name##_##type(void) {                                                         \
    unsigned state = 1;                                                                     \
    for (int i = 0; i < kElements; ++i) {                                                   \
      state = state * 1664525u + 1013904223u;                                               \
      name##_##type##_x[i] = (type)((low) + ((high) - (low)) * (state >> 8) / 0x1p24);      \
    }                                                                                       \
    double best = 1e9;                                                                      \
    for (int pass = 0; pass < kPasses; ++pass) {                                            \
      const double began = now();                                                           \
      for (int turn = 0; turn < kTurns; ++turn) {                                           \
        name##_##type##_loop();                                                             \
        __asm__ volatile("" : : "r"(name##_##type##_y), "r"(name##_##type##_x) : "memory"); \
      }                                                                                     \
      const double seconds = (now() - began) / (kTurns * (double)kElements);                \
      if (seconds < best) best = seconds;                                                   \
    }                                                                                       \
    printf("%s %.5f\n", #name, 1e9 * best);                                                 \
  }

#define EACH(X)                            \
  X(exp, double, -5, 5, exp(x))            \
  X(expf, float, -5, 5, expf(x))           \
  X(log, double, 0.1, 10, log(x))          \
  X(logf, float, 0.1, 10, logf(x))         \
  X(pow, double, 0.1, 10, pow(x, x))       \
  X(powf, float, 0.1, 10, powf(x, x))      \
  X(sin, double, -3, 3, sin(x))            \
  X(sinf, float, -3, 3, sinf(x))           \
  X(cos, double, -3, 3, cos(x))            \
  X(cosf, float, -3, 3, cosf(x))           \
  X(tan, double, -1, 1, tan(x))            \
  X(tanf, float, -1, 1, tanf(x))           \
  X(tanh, double, -3, 3, tanh(x))          \
  X(tanhf, float, -3, 3, tanhf(x))         \
  X(atan, double, -3, 3, atan(x))          \
  X(atanf, float, -3, 3, atanf(x))         \
  X(atan2, double, -3, 3, atan2(x, 1.5))   \
  X(atan2f, float, -3, 3, atan2f(x, 1.5f)) \
  X(asin, double, -0.9, 0.9, asin(x))      \
  X(asinf, float, -0.9, 0.9, asinf(x))     \
  X(acos, double, -0.9, 0.9, acos(x))      \
  X(acosf, float, -0.9, 0.9, acosf(x))     \
  X(erf, double, -3, 3, erf(x))            \
  X(erff, float, -3, 3, erff(x))           \
  X(exp2, double, -5, 5, exp2(x))          \
  X(exp2f, float, -5, 5, exp2f(x))         \
  X(log2, double, 0.1, 10, log2(x))        \
  X(log2f, float, 0.1, 10, log2f(x))       \
  X(cbrt, double, 0.1, 10, cbrt(x))        \
  X(cbrtf, float, 0.1, 10, cbrtf(x))

EACH(MEASURE)

int main(void) {
#define RUN(name, type, low, high, call) name##_##type();
  EACH(RUN)
  return 0;
}
