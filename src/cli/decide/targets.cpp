// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See targets.h.
#include "cli/decide/targets.h"

#include <fmt/format.h>
#include <fulcrum/machine.h>

namespace fulcrum::cli {
namespace {

/// The device whose measurements are shipped: other profiles take their factors from it, with grade D.
constexpr std::string_view kMeasuredDevice = "h200";

Names gpu_names() {
  Names names = {"none"};
  for (const machine::StoredProfile& profile : machine::list()) {
    if (profile.shipped) names.push_back(profile.name);
  }
  return names;
}

Result<Target> shipped(const std::string& name) {
  FULCRUM_TRY(Machine profile, machine::load(name));
  if (profile.gpus.empty()) {
    return Error{Code::usage, fmt::format("the profile '{}' has no GPU", name),
                 "`fulcrum machine --list` shows those that have one"};
  }
  return Target{.name = name, .profile = std::move(profile)};
}

}  // namespace

std::vector<Option> target_options() {
  return {{.name = "gpu",
           .value = "NAME",
           .help = "decide for this GPU: `this` or a profile of `fulcrum machine --list`; `none` leaves the "
                   "CPU alone "
                   "(default: this machine's, or else h200)",
           .list = true,
           .choices = gpu_names,
           .what = "GPU",
           .open = true},
          {.name = "price",
           .value = "PER_HOUR",
           .help = "of the GPU, in any currency: gives the cost of a million calls",
           .kind = Kind::number}};
}

Option budget_option(std::string_view fallback) {
  return {.name = "budget",
          .value = "SECONDS",
          .help = "begin no further measurement after so many",
          .kind = Kind::number,
          .fallback = fallback,
          .above = true};
}

Positional op_position(bool repeat) {
  return {.name = "OP",
          .help = "an op; `fulcrum ops` lists them",
          .required = true,
          .repeat = repeat,
          .choices = op_names,
          .what = "op"};
}

Result<std::vector<Target>> chosen_targets(const Options& options, const Stock& stock) {
  std::vector<std::string> names = options.list("gpu");
  if (names.empty()) names = {stock.host().gpus.empty() ? std::string(kMeasuredDevice) : "this"};
  std::vector<Target> targets;
  for (const std::string& name : names) {
    if (name == "none") continue;
    if (name == "this") {
      if (stock.host().gpus.empty()) {
        return Error{
            Code::environment, "this machine has no GPU that the program can use",
            "`fulcrum doctor` says why; `--gpu h200` decides for a device that was measured elsewhere"};
      }
      targets.push_back({.name = name, .profile = stock.host(), .here = true});
    } else {
      FULCRUM_TRY(Target target, shipped(name));
      targets.push_back(std::move(target));
    }
    if (options.has("price")) targets.back().price = options.number("price");
  }
  return targets;
}

Result<model::Model> model_of(const Stock& stock, const Target* target) {
  model::Calibration host(stock.host(), stock.rows(false));
  if (target == nullptr) return model::Model(stock.host(), std::move(host));
  if (target->here) {
    return model::Model(stock.host(), std::move(host), target->profile,
                        model::Calibration(target->profile, stock.rows(true)));
  }
  FULCRUM_TRY(const Machine measured, machine::load(kMeasuredDevice));
  FULCRUM_TRY(const std::vector<Measurement> rows, machine::measurements(kMeasuredDevice));
  return model::Model(stock.host(), std::move(host), target->profile, model::Calibration(measured, rows));
}

}  // namespace fulcrum::cli
