// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The one reason that keeps warps from issuing: its share of all stalls, and never more than what better issue brings.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/counters.h"
#include "diagnose/gain.h"
#include "diagnose/stalls.h"

namespace fulcrum::diagnose {
namespace {

constexpr std::string_view kId = "warp_stall";
constexpr double kMostIssue = 0.8;

struct Advice {
  std::string_view reason, words, next;
};
constexpr Advice kAdvice[] = {
    {"long_scoreboard", "loads from global or local memory",
     "more loads in flight, reuse through shared memory, a larger share of cache hits"},
    {"short_scoreboard", "shared memory or special functions",
     "fewer or wider accesses to shared memory, cheaper functions"},
    {"barrier", "__syncthreads", "smaller blocks, or fewer barriers"},
    {"lg_throttle", "the queue of global accesses", "fewer, wider loads and stores"},
    {"mio_throttle", "the queue of shared memory and special functions",
     "fewer, wider accesses; spread them out"},
    {"math_pipe_throttle", "an arithmetic unit that is busy", "a cheaper mix of instructions"},
    {"wait", "a fixed latency between instructions", "more independent instructions in a warp"},
    {"not_selected", "other warps that issued first", "nothing: there is more to issue than slots"},
    {"membar", "memory fences", "fewer fences"},
    {"drain", "stores at the end of the kernel", "wider stores"},
};

Looked look(const Facts& facts) {
  Looked looked;
  if ((looked.not_checked =
           needs_metrics(facts, kId,
                         {"smsp__issue_active.avg.per_cycle_active",
                          "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"}))) {
    return looked;
  }
  const auto fires = [&](const Timeline::Kernel& kernel) {
    const double issue = issue_rate(facts, kernel);
    const auto stall = worst_stall(facts, kernel);
    return issue >= 0 && issue < kMostIssue && stall && stall->share > kLeastStall &&
           stall->reason != "not_selected";
  };
  for (const Group& group : groups(facts, fires)) {
    const Timeline::Kernel& kernel = group.first();
    const Stall stall = *worst_stall(facts, kernel);
    const auto known = std::find_if(std::begin(kAdvice), std::end(kAdvice),
                                    [&](const Advice& a) { return a.reason == stall.reason; });
    const bool has_advice = known != std::end(kAdvice);
    Finding finding{
        .claim = fmt::format("{}'s warps wait {} of their time for {}", group.name, percent(stall.share),
                             has_advice ? known->words : std::string_view(stall.reason)),
        .evidence = {fmt::format("issues in {} of its cycles; {}", percent(issue_rate(facts, kernel)),
                                 launches_text(facts, group))},
        .next_step = std::string(has_advice ? known->next : "look at the source lines in ncu"),
        .grade = Evidence::modelled,
        .subject = group.name,
        .ops = some(group.ops)};
    add_gain(finding, kernel_gain(facts, group.ops, 0, std::min(stall.share, issue_gain(facts, kernel))));
    looked.findings.push_back(std::move(finding));
  }
  return looked;
}

}  // namespace

Rule warp_stall() {
  return Rule{.id = kId,
              .looks_for = "one reason that keeps warps from issuing",
              .needs = "counters of `ncu --csv`",
              .look = look};
}

}  // namespace fulcrum::diagnose
