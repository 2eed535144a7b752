// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Works a little and sleeps 20 ms, as often as the argument says; then ends with the code of the second.
#include <stdlib.h>
#include <time.h>

#include "work.h"

static volatile uint64_t sink;

NOINLINE void works_before_sleep(void) { sink = chain(sink, 3000000); }
NOINLINE void sleeps(void) {
  const struct timespec pause = {0, 20000000};
  works_before_sleep();
  nanosleep(&pause, NULL);
}

int main(int count, char** arguments) {
  const long times = count > 1 ? atol(arguments[1]) : 20;
  for (long i = 0; i < times; ++i) sleeps();
  return count > 2 ? atoi(arguments[2]) : 0;
}
