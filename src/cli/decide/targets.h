// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPUs that a decision is made for: the one of this machine, or profiles shipped with the program, measured or
// from data sheets; and the model of this machine with one of them.
#pragma once

#include <fulcrum/model.h>

#include "cli/decide/stock.h"
#include "cli/options.h"

namespace fulcrum::cli {

struct Target {
  std::string name;   // as on the command line; "this" for the machine's own GPU
  Machine profile;    // its first GPU is meant
  bool here = false;  // in this machine: measured, not predicted
  double price = 0;   // an hour; 0: not said
};

/// The options --gpu and --price.
std::vector<Option> target_options();
/// The option --budget of whatever measures, and the position OP.
Option budget_option(std::string_view fallback);
Positional op_position(bool repeat = false);
/// What --gpu names; without it the GPU of this machine, or else the profile of the one device that was measured for
/// this program. `none`: an empty list.
Result<std::vector<Target>> chosen_targets(const Options& options, const Stock& stock);
/// What is wrong with --gpu, before this machine is measured.
Status check_targets(const Options& options);
/// A regime that calls of a GPU are predicted in; the error begins with `asker`: "a plan has no regime 'host'".
Result<Regime> regime_of_gpu(const std::string& name, std::string_view asker);

/// This machine's CPU with the GPU of `target`, calibrated by what was measured on either.
Result<model::Model> model_of(const Stock& stock, const Target* target);

}  // namespace fulcrum::cli
