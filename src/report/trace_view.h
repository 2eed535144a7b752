// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a trace that the page draws: a stretch event by event, and the whole run in bins.
#pragma once

#include <fulcrum/core/finding.h>

namespace fulcrum::report {

struct Stretch {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t iterations = 0;  // whole ones in it; 0: none were found
  std::int64_t items = 0;       // events in it
};
inline bool inside(std::int64_t begin_ns, std::int64_t end_ns, const Stretch& stretch) {
  return end_ns > stretch.begin_ns && begin_ns < stretch.end_ns;
}

/// Three iterations (more where they hold next to nothing) that take what most take, near to what the first finding is about; of a run without
/// iterations as much as fits. At most `most` events.
Stretch choose_stretch(const GpuTrace&, const Timeline&, const Diagnosis&, std::int64_t most);

/// Lanes of streams, marks and host threads as columns of numbers, gaps and iterations.
Json stretch_json(const GpuTrace&, const Timeline&, const Stretch&);
/// How busy each device was, in percent and in `bins` parts: from the first op to the last, or over the iterations alone
/// when start-up takes most of the run.
Json density_json(const GpuTrace&, const Timeline&, std::int64_t bins);
/// Where in the stretch the ops and calls of a finding are: [begin since the stretch's, length] in nanoseconds.
Json marks_json(const GpuTrace&, const Finding&, const Stretch&);

}  // namespace fulcrum::report
