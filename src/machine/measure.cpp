// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The measurement of a machine: all probes are prepared, then take turns in rounds, so that a second in which a
// neighbour is busy costs every probe a little and none of them everything. Those whose turns disagree come again.
#include <fmt/format.h>
#include <fulcrum/machine.h>
#include <sys/utsname.h>

#include <algorithm>

#include "machine/discovery.h"
#include "machine/gpu.h"
#include "machine/pins.h"
#include "machine/probes.h"
#include "machine/windows.h"

namespace fulcrum::machine {
namespace {

constexpr int kMachineRounds = 16;
constexpr double kShareOfRounds = 0.7;  // of the time; what is left is for a second look
constexpr double kTurnAgainSeconds = 0.05;

/// Puts the instruction set back that was in use.
class IsaGuard {
 public:
  IsaGuard() : before_(backends::active_isa()) {}
  IsaGuard(const IsaGuard&) = delete;
  IsaGuard& operator=(const IsaGuard&) = delete;
  ~IsaGuard() { use(before_); }
  /// Empty: the best, whatever the environment forces, because a profile is of the machine and not of a run.
  static void use(const std::string& isa) {
    if (const Status status = backends::force_isa(isa == backends::isas().front() ? "" : isa); !status.ok()) {
      log(LogLevel::warning, status.error().message);
    }
  }

 private:
  std::string before_;
};

Error interrupted() {
  return Error{Code::interrupted, "the measurement of this machine was interrupted",
               "nothing was saved; run it again"};
}

Turns turns_of(const Probe& probe) {
  return {probe.costs, probe.turns, std::max<std::size_t>(1, probe.isas.size())};
}

Quantity value_of(const Probe& probe) {
  const Quantity cost = usual_cost(turns_of(probe), probe.usual);
  return probe.is_rate ? as_rate(cost) : cost;
}

void take_turn(Probe& probe, std::size_t round, double until) {
  const measure::Clock& clock = measure::steady_clock();
  IsaGuard::use(probe.isas.empty() ? "" : probe.isas[round % probe.isas.size()]);
  if (probe.move) probe.move();
  const Pins pins(probe.threads);
  take_windows(probe, clock, until);
}

/// What changes from one second to the next is measured a thousand times for a moment, all over the run, rather than a
/// dozen times for longer.
void visit(std::span<Probe* const> visitors) {
  const measure::Clock& clock = measure::steady_clock();
  for (Probe* probe : visitors) take_turn(*probe, 0, clock.now() + probe->visit_seconds);
}

/// The probes with turns of their own, or those without.
std::vector<Probe*> probes_of(ProbeSet& set, bool with_turns) {
  std::vector<Probe*> found;
  for (Probe& probe : set.probes)
    if ((probe.visit_seconds == 0) == with_turns) found.push_back(&probe);
  return found;
}

Status run_rounds(ProbeSet& set, const ProbeConfig& config, double deadline) {
  const measure::Clock& clock = measure::steady_clock();
  const std::vector<Probe*> in_turns = probes_of(set, true), visitors = probes_of(set, false);
  const int probes = static_cast<int>(in_turns.size());
  const int total = kMachineRounds * probes;
  for (int turn = 0; turn < total; ++turn) {
    if (config.interrupted && config.interrupted()) return interrupted();
    const int round = turn / probes;
    visit(visitors);
    const double now = clock.now();
    if (now >= deadline && round > 0) break;  // late already; a value needs one round at least
    // Every round starts at another probe: what goes on once a second must not always meet the same one.
    Probe& probe = *in_turns[static_cast<std::size_t>((turn + round * (probes / kMachineRounds)) % probes)];
    if (config.progress) config.progress(probe.what, turn, total);
    take_turn(probe, static_cast<std::size_t>(round), now + (deadline - now) / (total - turn));
  }
  return {};
}

/// What is left of the time goes to the probes whose turns agree least: one that had its best windows in one turn only
/// was not often enough at the machine while it was quiet.
Status look_again(ProbeSet& set, const ProbeConfig& config, double deadline) {
  const measure::Clock& clock = measure::steady_clock();
  const std::vector<Probe*> in_turns = probes_of(set, true), visitors = probes_of(set, false);
  const std::size_t doubtful = (in_turns.size() + 3) / 4;
  const int total = static_cast<int>(in_turns.size());
  while (clock.now() < deadline) {
    std::vector<std::pair<double, Probe*>> order;
    order.reserve(in_turns.size());
    for (Probe* probe : in_turns) order.emplace_back(-disagreement(turns_of(*probe), probe->usual), probe);
    std::ranges::stable_sort(order, {}, &std::pair<double, Probe*>::first);
    for (std::size_t i = 0; i < doubtful && clock.now() < deadline; ++i) {
      if (config.interrupted && config.interrupted()) return interrupted();
      Probe& probe = *order[i].second;
      visit(visitors);
      if (config.progress) config.progress(probe.what + ", again", total, total);
      take_turn(probe, probe.turns.size(), clock.now() + kTurnAgainSeconds);
    }
  }
  if (config.progress) config.progress("done", total, total);
  return {};
}

Quantity exactly(double value) { return Quantity{value, value, value, Source::measured}; }

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {}", names.sysname, names.release) : "";
}

std::string this_program() {
  const BuildInfo& build = build_info();
  return fmt::format("fulcrum {} ({}{})", build.version, build.commit, build.dirty ? ", changed" : "");
}

Status prepare(const ProbeTarget& target, const ProbeConfig& config, ProbeSet& set) {
  using Add = Status (*)(const ProbeTarget&, ProbeSet&);
  constexpr Add kAdds[] = {add_cache_probes, add_dram_probes,     add_latency_probes,
                           add_fma_probes,   add_fork_join_probe, add_clock_probe};
  if (config.progress) config.progress("preparing", 0, 1);
  const Pins pins(target.threads);  // who touches memory first decides where it lies
  for (const Add add : kAdds) {
    IsaGuard::use("");
    FULCRUM_CHECK(add(target, set));
    if (config.interrupted && config.interrupted()) return interrupted();
  }
  return {};
}

Status measure_cpu(const ProbeConfig& config, double deadline, Machine& machine) {
  const IsaGuard guard;
  ProbeSet set;
  const ProbeTarget target{.cpu = machine.cpu,
                           .threads = machine.cpu.threads,
                           .numa_nodes = machine.topology.numa_nodes,
                           .available_bytes = available_bytes(SystemFiles())};
  FULCRUM_CHECK(prepare(target, config, set));
  const double now = measure::steady_clock().now();
  FULCRUM_CHECK(run_rounds(set, config, now + kShareOfRounds * (deadline - now)));
  FULCRUM_CHECK(look_again(set, config, deadline));
  for (const Probe& probe : set.probes) {
    probe.store(value_of(probe));
    // Where instruction sets take turns, two groups say nothing about the machine.
    if (const auto groups = probe.isas.size() > 1 ? std::nullopt : two_groups(probe.costs)) {
      machine.notes.push_back(note_of(probe.what, *groups));
    }
  }
  return {};
}

std::vector<const backends::Backend*> gpus_with_probes(const ProbeConfig& config) {
  std::vector<const backends::Backend*> found;
  if (!config.gpu) return found;
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu" && backend->table().probes && backend->available()) found.push_back(backend);
  }
  return found;
}

}  // namespace

