// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A parent with 30 of 100 steps and a child with 70; with a second argument the child becomes that program instead.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

NOINLINE uint64_t parent_30(uint64_t x, long n) { return chain(x, 30 * n) + 1; }
NOINLINE uint64_t child_70(uint64_t x, long n) { return chain(x, 70 * n) + 2; }

int main(int count, char** arguments) {
  const long rounds = count > 1 ? atol(arguments[1]) : 20000;
  const pid_t child = fork();
  uint64_t x = 1, state = 7;
  if (child == 0) {
    if (count > 2) {
      execl(arguments[2], arguments[2], arguments[1], (char*)NULL);
      _exit(127);
    }
    for (long i = 0; i < rounds; ++i) x += child_70(x, round_length(&state));
    _exit(x == 0);
  }
  for (long i = 0; i < rounds; ++i) x += parent_30(x, round_length(&state));
  int status = 0;
  waitpid(child, &status, 0);
  printf("%llu %d\n", (unsigned long long)x, WEXITSTATUS(status));
  return WEXITSTATUS(status);
}
