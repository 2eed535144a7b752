// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the executor decides by times of this machine, in its own words.
#pragma once

#include <fulcrum/core.h>

namespace fulcrum::cli {

struct Calibration {
  bool there = false;  // else the executor starts from what the program ships
  std::string text;    // when it was measured, on what, and what speaks against it
  std::string advice;  // empty: it is there, and the kernels are still those that were measured
};
/// Looks at the table that executors of this machine load; measures nothing.
Result<Calibration> look_for_calibration();

}  // namespace fulcrum::cli
