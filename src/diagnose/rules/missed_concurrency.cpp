// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches of one kernel after the other in one stream, each filling less than half of the GPU: if they do not depend
// on each other they could run side by side. The trace cannot know, and most chains are steps of one computation, so
// this is a note: what it could bring stands in its evidence.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/gain.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "missed_concurrency";
constexpr double kHalf = 0.5;
constexpr std::int64_t kBackToBackNs = 5000;  // a longer gap is something else's
constexpr int kLeastRun = 4;
constexpr double kLeastGain = 0.1;   // of the timeline
constexpr double kLeastNs = 10'000;  // shorter kernels are over before the next one starts

// Ops of the kernel that follow each other in their stream with nothing between, in runs of at least kLeastRun.
std::vector<std::uint32_t> in_runs(const Facts& facts, const Timeline::Kernel& kernel) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_stream;
  for (const std::uint32_t op : kernel.ops) by_stream[facts.trace.ops[op].stream].push_back(op);
  std::vector<std::uint32_t> out;
  const auto close = [&](std::vector<std::uint32_t>& run) {
    if (run.size() >= kLeastRun) out.insert(out.end(), run.begin(), run.end());
    run.clear();
  };
  for (const auto& [stream, ops] : by_stream) {
    std::vector<std::uint32_t> run;
    for (const std::uint32_t op : ops) {
      if (!run.empty()) {
        const GpuTrace::Op &last = facts.trace.ops[run.back()], &next = facts.trace.ops[op];
        const std::int64_t gap_ns = next.begin_ns - last.end_ns;
        bool between = gap_ns < 0 || gap_ns > kBackToBackNs;
        for (std::uint32_t i = run.back() + 1; i < op && !between; ++i)
          between = facts.trace.ops[i].stream == stream;
        if (between) close(run);
      }
      run.push_back(op);
    }
    close(run);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked = needs_kernels(facts, kId))) return looked;
  const auto small = [&](const Timeline::Kernel& kernel) {
    return shape_of(facts, kernel).blocks_per_sm > 0 && kernel.waves > 0 && kernel.waves < kHalf &&
           !kernel.persistent && kernel.median_ns >= kLeastNs && beside_others(facts, kernel) < kHalf;
  };
  for (const Group& group : groups(facts, small)) {
    Change change;
    std::vector<std::uint32_t> ops;
    for (const Timeline::Kernel* kernel : group.kernels) {
      const std::vector<std::uint32_t> found = in_runs(facts, *kernel);
      shorten(facts, change, found, 1 / std::floor(1 / kernel->waves), 0);
      ops.insert(ops.end(), found.begin(), found.end());
    }
    if (ops.empty()) continue;
    const double beside = std::floor(1 / group.first().waves);
    Finding finding{
        .claim = fmt::format("{} runs one after the other although {:.0f} launches would fit the GPU at once",
                             group.name, beside),
        .evidence = {fmt::format("each fills {} of the GPU; {} follow each other with nothing between; {}",
                                 percent(group.first().waves),
                                 count_text(facts, double(ops.size()), "launches"),
                                 launches_text(facts, group))},
        .next_step = "if they do not need each other's results: one batched launch, or several streams",
        .grade = Evidence::bounded,
        .subject = group.name,
        .ops = some(ops)};
    const Gain gain = simulate_up_to(facts, std::move(change));
    if (gain.high < kLeastGain) continue;
    finding.evidence.push_back(
        fmt::format("up to {} of the time if all of them are independent", percent(gain.high)));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule missed_concurrency() {
  return Rule{.id = kId,
              .looks_for = "small launches of one kernel that follow each other and might run side by side",
              .needs = "activity records",
              .look = look};
}

}  // namespace fulcrum::diagnose
