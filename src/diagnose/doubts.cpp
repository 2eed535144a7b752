// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a trace lost or got wrong, as far as it makes findings unreliable.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/frame.h"
#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

// Records without stamps, but for work that was queued when a signal or _exit ended the program: that never ended.
double without_stamps(const GpuTrace& trace) {
  constexpr std::int64_t kMostQueued = 1024;  // as much as CUDA takes
  std::int64_t sum = 0;
  for (const GpuTrace::Process& process : trace.processes) {
    const std::int64_t queued = process.end == "exit" ? 0 : std::min(process.zero_stamps, kMostQueued);
    sum += process.zero_stamps - queued;
  }
  return double(sum);
}

}  // namespace

std::vector<std::string> doubts(const Facts& facts) {
  std::vector<std::string> out;
  const auto dropped = double(facts.trace.dropped());
  const auto records = double(facts.trace.ops.size() + facts.trace.calls.size());
  const auto lost = [&](double count, double of, std::string_view text) {
    if (count > kMostLost * (of + count)) {
      out.push_back(fmt::format(fmt::runtime(text), human_count(count), percent(count / (of + count))));
    }
  };
  lost(dropped, records, "{} records were dropped ({})");
  lost(without_stamps(facts.trace), double(facts.trace.ops.size()),
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
