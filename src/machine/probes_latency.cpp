// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Load latency of every level. Each window goes on where the one before stopped, so that a cycle too long for one
// window is still walked to its end before a node comes up again.
#include <fulcrum/ops/probes.h>

#include <fmt/format.h>

#include <algorithm>

#include "machine/probe_call.h"
#include "machine/probes.h"
#include "machine/working_sets.h"

namespace fulcrum::machine {
namespace {

constexpr std::int64_t kNodeBytes = ops::kProbeNode * 8;
// Which sets of a cache a cycle falls on is luck of its pages, which stay for the run: windows take turns in places.
constexpr int kPlaces = 4;

/// Every node once, in order, which is fast. On a machine with busy neighbours a random walk through a cold cache
/// would take longer than they need to evict it again, and never get warm.
void sweep(const Args& args) {
  const auto* next = args.in<std::int64_t>(0);
  std::int64_t sum = 0;
  for (std::int64_t node = 0; node < args.dim[0]; ++node) sum += next[node * ops::kProbeNode];
  *args.out<std::int64_t>(2) = sum;
}

/// A cycle through memory of its own.
Result<Args> place_cycle(const ProbeCall& call, std::int64_t nodes, ProbeSet& set) {
  FULCRUM_TRY(Arena arena, Arena::make((nodes + 2) * kNodeBytes));
  FULCRUM_TRY(Args args, call.arguments(nodes));
  args.ptr[0] = arena.data();
  args.ptr[1] = arena.data() + nodes * kNodeBytes;
  args.ptr[2] = arena.data() + (nodes + 1) * kNodeBytes;
  call.op().make_inputs(args, ops::tensor_key(0));
  set.memory.push_back(std::make_shared<Arena>(std::move(arena)));
  return args;
}

/// The places of a probe and whose turn it is.
struct Places {
  std::vector<Args> args;
  std::size_t turn = 0;
  Args& now() { return args[turn % args.size()]; }
};

Status add_latency(const ProbeTarget& target, std::size_t level, std::int64_t bytes, ProbeSet& set) {
  FULCRUM_TRY(const auto call, ProbeCall::make("probe_latency", "scalar", "default", 1));
  const std::int64_t nodes = std::max<std::int64_t>(2, bytes / kNodeBytes);
  const std::vector<MemoryLevel>& levels = target.cpu.levels;
  const MemoryLevel& measured = levels[level];
  const bool level_is_cache = measured.capacity_bytes > 0;
  const auto places = std::make_shared<Places>();
  for (int place = 0; place < (level_is_cache ? kPlaces : 1); ++place) {
    FULCRUM_TRY(const Args args, place_cycle(*call, nodes, set));
    places->args.push_back(args);
  }
  set.probes.push_back(Probe{
      .what = measured.name + " load latency",
      .warm = level_is_cache ? std::function<void()>([places] { sweep(places->now()); }) : nullptr,
      .run =
          [call, places](std::int64_t hops) {
            Args& args = places->now();
            ++places->turn;
            args.scalar[0].i = hops;
            call->run(args);
            *args.out<std::int64_t>(1) = *args.in<std::int64_t>(2);
          },
      .work = 1,
      .is_rate = false,
      .usual = level_is_cache ? usual_of_level(levels, level, 1) : Usual::best,
      .store = [&cpu = target.cpu,
                level](const Quantity& seconds) { cpu.levels[level].latency_seconds = seconds; },
      // A cache shared with neighbours keeps what was swept for a moment only.
      .window_seconds = level_is_cache ? 1e-4 : 2e-3,
  });
  return {};
}

}  // namespace

Status add_latency_probes(const ProbeTarget& target, ProbeSet& set) {
  const std::vector<MemoryLevel>& levels = target.cpu.levels;
  for (std::size_t level = 0; level + 1 < levels.size(); ++level) {
    const std::int64_t bytes = cycle_bytes(levels, level);
    if (bytes > 0) FULCRUM_CHECK(add_latency(target, level, bytes, set));
  }
  const std::int64_t bytes = dram_sets(levels, 1, target.available_bytes).chase_bytes;
  return add_latency(target, levels.size() - 1, bytes, set);
}

}  // namespace fulcrum::machine
