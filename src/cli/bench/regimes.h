// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// --regime and --path: where the data of a call is before and after it, and how it travels.
#pragma once

#include <fulcrum/backends.h>

#include "cli/context.h"
#include "cli/options.h"

namespace fulcrum::cli {

/// A regime as asked for: with the calls per transfer of `reuse`, and the path where operands travel.
struct RegimeChoice {
  Regime regime = Regime::host;
  std::int64_t reuse = 1;
  std::string path = {};

  std::string text() const;  ///< "resident", "reuse=16": as --regime takes it
};

bool is_gpu(const backends::Kernel& kernel);
bool any_gpu(const std::vector<backends::Kernel>& kernels);

/// What --regime takes: the regimes, and reuse with an example of its number.
Names regime_names();
/// Paths of the GPU backends that are there.
Names path_names();

/// Those of --regime, else host for CPU kernels and roundtrip and resident for GPU kernels; host is always among them
/// when there are CPU kernels. `more`: regimes of a suite. One choice for every path.
Result<std::vector<RegimeChoice>> chosen_regimes(const Options& options,
                                                 const std::vector<backends::Kernel>& kernels,
                                                 const std::vector<Regime>& more);

}  // namespace fulcrum::cli
