// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The instruction set that SIMD kernels run on, as the kernel tables show it.
#pragma once

namespace fulcrum::backends::simd {

/// Lower-case name of the set that a dispatched call takes now ("avx3", "avx2", "sse4", "ssse3", "scalar").
const char* isa_name();

/// Applies FULCRUM_FORCE_ISA, once. A name that this build or CPU lacks is left to check_environment() to report.
void apply_forced_isa();

}  // namespace fulcrum::backends::simd
