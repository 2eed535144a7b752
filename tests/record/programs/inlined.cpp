// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A template inlined into a method, with debug information: names, inlined frames, lines.
#include <cstdio>
#include <cstdlib>

#include "work.h"

namespace demo {

template <class T>
inline __attribute__((always_inline)) T innermost(T x, long n) {
  return static_cast<T>(chain(static_cast<uint64_t>(x), n));
}

struct Machine {
  NOINLINE uint64_t turn(uint64_t x, long n) const { return innermost<uint64_t>(x, n) + 1; }
};

}  // namespace demo

int main(int count, char** arguments) {
  const long rounds = count > 1 ? std::atol(arguments[1]) : 20000;
  uint64_t x = 1, state = 7;
  for (long i = 0; i < rounds; ++i) x += demo::Machine().turn(x, 100 * round_length(&state));
  std::printf("%llu\n", static_cast<unsigned long long>(x));
  return 0;
}
