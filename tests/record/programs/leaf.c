// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A library with one leaf that sets up no frame, as those of libm do.
#include "work.h"

__attribute__((visibility("default"))) NOINLINE uint64_t library_leaf(uint64_t x, long steps) {
  return chain(x, steps) + 1;
}
