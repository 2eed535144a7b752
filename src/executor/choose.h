// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of several priced candidates a call takes. Pure.
#pragma once

#include "executor/predictor.h"

namespace fulcrum::executor {

struct Picked {
  int best = -1, runner_up = -1;  // -1: there is none
};
/// The cheapest of `possible`; where others are as cheap within the doubt, the one with the lowest `order` of them. The
/// runner-up is the cheapest of the rest.
Picked pick(const Estimates& costs, Mask possible, Mask on_device, std::span<const int> order);

/// CPU before device, few threads before many, then as numbered.
std::vector<int> order_of(std::span<const Candidate> candidates);

/// floor(log2(flops + bytes)) in 0..63.
inline std::uint8_t size_class_of(double flops, double bytes) {
  const double size = flops + bytes > 1 ? flops + bytes : 1;
  const std::uint64_t octave = (std::bit_cast<std::uint64_t>(size) >> 52) - 1023;
  return static_cast<std::uint8_t>(octave < 63 ? octave : 63);
}

}  // namespace fulcrum::executor
