// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The ways a bench command line can go.
#pragma once

#include "cli/bench/journal.h"
#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// What to measure, how to print it, and the record to continue; without one a new record is made as soon as the
/// request is known to be good.
struct Request {
  const Options& options;
  std::string format;
  std::optional<Journal> resumed;
};

/// Ops on kernels.
Result<Exit> bench_kernels(Request request, Context& context);
/// Whole commands: `bench -- CMD`.
Result<Exit> bench_commands(Request request, Context& context);
/// `bench --self-test`.
Result<Exit> bench_self_test(const Options& options, Context& context);
/// `bench --regret`.
Result<Exit> bench_regret(const Options& options, Context& context);

}  // namespace fulcrum::cli
