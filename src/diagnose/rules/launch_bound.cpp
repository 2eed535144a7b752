// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that are over before the host has launched the next one: the GPU waits for launches, not for work. The fix
// is a graph (or fewer kernels), so the gain is simulated with every launch but the first of a run gone.
#include <fmt/format.h>

#include <algorithm>

#include "diagnose/idle.h"

namespace fulcrum::diagnose {
namespace {

constexpr double kLeastShare = 0.05;     // of the time that the GPU waits for launches
constexpr double kLeastUnsure = 0.1;     // the high end, where the low one is next to nothing
constexpr std::size_t kLeastGaps = 16;   // fewer are no loop of launches
constexpr std::size_t kLeastRun = 4;     // launches in a row that are worth a graph
constexpr std::size_t kLongestRun = 64;  // launches a graph holds where no iteration says so
// Between two nodes of a graph it may take longer or less long than the simulation says.
constexpr double kNodeSlowerSeconds = 0.5e-6, kNodeFasterSeconds = 0.35e-6;
constexpr double kLeastNodeSeconds = 0.6e-6;  // a GPU starts no more nodes than that, of however many graphs
// What a kernel takes to begin and to end. Where one that does next to nothing else is launched again and again, two become one.
constexpr double kEmptyKernelSeconds = 0.9e-6, kLittleElseSeconds = 1.1e-6, kFused = 0.5;

struct Runs {
  Change launches, host;  // launches gone; and the host time between them gone as well
  double nodes = 0;       // launches that a graph takes over
  double fused = 0;       // of them, those that become a part of the one before
  double fused_seconds = 0;
  std::vector<std::uint32_t> ops, calls;
  std::set<std::uint32_t> streams;
};

bool goes_into_graph(const Facts& facts, const Joined& joined, std::uint32_t number) {
  const CallKind kind = joined.kind[number];
  if (kind == CallKind::event_record || kind == CallKind::stream_wait || kind == CallKind::other ||
      kind == CallKind::query) {
    return true;
  }
  const std::int64_t op = joined.op_of_call[number];
  if (kind == CallKind::copy && op >= 0) {
    const GpuTrace::Op& copy = facts.trace.ops[std::size_t(op)];
    return copy.async && copy.from != MemoryKind::pageable && copy.to != MemoryKind::pageable;
  }
  return is_launch(kind);
}

// The same kernel at the same size in the same stream as the one launched before it.
bool repeats(const Facts& facts, std::int64_t before, std::int64_t op) {
  if (before < 0) return false;
  const GpuTrace::Op &a = facts.trace.ops[std::size_t(before)], &b = facts.trace.ops[std::size_t(op)];
  return a.kind == GpuOpKind::kernel && b.kind == GpuOpKind::kernel && a.shape == b.shape &&
         a.stream == b.stream;
}

// One run: its first launch becomes that of the graph.
void take_over(const Facts& facts, const Joined& joined, std::span<const std::uint32_t> run, Runs& runs) {
  std::size_t launches = 0;
  for (const std::uint32_t call : run) launches += joined.op_of_call[call] >= 0;
  if (launches < kLeastRun) return;
  bool first = true;
  std::int64_t last = -1;
  for (const std::uint32_t call : run) {
    const std::int64_t op = joined.op_of_call[call];
    const double seconds = op < 0 ? 0 : double(facts.trace.ops[std::size_t(op)].duration_ns()) * 1e-9;
    if (op >= 0 && seconds < kLittleElseSeconds && repeats(facts, last, op)) {
      runs.fused += kFused;
      runs.fused_seconds += kFused * std::min(kEmptyKernelSeconds, seconds);
    }
    if (op >= 0) last = op;
    if (first) {
      first = op < 0;
      continue;
    }
    runs.launches.call_ns[call] = 0;
    runs.host.call_ns[call] = 0;
    runs.host.host_before_ns[call] = 0;
    if (op < 0) continue;
    runs.launches.not_launched.insert(std::uint32_t(op));
    runs.host.not_launched.insert(std::uint32_t(op));
    runs.nodes += 1;
    runs.streams.insert(facts.trace.ops[std::size_t(op)].stream);
    if (facts.trace.ops[std::size_t(op)].kind == GpuOpKind::kernel) runs.ops.push_back(std::uint32_t(op));
    runs.calls.push_back(call);
  }
}

Runs runs_of(const Facts& facts, const Joined& joined, double launches_a_step) {
  Runs runs;
  const auto& begins = facts.timeline.iterations.begins_ns;
  // A step of few kernels is captured several times over.
  const std::int64_t limit_ns = dispatch_limit_ns(facts);
  const bool whole_steps = launches_a_step >= double(kLeastRun) && has_steps(facts);
  for (const auto& own : joined.calls_of_thread) {
    std::vector<std::uint32_t> run;
    std::size_t step = 0;
    const auto end_run = [&] {
      take_over(facts, joined, run, runs);
      run.clear();
    };
    for (const std::uint32_t call : own) {
      const std::int64_t begin_ns = facts.trace.calls[call].begin_ns;
      if (!is_steady(facts, begin_ns)) continue;
      bool new_step = false;
      const std::int64_t op = joined.op_of_call[call];  // steps begin on the GPU
      const std::int64_t at_ns = op < 0 ? begin_ns : facts.trace.ops[std::size_t(op)].begin_ns;
      while (step < begins.size() && begins[step] <= at_ns) ++step, new_step = true;
      if ((whole_steps && new_step) || joined.host_ns_before(call) >= limit_ns ||
          (!whole_steps && run.size() >= kLongestRun)) {
        end_run();
      }
      if (goes_into_graph(facts, joined, call)) {
        run.push_back(call);
      } else {
        end_run();
      }
    }
    end_run();
  }
  return runs;
}

// Gaps in which the GPU waits for launches.
struct Waiting {
  std::size_t gaps = 0;
  double seconds = 0;
  std::vector<double> host_ns, call_ns;  // before and in the launches that ended them
  std::string function;                  // of the host, where most of it is
};

Waiting waiting(const Facts& facts, const Joined& joined, std::span<const Idle> idle) {
  Waiting w;
  std::map<std::string, double> functions;
  for (const Idle& i : idle) {
    if (i.owner != Owner::launch) continue;
    const auto number = std::uint32_t(joined.call_of_op[i.gap->after]);
    const GpuTrace::Call& call = facts.trace.calls[number];
    ++w.gaps;
    w.seconds += double(i.gap->end_ns - i.gap->begin_ns) * 1e-9;
    w.host_ns.push_back(double(joined.host_ns_before(number)));
    w.call_ns.push_back(double(call.end_ns - call.begin_ns));
    if (!i.gap->function.empty()) functions[i.gap->function] += double(i.lost_ns);
  }
  const auto most = std::max_element(functions.begin(), functions.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != functions.end()) w.function = most->first;
  return w;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_ns(const Facts& facts, const std::vector<std::uint32_t>& ops) {
  std::vector<double> ns;
  ns.reserve(ops.size());
  for (const std::uint32_t op : ops) ns.push_back(double(facts.trace.ops[op].duration_ns()));
  return median(std::move(ns));
}

// The share of the launches that are gone where every step of a few becomes a graph of its own: all but one. One alone
// is no graph: there several steps have to be one in any case.
double taken_over(const Facts& facts, double launches_a_step) {
  constexpr double kAlone = 1.5;
  if (!has_steps(facts) || launches_a_step >= double(kLeastRun) || launches_a_step < kAlone) return 1;
  return (launches_a_step - 1) / launches_a_step;
}

Looked look(const Facts& facts) {
  if (auto missing = needs_simulation(facts, "launch_bound")) return {{}, std::move(missing)};
  const Joined joined(facts);
  const std::vector<Idle> idle = idle_times(facts, joined);
  const double lost = lost_seconds(idle, Owner::launch);
  const Waiting wait = waiting(facts, joined, idle);
  if (wait.gaps < kLeastGaps || lost < kLeastShare * facts.timeline.seconds) return {};

  double kernels = 0;
  for (const Timeline::Kernel& kernel : facts.timeline.kernels) kernels += double(kernel.ops.size());
  Runs runs = runs_of(facts, joined, kernels / steps(facts));
  if (runs.nodes == 0) return {};
  const double launches_only = saved_seconds(facts, runs.launches), all = saved_seconds(facts, runs.host);
  // Streams that wait for launches side by side gain more than the time in which all of them are idle.
  const double simulated = std::max(all, launches_only);
  // What tracing adds to a launch is left out of simulations; where threads launch side by side it is not that much.
  const bool beside = runs.streams.size() > 1;
  const double a_node = kNodeFasterSeconds + (beside ? facts.timeline.tracing_per_launch.seconds : 0);
  const double faster = simulated + a_node * runs.nodes / double(runs.streams.size());
  const double most = beside ? faster : std::min(wait.seconds, faster);
  const double high =
      std::min(most + runs.fused_seconds,
               facts.timeline.seconds - kLeastNodeSeconds * std::max(0.0, runs.nodes - runs.fused));
  // Fusing every other kernel, or a graph with the host's work between launches left as it is; a graph of one step, even
  // where that has few kernels.
  const double low = taken_over(facts, kernels / steps(facts)) *
                     (std::min(high, std::max(launches_only, all / 2)) - kNodeSlowerSeconds * runs.nodes);

  Finding finding;
  finding.subject = "host";
  finding.grade = Evidence::measured;
  finding.claim =
      fmt::format("The GPU waits for kernel launches in {} of {}", percent(lost / facts.timeline.seconds),
                  has_steps(facts) ? "each step" : "the run");
  finding.evidence.push_back(fmt::format(
      "{}, median {}; before {} the GPU had run out of work", count_text(facts, kernels, "kernels"),
      human_seconds(median_ns(facts, runs.ops) * 1e-9), count_text(facts, double(wait.gaps), "launches")));
  finding.evidence.push_back(fmt::format("a launch takes {} in the call and {} of host time before it",
                                         human_seconds(median(wait.call_ns) * 1e-9),
                                         human_seconds(median(wait.host_ns) * 1e-9)));
  if (!wait.function.empty()) finding.evidence.push_back("the host is mostly in " + wait.function);
  finding.next_step = "capture the launches as a CUDA graph and replay it, or fuse kernels";
  finding.verify = verify_by_difference();
  finding.ops = some(runs.ops);
  finding.calls = some(runs.calls);
  add_gain(finding, range(facts, low, high, runs.nodes / 2, std::move(runs.host)));
  if (finding.saved_low < facts.threshold && finding.saved_high < kLeastUnsure) return {};
  return {{std::move(finding)}, {}};
}

}  // namespace

Rule launch_bound() {
  return Rule{.id = "launch_bound",
              .looks_for = "kernels that are over before the host has launched the next",
              .needs = "API records",
              .look = look};
}

}  // namespace fulcrum::diagnose
