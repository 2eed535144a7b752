// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One case in a process of its own: this very program, called again with the hidden option --worker, which prints
// the lines of the case instead of a table.
#pragma once

#include <fulcrum/measure.h>

#include "cli/bench/plan.h"
#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// The command line of one case, program path first.
std::vector<std::string> worker_command(const std::string& program, const Group& group,
                                        const backends::Kernel& kernel, const measure::Config& config);
/// Runs it and reads the lines back.
Result<Measurement> run_worker(const std::vector<std::string>& command, const ProcessOptions& process = {});

/// The path of this program, however it was started.
Result<std::filesystem::path> own_program();

/// `bench ... --worker`: measures the one case of the plan and prints its lines.
Result<Exit> work(const Options& options, Context& context);

}  // namespace fulcrum::cli
