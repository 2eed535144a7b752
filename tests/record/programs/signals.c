// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A timer's signals interrupt the work and work on their own: their stacks go through the kernel's signal frame.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "work.h"

static volatile uint64_t sink = 1;

NOINLINE uint64_t handler_work(uint64_t x) { return chain(x, 300000) + 1; }
static void handle(int number) { sink += handler_work(sink) + (uint64_t)number; }
NOINLINE uint64_t interrupted_work(uint64_t x, long n) { return chain(x, 1000 * n) + 1; }

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 2000;
  struct sigaction action = {0};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval every = {{0, 8000}, {0, 8000}};
  setitimer(ITIMER_PROF, &every, NULL);
  uint64_t x = 1, state = 7;
  for (long i = 0; i < rounds; ++i) x += interrupted_work(x, round_length(&state));
  printf("%llu\n", (unsigned long long)(x + sink));
  return 0;
}
