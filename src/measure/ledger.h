// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the seconds of one call went. Pure: activities and the two instants of a call in, phases out. Every instant
// belongs to exactly one phase, so that the phases add up even where work overlaps.
#pragma once

#include <fulcrum/measure.h>

namespace fulcrum::measure {

/// One phase by name, in the order in which they are printed.
struct Phase {
  std::string_view name;
  double Ledger::*seconds;
};
std::span<const Phase> phases();

/// The ledger of a call that ran in [begin, end]. An instant goes to the first of these that is under way: migrate,
/// kernel, d2h, h2d, sync, queue, launch, alloc, pin, free; else it is unattributed. A wait counts as sync from the
/// last end of device work inside it on (the wake-up); before that, work that was enqueued and has not started is
/// queue. `busy` holds the whole time of each phase, overlapped or not.
Ledger attribute(std::span<const fulcrum_activity> activities, double begin_seconds, double end_seconds);

/// Mean over the middle half of the calls by end-to-end time: rare slow calls are left out, and because it is a mean
/// the phases still add up, which medians of phases would not.
Ledger typical(std::vector<Ledger> calls);
/// Field by field.
Ledger mean_of(std::span<const Ledger> ledgers);

}  // namespace fulcrum::measure
