// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of rules: those of list.def, in its order.
#include <fulcrum/diagnose.h>

namespace fulcrum::diagnose {

#define FULCRUM_RULE(name) Rule name();
#include "diagnose/rules/list.def"
#undef FULCRUM_RULE

std::span<const Rule> rules() {
  static const std::vector<Rule> all = {
#define FULCRUM_RULE(name) name(),
#include "diagnose/rules/list.def"
#undef FULCRUM_RULE
  };
  return all;
}

}  // namespace fulcrum::diagnose
