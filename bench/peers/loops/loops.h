// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops as anybody would write them, left to the compiler. Compiled twice: as `autovec` with -O3 and the peers'
// level, which keeps the order of every sum, and as `fastmath` with -ffast-math on top, which does not and takes
// vector versions of exp and tanh from the C library.
#pragma once

#include "part.h"

namespace fulcrum::peers::loops {

#ifdef FULCRUM_PEERS_FAST_MATH
inline constexpr const char* kVariant = "fastmath";
inline constexpr bool kFastMath = true;
#else
inline constexpr const char* kVariant = "autovec";
inline constexpr bool kFastMath = false;
#endif

void add_vectors(Kernels& kernels);
void add_images(Kernels& kernels);
void add_recurrent(Kernels& kernels);
void add_graph(Kernels& kernels);

}  // namespace fulcrum::peers::loops
