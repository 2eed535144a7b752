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

Result<std::vector<Target>> targets_beside(const Machine& host, const Options& options) {
  std::vector<std::string> names = options.list("gpu");
  if (names.empty()) names = {host.gpus.empty() ? std::string(kMeasuredDevice) : "this"};
  std::vector<Target> targets;
  for (const std::string& name : names) {
    if (name == "none") continue;
    if (name == "this") {
      if (host.gpus.empty()) {
        return Error{
            Code::environment, "this machine has no GPU that the program can use",
            "`fulcrum doctor` says why; `--gpu h200` decides for a device that was measured elsewhere"};
      }
      targets.push_back({.name = name, .profile = host, .here = true});
    } else {
      FULCRUM_TRY(Target target, shipped(name));
      targets.push_back(std::move(target));
    }
    if (options.has("price")) targets.back().price = options.number("price");
  }
  return targets;
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
  return targets_beside(stock.host(), options);
}

Status check_targets(const Options& options) {
  Result<Machine> host = machine::load("this");
  if (!host.ok()) {
    if (host.error().code != Code::not_found) return host.error();
    host = Machine{.gpus = machine::discover_gpus()};
  }
  FULCRUM_CHECK(targets_beside(*host, options));
  return {};
}

Result<Regime> regime_of_gpu(const std::string& name, std::string_view asker) {
  FULCRUM_TRY(const Regime regime, parse_enum<Regime>("regime", name));
  if (regime != Regime::host && regime != Regime::first_call) return regime;
  return Error{Code::usage, fmt::format("{} has no regime '{}'", asker, name),
               "use roundtrip, resident, reuse, overlapped or managed"};
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
