// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trace lost or got wrong, as far as it makes findings unreliable.
#include <fmt/format.h>

#include "diagnose/frame.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {

std::vector<std::string> doubts(const Facts& facts) {
  std::vector<std::string> out;
  double zero_stamps = 0;
  for (const GpuTrace::Process& process : facts.trace.processes) zero_stamps += double(process.zero_stamps);
  const auto dropped = double(facts.trace.dropped());
  const auto records = double(facts.trace.ops.size() + facts.trace.calls.size());
  const auto lost = [&](double count, double of, std::string_view text) {
    if (count > kMostLost * (of + count)) {
      out.push_back(fmt::format(fmt::runtime(text), human_count(count), percent(count / (of + count))));
    }
  };
  lost(dropped, records, "{} records were dropped ({})");
  lost(zero_stamps, double(facts.trace.ops.size()),
       "{} records have no time stamps ({}): how long they took is not known");
  lost(double(facts.timeline.skewed), double(facts.trace.ops.size()),
       "{} kernels began before their launch ({}): the clocks of host and GPU disagree");
  if (facts.timeline.simulated && facts.timeline.model_error > kMostModelError) {
    out.push_back(fmt::format("simulated with nothing changed, the run differs by {} from what was observed",
                              percent(facts.timeline.model_error)));
  }
  return out;
}

}  // namespace fulcrum::diagnose
