// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What many short windows say about a ceiling. Noise only ever takes time away, so the ceiling is in the fastest
// windows; but one window alone may owe its speed to a moment of turbo or to a torn clock read.
#pragma once

#include <fulcrum/core.h>

#include <span>

namespace fulcrum::machine {

/// Of seconds per unit of work: `value` is what a hundredth of the windows beats, one of them at least (where there are
/// two) and four at most; [low, high] reaches from the fastest to the lower quartile. Rejected: mean and median, which
/// measure the neighbours; a plain hundredth, which does so too where neighbours leave less than that alone (three runs
/// on a shared virtual machine: L3 latency 9 % apart, its fastest windows 3 %); the minimum, which one torn clock read
/// decides. NaN if empty.
Quantity best_cost(std::vector<double> costs);
/// The same as work per second.
Quantity best_rate(const std::vector<double>& costs);

/// The windows of one probe: costs in the order of time and the first window of each turn. `group` turns in a row are
/// one of each kind, where kinds take turns.
struct Turns {
  std::span<const double> costs;
  std::span<const std::size_t> begins;
  std::size_t group = 1;
};
/// Which turns speak for all of them: `best`: none, the best windows of all count; `eighth`,
/// `quartile`, `middle`: the one that so many of them beat; `mean`: the half of them around the middle, by their mean.
enum class Usual { best, eighth, quartile, middle, mean };
/// For what a machine is not always as good at: the clock of a core goes up for seconds while its neighbours are idle
/// (2.99 GHz in most turns, 3.19 in some, 3.48 in a few windows), and a hypervisor moves virtual CPUs onto one core,
/// where they wait half as long for each other. The best of all windows then is the luck of the run. `value` is that of the
/// usual group of turns, each with its near best window, which 3 in 100 of its own beat and one at least; [low, high] is
/// that of best_cost(), widened to hold it. Fewer than four groups: best_cost().
Quantity usual_cost(const Turns& turns, Usual usual);
/// The same as work per second.
Quantity as_rate(const Quantity& cost);
/// How far every other group lies from the groups between, by usual_cost(): 0.02 is two hundredths. Infinite for fewer than
/// four groups.
double disagreement(const Turns& turns, Usual usual);

/// Windows in two states, as of virtual CPUs that share a core now and then: the value is then of the faster one.
struct Groups {
  double slower = 1;      // how many times the slower group takes longer
  double share_slow = 0;  // of the windows
};
/// Nothing unless the groups lie more than a tenth apart and both have a fifth of the windows.
std::optional<Groups> two_groups(const std::vector<double>& costs);
/// The sentence about it in a profile.
std::string note_of(std::string_view what, const Groups& groups);

}  // namespace fulcrum::machine
