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
/// Who is preferred where candidates are as fast as each other, the lowest first; those that nothing tells apart have the
/// same number.
struct Preference {
  std::vector<int> in_short, in_long;  // calls
  std::vector<int> families = {};  // the same number, above 0: one kernel on several threads, more or fewer
  /// `sparing`: threads that a call holds are lost to others.
  const std::vector<int>& at(float log_seconds, bool sparing = false) const;
  std::size_t candidates() const { return in_short.size(); }
  bool are_widths(std::size_t a, std::size_t b) const {
    return a < families.size() && b < families.size() && families[a] > 0 && families[a] == families[b];
  }
};
/// CPU before device; few threads before many in short calls and many before few in long ones.
Preference preference_of(std::span<const Candidate> candidates);

/// The cheapest of `possible`; where others are as cheap within the doubt, the preferred one of them. The runner-up is the
/// cheapest of the rest.
Picked pick(const Estimates& costs, Mask possible, Mask on_device, const Preference& preference,
            bool sparing = false);

/// Why a call takes more threads of a kernel that is said to be faster on fewer of them; empty: it does not.
std::string tie_note(const Explanation& out, std::span<const Candidate> candidates);

/// floor(log2(flops + bytes)) in 0..63.
inline std::uint8_t size_class_of(double flops, double bytes) {
  const double size = flops + bytes > 1 ? flops + bytes : 1;
  const std::uint64_t octave = (std::bit_cast<std::uint64_t>(size) >> 52) - 1023;
  return static_cast<std::uint8_t>(octave < 63 ? octave : 63);
}

}  // namespace fulcrum::executor
