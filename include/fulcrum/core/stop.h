// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// That the program was asked to stop, for work that takes longer than a person waits. The command line's signal handler
// asks; loops that build something large look.
#pragma once

namespace fulcrum {

/// Safe in a signal handler.
void ask_to_stop() noexcept;
bool asked_to_stop() noexcept;
/// For a program that goes on all the same.
void forget_stop() noexcept;

}  // namespace fulcrum
