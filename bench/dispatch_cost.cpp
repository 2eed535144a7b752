// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What a decision costs: nanoseconds of the guard, of calls seen before, of the grid and of the full model, alone and
// with 16 threads at once; the grid also with one call in 64 booked by the tracker, whose cost then counts. All are
// measured in turns, round after round: of the rounds' medians and 99th percentiles it gives the middle and its interval,
// and the 99th percentile of all rounds together, in which one that was disturbed counts in full. Prints a table and writes fulcrum.dispatch_cost/1 to the file named.
//   dispatch_cost [FILE]
#include <fmt/format.h>
#include <fulcrum/measure.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/candidates.h"
#include "executor/op_table.h"
#include "executor/shapes.h"
#include "executor/tracker.h"

namespace fulcrum::executor {
namespace {

constexpr int kCalls = 64;      // timed together: a clock read costs as much as a decision
constexpr int kBatches = 1000;  // of each thread in a round
constexpr int kRounds = 15;     // the interval of their middle leaves out three at either end
constexpr int kShapes = 48;
constexpr double kAlpha = 0.05;

/// Calls of one op that all are answered by one tier.
struct Workload {
  const OpTable* table;
  int index = 0;
  Mask allowed = 0;
  std::vector<std::pair<Args, Traffic>> calls;  // of plain host memory
};

Workload workload_of(const Table& tables, std::string_view name, Tier tier, Case which,
                     const Tracker& tracker) {
  const auto all = ops::all();
  int index = 0;
  while (all[static_cast<std::size_t>(index)]->name != name) ++index;
  Workload work{tables.of(index), index, 0, {}};
  work.allowed = default_mask(work.table->op(), work.table->candidates());
  ShapeSource source(work.table->op(), 31);
  for (int i = 0; i < 4000 && work.calls.size() < kShapes; ++i) {
    const auto args = source.draw(1e-7, 1e-2);
    if (!args) continue;
    const Traffic traffic = traffic_of(work.table->op(), *args, which);
    const Tier first = work.table->choose(*args, traffic, work.allowed, tracker).tier;
    if (tier == Tier::guard || first == (tier == Tier::grid ? Tier::grid : Tier::model))
      work.calls.emplace_back(*args, traffic);
  }
  return work;
}

/// One call of a batch is booked as the executor books it: timed as predicted, give or take a few percent.
void track(const Workload& work, int batch, Tracker& tracker) {
  const auto& [args, traffic] = work.calls[static_cast<std::size_t>(batch) % work.calls.size()];
  const Choice choice = work.table->choose(args, traffic, work.allowed, tracker);
  const Tracker::Cell cell{work.index, choice.candidate, traffic.residency(), choice.size_class,
                           work.table->candidates()[choice.candidate].place};
  const double off = 1 + 0.01 * (batch % 7 - 3);
  static_cast<void>(tracker.record(cell, 1e-5, 1e-5 * off));
  tracker.spend(1e-5);
}

/// Nanoseconds of a call, one number a batch.
std::vector<double> batches_of(const Workload& work, Tier tier, bool tracked, Tracker& tracker) {
  const measure::Clock& clock = measure::steady_clock();
  const OpTable::Guard guard = work.table->guard();
  std::vector<double> times;
  times.reserve(kBatches);
  // A second call of the same shape would be one that was seen.
  const int calls = tier == Tier::model ? std::min(kCalls, static_cast<int>(work.calls.size())) : kCalls;
  for (int batch = 0; batch < (tier == Tier::model ? kBatches / 20 : kBatches); ++batch) {
    if (tier == Tier::model) work.table->renew();
    const double begin = clock.now();
    for (std::size_t i = 0, next = 0; i < static_cast<std::size_t>(calls); ++i) {
      const auto& [args, traffic] = work.calls[next];
      next = next + 1 == work.calls.size() ? 0 : next + 1;  // a remainder costs as much as the guard
      std::uintptr_t chosen = 0;
      if (tier == Tier::guard) {
        chosen = args.dim[0] < guard.below ? reinterpret_cast<std::uintptr_t>(guard.kernel) : 0;
      } else {
        chosen = work.table->choose(args, traffic, work.allowed, tracker).candidate;
      }
      asm volatile("" : : "r"(chosen) : "memory");
    }
    if (tracked) track(work, batch, tracker);
    times.push_back((clock.now() - begin) / calls * 1e9);
  }
  return times;
}

/// One line of the table, and what its rounds took.
struct Cost {
  std::string name;
  const Workload* work;
  Tier tier;
  bool tracked;
  int threads;
  std::vector<double> medians_ns = {}, p99s_ns = {}, all_ns = {};
};

void add_round(Cost& cost, Tracker& tracker) {
  if (cost.work->calls.empty()) return;
  std::vector<std::vector<double>> by_thread(static_cast<std::size_t>(cost.threads));
  {
    std::vector<std::jthread> running;
    running.reserve(by_thread.size());
    for (auto& times : by_thread)
      running.emplace_back(
          [&cost, &tracker, &times] { times = batches_of(*cost.work, cost.tier, cost.tracked, tracker); });
  }
  std::vector<double> all;
  for (const auto& times : by_thread) all.insert(all.end(), times.begin(), times.end());
  cost.medians_ns.push_back(stats::median(all));
  cost.p99s_ns.push_back(stats::quantile(all, 0.99));
  cost.all_ns.insert(cost.all_ns.end(), all.begin(), all.end());
}

std::string text_of(std::span<const double> ns) {
  if (ns.empty()) return "-";
  const auto interval = stats::median_interval_independent(ns, kAlpha);
  return fmt::format("{:.1f} [{:.1f}, {:.1f}]", stats::median(ns), interval.low, interval.high);
}

Json interval_json(std::span<const double> ns) {
  if (ns.empty()) return nullptr;
  const auto interval = stats::median_interval_independent(ns, kAlpha);
  return Json::array({interval.low, interval.high});
}

int run(int argc, char** argv) {
  if (argc > 2 || (argc > 1 && argv[1][0] == '-')) {
    fmt::print(stderr, "dispatch_cost [FILE]\n");
    return 2;
  }
  Options options;
  options.load_table = true;
  const backends::Backend* device = nullptr;
  for (const backends::Backend* backend : backends::all()) {
    if (backend->kind() == "gpu" && backend->available() && !device) device = backend;
  }
  const auto table = load_table(device, options);
  if (!table.ok()) {
    fmt::print(stderr, "{}\n", table.error().message);
    return 3;
  }
  Tracker tracker;
  const Case which = device ? Case::pageable : Case::cpu_only;
  const Workload line = workload_of(**table, "gelu", Tier::grid, which, tracker);
  const Workload surface = workload_of(**table, "matmul", Tier::model, which, tracker);
  std::vector<Cost> costs;
  for (const int threads : {1, 16}) {
    costs.push_back({"guard", &line, Tier::guard, false, threads});
    costs.push_back({"seen (matmul)", &surface, Tier::seen, false, threads});
    costs.push_back({"grid (gelu)", &line, Tier::grid, false, threads});
    costs.push_back({"grid, tracked", &line, Tier::grid, true, threads});
    costs.push_back({"model (matmul)", &surface, Tier::model, false, threads});
  }
  for (int round = 0; round < kRounds; ++round) {
    for (Cost& cost : costs) add_round(cost, tracker);
  }
  fmt::print("{}\n{} rounds; the middle of their medians and 99th percentiles, with its interval at 95 %\n",
             (*table)->describe(), kRounds);
  fmt::print("{:16} {:>8}  {:24}  {:24}  {}\n", "tier", "threads", "median ns", "p99 ns", "p99 of all");
  Json rows = Json::array();
  for (const Cost& cost : costs) {
    const bool known = !cost.medians_ns.empty();
    const double p99_of_all = known ? stats::quantile(cost.all_ns, 0.99) : 0;
    fmt::print("{:16} {:>8}  {:24}  {:24}  {:.1f}\n", cost.name, cost.threads, text_of(cost.medians_ns),
               text_of(cost.p99s_ns), p99_of_all);
    rows.push_back(Json{{"tier", cost.name},
                        {"threads", cost.threads},
                        {"median_ns", known ? stats::median(cost.medians_ns) : 0},
                        {"median_ci_ns", interval_json(cost.medians_ns)},
                        {"p99_ns", known ? stats::median(cost.p99s_ns) : 0},
                        {"p99_ci_ns", interval_json(cost.p99s_ns)},
                        {"p99_of_all_ns", p99_of_all}});
  }
  const Json document{{"schema", "fulcrum.dispatch_cost/1"},
                      {"table", (*table)->describe()},
                      {"usable_threads", backends::usable_threads()},
                      {"measured_utc", utc_now()},
                      {"written_by", std::string("fulcrum ") + std::string(build_info().version) + " (" +
                                         std::string(build_info().commit) + ")"},
                      {"calls_per_batch", kCalls},
                      {"batches", kBatches},
                      {"rounds", kRounds},
                      {"level", 1 - kAlpha},
                      {"rows", rows}};
  if (argc > 1 && !write_file(argv[1], json_text(document, 1) + "\n").ok()) return 3;
  return 0;
}

}  // namespace
}  // namespace fulcrum::executor

int main(int argc, char** argv) { return fulcrum::executor::run(argc, argv); }
