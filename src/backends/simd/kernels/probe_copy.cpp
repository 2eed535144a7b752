// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// probe_copy: the loop of every element-wise kernel with nothing to compute.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/simd/kernels/probe_copy.cpp"
#include <hwy/foreach_target.h>

#include "backends/simd/elementwise-inl.h"

FULCRUM_MAP_BEGIN
struct Same {
  HWY_INLINE Floats operator()(Floats x) const { return x; }
};
FULCRUM_MAP_END

FULCRUM_PROBE_KERNEL(probe_copy, OneInput, Same)
