// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Scoring of decisions from times alone. The oracle is picked on half of the rounds and scored, like the choice, on the
// other half; then the halves swap: the least of several noisy medians would be too low, and every choice too bad. The
// halves are every second of several visits, some time apart: what disturbs a machine for a while is in one of them and
// must not tell the oracle what to take.
#pragma once

#include <fulcrum/executor/regret.h>

#include <array>
#include <span>
#include <vector>

namespace fulcrum::executor {

/// One call, timed in every way that can do it.
struct RegretTrial {
  /// By half, way, then round of all its visits; no times: cannot do it.
  std::array<std::vector<std::vector<double>>, 2> seconds;
  std::vector<std::vector<double>>
      before;  // the same of a visit before these, which scores nothing; may be empty
  int chosen = -1;
  double overhead_seconds = 0;  // of choosing
  Band band = Band::none;
  std::vector<int> rules;  // what each baseline would take; -1: nothing
  /// What is chosen after calls that took the times of each half, and what trials added to a call; -1: nothing.
  std::array<int, 2> after{-1, -1};
  std::array<double, 2> explored_seconds{};
};

struct RegretResult {
  double regret = 1;
  double hindsight =
      1;            // of the way that was fastest in all rounds, decided for nothing: what no table can beat
  int oracle = -1;  // of all rounds
  double chosen_seconds = 0, oracle_seconds = 0;
  double after = 0;           // regret of what was chosen after calls; 0: nothing was
  double before = 0;          // of the way that was fastest in the visit before; 0: there was none
  std::vector<double> rules;  // regret of each baseline; 0: it has no answer
};
/// Of a way that has times in one half alone these count in both halves.
RegretResult score(const RegretTrial& trial);

/// `bands` by regret. Regrets of 0 are left out.
RegretScore summarise(std::span<const double> regrets, std::span<const Band> bands);

/// seconds = exp(a) * size^b through all times of a way; none below two sizes.
struct PowerLaw {
  double log_factor = 0, exponent = 1;
  double seconds(double size) const;
};
std::optional<PowerLaw> fit_power_law(std::span<const std::pair<double, double>> size_and_seconds);

}  // namespace fulcrum::executor
