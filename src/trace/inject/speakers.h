// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Which window speaks for which launches between windows. Both neighbours of a gap do, half of it each: what changes in
// between is taken to change evenly, however long they looked. A window that was cut short carries little. The first
// window does not speak: it has the program's start in it, and what runs there once would count as often as the gap is
// long.
#pragma once

#include <algorithm>

namespace fulcrum::trace::inject {

/// A window, for one kind of launches.
struct Speaker {
  double within = 0;  // launches that it has seen
  double extra = 0;   // launches of gaps that it speaks for
  bool is_first = false;

  /// What one of its launches counts.
  double weight() const { return within > 0 ? (within + extra) / within : 1; }
};

/// A window with a quarter of what its neighbour saw has seen enough to speak alone.
inline double share_alone(double within, double of_the_neighbour) {
  if (within <= 0) return 0;
  return of_the_neighbour > 0 ? std::min(1.0, 4 * within / of_the_neighbour) : 1;
}

/// Divides the launches between two windows. Where neither saw any, the later one hands them on to its successor.
inline void share_gap(Speaker& before, Speaker& after, double launches) {
  // What nobody before could speak for.
  if (before.within <= 0) {
    launches += before.extra;
    before.extra = 0;
  }
  const double alone = share_alone(after.within, before.within);
  double share = after.within <= 0 ? 0 : alone / (alone + share_alone(before.within, after.within));
  if (before.is_first) share = alone;
  if (before.within <= 0) share = 1;
  before.extra += launches * (1 - share);
  after.extra += launches * share;
}

/// Launches behind the last window go to it, or, if it saw too little, to the one before.
inline void share_rest(Speaker* before, Speaker& last, double launches) {
  if (last.within <= 0) {
    launches += last.extra;
    last.extra = 0;
  }
  const double share = before != nullptr && before->within > 0 ? share_alone(last.within, before->within) : 1;
  last.extra += launches * share;
  if (before != nullptr) before->extra += launches * (1 - share);
}

}  // namespace fulcrum::trace::inject
