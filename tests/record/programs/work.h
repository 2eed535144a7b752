// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Work whose time is its count: a chain of multiplications in which each step waits for the one before, so that neither
// alignment nor the width of the machine changes what a step costs. Shares of time are then shares of steps.
#pragma once

#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))

static inline __attribute__((always_inline)) uint64_t chain(uint64_t x, long steps) {
  for (long i = 0; i < steps; ++i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : "+r"(x));
  }
  return x;
}

// Rounds of uneven length keep the pattern of the work off the beat of the sampling.
static inline long round_length(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return 100 + (long)(*state >> 58);
}
