// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic that gives subnormal numbers: some CPUs take a hundred times as long for it, others no longer than usual.
#pragma once

namespace fulcrum::backends::simd {

/// Whether this one does: seen by trial at the first question, in some microseconds.
bool subnormals_are_slow();

/// What subnormals_are_slow() says from now on; for tests, which know no CPU.
void suppose_subnormals_are_slow(bool slow);

}  // namespace fulcrum::backends::simd
