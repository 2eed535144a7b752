// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A table for a machine that was never calibrated: closed forms over its profile, or over what such machines usually
// have, and the times that the program ships of devices like the one here.
#pragma once

#include "executor/closed_form.h"
#include "executor/points.h"

namespace fulcrum::executor {

/// Points of every op for the candidates there are, of grade C or D and with a wide sigma.
TableData prior_data(const backends::Backend* device);
/// The same for one op: what a calibration that left it out starts from.
class Prior {
 public:
  explicit Prior(const backends::Backend* device);
  ~Prior();
  OpPoints points_of(const ops::Op& op, std::span<const Candidate> candidates) const;
  const Costs& costs() const;
  const std::string& description() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Caches of this machine and of the device (prior_machine.cpp).
Caches caches_of(const backends::Backend* device);

}  // namespace fulcrum::executor
