// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole command line as one function, for a program of yours that registers its own ops and kernels first
// (examples/your_own_op.cpp). It comes with the library fulcrum::main, not with fulcrum::fulcrum.
#pragma once

namespace fulcrum::cli {

/// Runs the command line and returns the exit code of the process: 0 fine, 1 a finding or regression where a gate
/// was asked for, 2 usage, 3 environment, 4 inconclusive, 5 invalid, 130 interrupted.
int run(int argc, const char* const* argv);

}  // namespace fulcrum::cli
