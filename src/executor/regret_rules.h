// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules that others decide by, as baselines of the regret: one place for everything, fixed thresholds, a power law.
#pragma once

#include <map>

#include "executor/points.h"
#include "executor/regret.h"

namespace fulcrum::executor {

class RegretRules {
 public:
  RegretRules(const backends::Backend* device, const Options& options);
  const std::vector<std::pair<std::string, std::string>>& names() const {
    return names_;
  }  // and what they mean
  /// The candidate that each rule takes; -1: it has none.
  std::vector<int> answers(const OpTable& table, const Args& args, const Traffic& traffic,
                           Mask possible) const;

 private:
  int by_power_law(const OpTable& table, const Args& args, const Traffic& traffic, Mask possible) const;
  bool has_device_;
  Costs costs_;
  std::map<std::string, std::vector<std::optional<PowerLaw>>> laws_;  // by op, then candidate
  std::vector<std::pair<std::string, std::string>> names_;
};

}  // namespace fulcrum::executor
