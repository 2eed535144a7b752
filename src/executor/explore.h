// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// How calls teach: which of them are timed, which go another way than the best one known, and what their times say. The
// engine does this with every call it makes, bench --regret with calls whose times it has measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "executor/tracker.h"

namespace fulcrum::executor {

/// One call as decisions see it.
struct Asked {
  const OpTable& table;
  int op;  // position in ops::all()
  const Args& args;
  const Traffic& traffic;
  Mask allowed;
};

/// A call that goes another way than the best one known, to learn.
struct Trial {
  Choice choice;
  double taken_seconds = 0;  // from the credit
  double usual_seconds = 0;  // of the best way
};

/// 0: this call is not timed. Else for how many calls like it its time stands: short ones are timed now and then.
int stands_for(const OpTable& table, const Choice& choice);
/// Takes what it may cost from the tracker's credit; none where that does not allow it.
std::optional<Trial> explored(const Asked& asked, const Choice& choice, Tracker& tracker);
/// A timed call of `choice`.
void learn(const Asked& asked, const Choice& choice, double seconds, int calls, Tracker& tracker);

/// A call that a kernel could not do: the next ones of its size go elsewhere soon, instead of trying it first each time.
void learn_refusal(const Asked& asked, const Choice& choice, Tracker& tracker);

/// What is chosen after so many such calls, where ways take their `rounds` in turn, by candidate, those of one visit to
/// the machine after those of the other. Ways without any are not tried; one of them that is chosen ends it.
struct Learned {
  Choice choice;
  double explored_seconds = 0;  // that a call took longer in the mean because of trials
};
Learned after_calls(const Asked& asked, std::span<const std::vector<double>> rounds, int calls,
                    Tracker& tracker, std::size_t rounds_a_visit = SIZE_MAX);

}  // namespace fulcrum::executor
