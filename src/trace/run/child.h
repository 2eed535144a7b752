// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The traced program: started, watched, asked to end.
#pragma once

#include <fulcrum/trace.h>

namespace fulcrum::trace {

/// Value of a variable that programs of ours inherit; nullopt: it is not set.
std::optional<std::string> inherited(std::string_view name);

/// Runs the command with `changes` to our environment until it ends; 128 + signal when it was killed. `tick` comes
/// about five times a second. Once options.stop is true the program is asked to end, each time less politely.
Result<int> run_child(const Options& options, const std::vector<std::pair<std::string, std::string>>& changes,
                      const std::function<void()>& tick);

}  // namespace fulcrum::trace
