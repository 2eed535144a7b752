// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that is allocated and freed again and again after warm-up: the calls take long, and cudaFree waits for the
// device. The fix is memory that stays, so the gain is simulated with the calls and their waits gone.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastShare = 0.01, kLeastASecond = 10;
constexpr double kLeastSteps =
    0.25;  // steps with an allocation, of all: fewer are growth or a cache that fills
constexpr std::size_t kLeastCalls = 6;

struct Allocations {
  Change shorter, gone;
  std::map<CallKind, int> kinds;
  double seconds = 0;  // in the calls
  double bytes = 0;
  std::vector<std::uint32_t> calls;
  double steps = 0;  // that have one
};

Allocations allocations_of(const Facts& facts, const Joined& joined) {
  Allocations found;
  const auto& begins = facts.timeline.iterations.begins_ns;
  std::size_t step = 0, last_step = 0;
  for (std::uint32_t i = 0; i < facts.trace.calls.size(); ++i) {
    const GpuTrace::Call& call = facts.trace.calls[i];
    if (!is_allocation(joined.kind[i]) || !is_steady(facts, call.begin_ns) || !joined.outermost(i)) continue;
    while (step < begins.size() && begins[step] <= call.begin_ns) ++step;
    if (step != last_step || found.calls.empty()) found.steps += 1, last_step = step;
    ++found.kinds[joined.kind[i]];
    found.seconds += double(call.end_ns - call.begin_ns) * 1e-9;
    found.bytes = std::max(found.bytes, double(call.bytes));
    found.shorter.call_ns[i] = 1;
    found.gone.call_ns[i] = 0;
    found.gone.no_wait.insert(i);
    found.calls.push_back(i);
  }
  return found;
}

int count(const Allocations& found, std::initializer_list<CallKind> kinds) {
  int sum = 0;
  for (const CallKind kind : kinds) {
    const auto at = found.kinds.find(kind);
    if (at != found.kinds.end()) sum += at->second;
  }
  return sum;
}

std::string next_step(const Allocations& found) {
  if (count(found, {CallKind::host_alloc, CallKind::host_free, CallKind::host_register}) * 2 >
      int(found.calls.size())) {
    return "pin host memory once and keep it: pinning takes milliseconds";
  }
  if (count(found, {CallKind::pool_alloc, CallKind::pool_free}) * 2 > int(found.calls.size())) {
    return "raise the pool's release threshold (cudaMemPoolAttrReleaseThreshold), whose default gives memory "
           "back at "
           "every wait; or keep the buffers";
  }
  return "allocate once before the loop and keep the buffers, or take them from a pool: cudaMallocAsync "
         "needs a raised "
         "release threshold to be one";
}

// A pool that hands memory out of what it kept is no allocation: its calls take no longer than launches.
bool is_pool_that_keeps(const Facts& facts, const Allocations& found) {
  const int pool = count(found, {CallKind::pool_alloc, CallKind::pool_free});
  return pool == int(found.calls.size()) && found.seconds < double(pool) * facts.timeline.launch.seconds;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "alloc_in_loop")) return {{}, std::move(missing)};
  const Joined joined(facts);
  Allocations found = allocations_of(facts, joined);
  const double all = facts.timeline.seconds;
  if (found.calls.size() < kLeastCalls) return {};
  if (has_steps(facts) && found.steps < kLeastSteps * steps(facts)) return {};
  if (is_pool_that_keeps(facts, found)) return {};
  if (found.seconds < kLeastShare * all && double(found.calls.size()) < kLeastASecond * all) return {};

  const std::vector<Idle> idle = idle_times(facts, joined);
  const double lost = lost_seconds(idle, Owner::alloc);
  const double high = std::min(lost, saved_seconds(facts, found.gone));
  // With the wait that cudaFree is kept as a wait.
  const double low = std::min(high, saved_seconds(facts, found.shorter));
  if (high < facts.threshold * all) return {};

  Finding finding;
  finding.subject = "memory";
  finding.grade = Evidence::measured;
  finding.claim = fmt::format("Memory is allocated and freed {}: the GPU idles {} of the time for it",
                              every_step(facts), percent(lost / all));
  finding.evidence.push_back(fmt::format(
      "{} and {}, {} in these calls",
      count_text(facts,
                 count(found, {CallKind::alloc, CallKind::pool_alloc, CallKind::host_alloc,
                               CallKind::host_register}),
                 "allocations"),
      count_text(facts, count(found, {CallKind::free, CallKind::pool_free, CallKind::host_free}), "frees"),
      time_text(facts, found.seconds)));
  if (count(found, {CallKind::free}) > 0)
    finding.evidence.emplace_back("cudaFree waits until the device has nothing left to do");
  if (found.bytes > 0) finding.evidence.push_back(fmt::format("the largest is {}", human_bytes(found.bytes)));
  finding.next_step = next_step(found);
  finding.verify = verify_by_difference();
  finding.calls = some(found.calls);
  add_gain(finding, range(facts, low, high, double(found.calls.size()), std::move(found.gone)));
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule alloc_in_loop() {
  return Rule{.id = "alloc_in_loop",
              .looks_for = "memory that is allocated and freed in every step",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
