// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that stop for pages of managed memory, and a host that fetches them back page by page. Simulated with kernels
// shorter by their stalls; the low end mends the kernels alone and still moves the same bytes, ahead and at full speed.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/copies.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastShare = 0.01;
// Of the time that stays: a fault costs more than its record shows, on both sides.
constexpr double kUnseen = 0.25;

bool has_counters(const GpuTrace& trace) {
  if (!trace.faults.empty()) return true;
  return std::any_of(trace.processes.begin(), trace.processes.end(), [](const GpuTrace::Process& process) {
    return std::any_of(process.kinds.begin(), process.kinds.end(), [](const std::string& kind) {
      return kind.find("UNIFIED_MEMORY") != std::string::npos;
    });
  });
}

struct Stalls {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;  // united
  double bytes = 0, groups = 0;
};

// Stalls where there are records of them; else pages that moved while a kernel ran and nobody had asked for them.
Stalls stalls_of(const Facts& facts) {
  const auto& faults = facts.trace.faults;
  const bool known = std::any_of(faults.begin(), faults.end(), [](const auto& f) { return f.stalled; });
  Stalls stalls;
  for (const GpuTrace::Fault& fault : faults) {
    if (!is_steady(facts, fault.begin_ns)) continue;
    stalls.bytes += fault.stalled ? 0 : double(fault.bytes);
    if (fault.stalled != known || (!known && fault.direction != CopyKind::h2d)) continue;
    stalls.groups += 1;
    stalls.spans.emplace_back(fault.begin_ns, fault.end_ns);
  }
  std::sort(stalls.spans.begin(), stalls.spans.end());
  std::size_t kept = 0;
  for (const auto& span : stalls.spans) {
    if (kept > 0 && span.first <= stalls.spans[kept - 1].second) {
      stalls.spans[kept - 1].second = std::max(stalls.spans[kept - 1].second, span.second);
    } else {
      stalls.spans[kept++] = span;
    }
  }
  stalls.spans.resize(kept);
  return stalls;
}

std::int64_t overlap_ns(const Stalls& stalls, const GpuTrace::Op& op) {
  auto at = std::lower_bound(stalls.spans.begin(), stalls.spans.end(), op.begin_ns,
                             [](const auto& span, std::int64_t ns) { return span.second <= ns; });
  std::int64_t sum = 0;
  for (; at != stalls.spans.end() && at->first < op.end_ns; ++at) {
    sum += std::min(at->second, op.end_ns) - std::max(at->first, op.begin_ns);
  }
  return sum;
}

bool prefetches(const Facts& facts) {
  return std::any_of(facts.trace.calls.begin(), facts.trace.calls.end(), [&](const GpuTrace::Call& call) {
    return call.kind == CallKind::prefetch && is_steady(facts, call.begin_ns);
  });
}

// Host time before calls in which pages came back to the host one after the other: gone when they are where they are
// needed. Returns it in seconds.
double fetch_ahead(const Facts& facts, const Joined& joined, Change& change) {
  constexpr std::int64_t kHandlerNs = 200'000;  // between two pages the host is in the fault handler
  std::vector<const GpuTrace::Fault*> fetched;
  for (const GpuTrace::Fault& fault : facts.trace.faults) {
    if (!fault.stalled && fault.direction == CopyKind::d2h && is_steady(facts, fault.begin_ns)) {
      fetched.push_back(&fault);
    }
  }
  std::stable_sort(fetched.begin(), fetched.end(),
                   [](const auto* a, const auto* b) { return a->begin_ns < b->begin_ns; });
  double seconds = 0;
  for (std::uint32_t call = 0; call < facts.trace.calls.size(); ++call) {
    if (!joined.outermost(call) || joined.before(call) < 0) continue;
    const auto end_ns = facts.trace.calls[call].begin_ns;
    const auto begin_ns = end_ns - joined.host_ns_before(call);
    auto at = std::lower_bound(fetched.begin(), fetched.end(), begin_ns,
                               [](const auto* fault, std::int64_t ns) { return fault->begin_ns < ns; });
    std::int64_t sum = 0, reach = begin_ns;
    for (; at != fetched.end() && (*at)->begin_ns < end_ns; ++at) {
      const auto from = (*at)->begin_ns - reach < kHandlerNs ? reach : (*at)->begin_ns;
      const auto to = std::min(end_ns, (*at)->end_ns);
      if (to > from) sum += to - from, reach = to;
    }
    if (sum == 0) continue;
    change.host_before_ns[call] = end_ns - begin_ns - sum;
    seconds += double(sum) * 1e-9;
  }
  return seconds;
}

Looked look(const Facts& facts) {
  if (!has_counters(facts.trace)) {
    return {{},
            not_checked("managed_faults", "faults of managed memory were not traced",
                        "trace with fulcrum itself; some drivers refuse these counters")};
  }
  if (facts.trace.faults.empty()) return {};
  if (auto missing = needs_simulation(facts, "managed_faults")) return {{}, std::move(missing)};
  const Stalls stalls = stalls_of(facts);
  Change change;
  double stalled = 0;
  std::vector<std::uint32_t> ops;
  for (std::uint32_t i = 0; i < facts.trace.ops.size(); ++i) {
    const GpuTrace::Op& op = facts.trace.ops[i];
    if (op.kind != GpuOpKind::kernel || !is_steady(facts, op.begin_ns)) continue;
    const std::int64_t ns = overlap_ns(stalls, op);
    if (ns <= 0) continue;
    stalled += double(ns) * 1e-9;
    change.op_ns[i] =
        std::max<std::int64_t>(std::min(op.duration_ns(), kDurationFloorNs), op.duration_ns() - ns);
    ops.push_back(i);
  }
  const double all = facts.timeline.seconds;
  if (stalled < kLeastShare * all) return {};
  const Joined joined(facts);
  const double on_host = prefetches(facts) ? 0 : fetch_ahead(facts, joined, change);
  const double seen = std::min(stalled + on_host, saved_seconds(facts, change));
  const double high = seen + kUnseen * (all - seen);
  // Who prefetches for the kernels alone has still pages that the host fetches back.
  const double for_kernels = std::min(stalled, seen);
  const double low = std::max(0.0, for_kernels - stalls.bytes * pinned_seconds_a_byte(facts)) / 2;
  if (seen < facts.threshold * all) return {};

  Finding finding;
  finding.subject = "managed memory";
  finding.grade = Evidence::measured;
  finding.claim =
      fmt::format("Kernels stand still {} of the time for pages of managed memory", percent(stalled / all));
  finding.evidence.push_back(fmt::format("{}, {} moved page by page",
                                         count_text(facts, stalls.groups, "fault groups"),
                                         human_bytes(stalls.bytes / steps(facts))));
  if (on_host > 0)
    finding.evidence.push_back(
        fmt::format("the host takes {} to fetch pages back one by one", time_text(facts, on_host)));
  finding.next_step =
      "prefetch before the kernel and before the host's access (cudaMemPrefetchAsync), or keep the data in "
      "device "
      "memory and copy it";
  finding.verify = verify_by_difference();
  finding.ops = some(ops);
  add_gain(finding, range(facts, low, high, 0, std::move(change)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule managed_faults() {
  return Rule{.id = "managed_faults",
              .looks_for = "kernels that stop for pages of managed memory",
              .needs = "unified memory records",
              .look = look};
}

}  // namespace fulcrum::diagnose