Result<Machine> measure(const ProbeConfig& config) {
  const measure::Clock& clock = measure::steady_clock();
  const auto gpus = gpus_with_probes(config);
  const double gpu_share = config.cpu ? config.budget_seconds / 3 : config.budget_seconds;
  const double gpu_seconds = gpus.empty() ? 0 : std::min(config.gpu_seconds, gpu_share);
  const double deadline = clock.now() + config.budget_seconds - gpu_seconds;
  Machine machine;
  machine.topology = discover_cpu();
  machine.cpu.levels = discover_levels();
  machine.id = fingerprint(machine.topology, machine.cpu.levels);
  machine.name = fmt::format("{}, {} core{}", machine.topology.model, machine.topology.cores,
                             machine.topology.cores == 1 ? "" : "s");
  machine.kernel = kernel_release();
  machine.cpu.threads = backends::usable_threads();
  machine.cpu.clock_resolution_seconds = exactly(clock.resolution_seconds);
  machine.cpu.clock_read_seconds = exactly(clock.read_seconds);

  if (config.cpu) FULCRUM_CHECK(measure_cpu(config, deadline, machine));
  for (const backends::Backend* gpu : gpus) {
    const double seconds = gpu_seconds / static_cast<double>(gpus.size());
    FULCRUM_CHECK(measure_gpu(*gpu, config, seconds, machine.gpus.emplace_back(), machine.notes));
  }
  if (!machine.gpus.empty()) machine.driver = machine.gpus.front().driver;
  machine.written_by = this_program();
  machine.measured_utc = utc_now();
  return machine;
}

}  // namespace fulcrum::machine
