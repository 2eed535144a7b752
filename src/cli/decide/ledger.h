// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The prediction ledger on disk: JSON lines, only ever appended to. Predictions are written before the device run that
// checks them.
#pragma once

#include "cli/command.h"
#include "cli/decide/subject.h"

namespace fulcrum::cli {

/// --predictions FILE: appends the GPU predictions of the subject, round trip and resident, for every target.
Status write_predictions(const Options& options, const Subject& subject, const Stock& stock,
                         const std::vector<Target>& targets, Context& context);
/// --verify LEDGER --results FILE: appends what was measured and prints the error distribution.
Result<Exit> verify_ledger(const Options& options, Context& context);

}  // namespace fulcrum::cli
