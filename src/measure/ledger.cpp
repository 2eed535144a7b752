// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See ledger.h. A sweep over the instants where an activity begins or ends.
#include "measure/ledger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "measure/runner.h"

namespace fulcrum::measure {
namespace {

// Ranks of the sweep, the strongest first. kWait is the part of a wait before the device's last end: it takes what
// would otherwise be nobody's.
enum Rank : std::size_t {
  kMigrate,
  kKernel,
  kD2h,
  kH2d,
  kSync,
  kQueue,
  kWait,
  kLaunch,
  kAlloc,
  kPin,
  kFree,
  kRanks
};
constexpr std::array<double Ledger::*, kRanks> kField = {
    &Ledger::migrate, &Ledger::kernel, &Ledger::d2h,   &Ledger::h2d, &Ledger::sync, &Ledger::queue,
    &Ledger::sync,    &Ledger::launch, &Ledger::alloc, &Ledger::pin, &Ledger::free};

constexpr Phase kPhases[] = {{"alloc", &Ledger::alloc},
                             {"pin", &Ledger::pin},
                             {"h2d", &Ledger::h2d},
                             {"launch", &Ledger::launch},
                             {"queue", &Ledger::queue},
                             {"kernel", &Ledger::kernel},
                             {"sync", &Ledger::sync},
                             {"d2h", &Ledger::d2h},
                             {"migrate", &Ledger::migrate},
                             {"free", &Ledger::free},
                             {"unattributed", &Ledger::unattributed}};

struct Span {
  double begin = 0, end = 0;
};
using Spans = std::array<std::vector<Span>, kRanks>;

bool on_device(const fulcrum_activity& activity) {
  return activity.kind == FULCRUM_ACTIVITY_H2D || activity.kind == FULCRUM_ACTIVITY_D2H ||
         activity.kind == FULCRUM_ACTIVITY_KERNEL || activity.kind == FULCRUM_ACTIVITY_MIGRATE;
}

Rank rank_of(std::int32_t kind) {
  switch (kind) {
    case FULCRUM_ACTIVITY_ALLOC:
      return kAlloc;
    case FULCRUM_ACTIVITY_PIN:
      return kPin;
    case FULCRUM_ACTIVITY_FREE:
      return kFree;
    case FULCRUM_ACTIVITY_LAUNCH:
      return kLaunch;
    case FULCRUM_ACTIVITY_SYNC:
      return kWait;
    case FULCRUM_ACTIVITY_H2D:
      return kH2d;
    case FULCRUM_ACTIVITY_D2H:
      return kD2h;
    case FULCRUM_ACTIVITY_KERNEL:
      return kKernel;
    case FULCRUM_ACTIVITY_MIGRATE:
      return kMigrate;
    default:
      return kRanks;
  }
}

class Sorter {
 public:
  Sorter(std::span<const fulcrum_activity> activities, Span window)
      : activities_(activities), window_(window) {}

  Spans sort() {
    for (const fulcrum_activity& activity : activities_) {
      if (activity.kind == FULCRUM_ACTIVITY_LAUNCH && activity.correlation != 0) {
        double& returned = returned_.try_emplace(activity.correlation, activity.end_seconds).first->second;
        returned = std::min(returned, activity.end_seconds);
      }
    }
    for (const fulcrum_activity& activity : activities_) {
      const Rank rank = rank_of(activity.kind);
      if (rank == kRanks) continue;
      const Span span{activity.begin_seconds, activity.end_seconds};
      add(rank, span);
      if (activity.kind == FULCRUM_ACTIVITY_SYNC) add_wake_up(span);
      if (on_device(activity)) add_queue(activity);
    }
    return std::move(spans_);
  }

 private:
  void add(Rank rank, Span span) {
    span.begin = std::max(span.begin, window_.begin);
    span.end = std::min(span.end, window_.end);
    if (span.end > span.begin) spans_[rank].push_back(span);
  }

  // From the last end of device work inside the wait on; all of it when none ends there.
  void add_wake_up(Span wait) {
    double begin = wait.begin;
    for (const fulcrum_activity& activity : activities_) {
      if (on_device(activity) && activity.end_seconds <= wait.end)
        begin = std::max(begin, activity.end_seconds);
    }
    add(kSync, {begin, wait.end});
  }

  void add_queue(const fulcrum_activity& work) {
    const auto launched = returned_.find(work.correlation);
    if (work.correlation != 0 && launched != returned_.end())
      add(kQueue, {launched->second, work.begin_seconds});
  }

  std::span<const fulcrum_activity> activities_;
  Span window_;
  std::unordered_map<std::uint32_t, double> returned_;  // when the call that enqueued the work came back
  Spans spans_;
};

double union_of(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  double seconds = 0, reached = 0;
  bool first = true;
  for (const Span& span : spans) {
    const double begin = first ? span.begin : std::max(span.begin, reached);
    if (span.end > begin) seconds += span.end - begin;
    reached = first ? span.end : std::max(reached, span.end);
    first = false;
  }
  return seconds;
}

struct Edge {
  double at = 0;
  std::size_t rank = 0;
  int step = 0;  // +1 begins, -1 ends
};

std::vector<Edge> edges_of(const Spans& spans) {
  std::vector<Edge> edges;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    for (const Span& span : spans[rank]) {
      edges.push_back({span.begin, rank, 1});
      edges.push_back({span.end, rank, -1});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  return edges;
}

}  // namespace

std::span<const Phase> phases() { return kPhases; }

Ledger attribute(std::span<const fulcrum_activity> activities, double begin_seconds, double end_seconds) {
  Ledger ledger;
  ledger.end_to_end_instrumented = end_seconds - begin_seconds;
  const Spans spans = Sorter(activities, {begin_seconds, end_seconds}).sort();
  std::array<int, kRanks> under_way{};
  double at = begin_seconds;
  const auto give_until = [&](double until) {
    const auto first = std::find_if(under_way.begin(), under_way.end(), [](int count) { return count > 0; });
    double& phase = first == under_way.end()
                        ? ledger.unattributed
                        : ledger.*kField[static_cast<std::size_t>(first - under_way.begin())];
    phase += until - at;
    at = until;
  };
  for (const Edge& edge : edges_of(spans)) {
    give_until(edge.at);
    under_way[edge.rank] += edge.step;
  }
  give_until(end_seconds);
  // The wake-up lies inside its wait, so the waits alone are what sync was busy with.
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    if (rank == kSync) continue;
    for (const Phase& phase : kPhases) {
      if (phase.seconds != kField[rank]) continue;
      if (const double seconds = union_of(spans[rank]); seconds > 0)
        ledger.busy[std::string(phase.name)] = seconds;
    }
  }
  return ledger;
}

Ledger mean_of(std::span<const Ledger> ledgers) {
  Ledger mean;
  if (ledgers.empty()) return mean;
  const double share = 1.0 / static_cast<double>(ledgers.size());
  for (const Ledger& ledger : ledgers) {
    for (const Phase& phase : kPhases) mean.*phase.seconds += share * ledger.*phase.seconds;
    mean.end_to_end_bare += share * ledger.end_to_end_bare;
    mean.end_to_end_instrumented += share * ledger.end_to_end_instrumented;
    for (const auto& [name, seconds] : ledger.busy) mean.busy[name] += share * seconds;
  }
  return mean;
}

Ledger typical(std::vector<Ledger> calls) {
  std::sort(calls.begin(), calls.end(), [](const Ledger& a, const Ledger& b) {
    return a.end_to_end_instrumented < b.end_to_end_instrumented;
  });
  const std::size_t cut = calls.size() / 4;
  return mean_of(std::span(calls).subspan(cut, calls.size() - 2 * cut));
}

Result<Measurement> join_ledger(Measurement row, const std::vector<Measurement>& instrumented) {
  constexpr double kResidual = 0.05, kResidualSeconds = 2e-6, kPerturbation = 0.05;
  std::vector<Ledger> ledgers;
  for (const Measurement& process : instrumented) {
    if (process.row() != row.row() || !process.ledger)
      return Error{Code::usage, process.row() + " holds no ledger of " + row.row(), ""};
    ledgers.push_back(*process.ledger);
  }
  if (ledgers.empty()) return Error{Code::usage, "there is no instrumented process to join", ""};
  Ledger ledger = mean_of(ledgers);
  ledger.end_to_end_bare = row.seconds.median;
  const double whole = ledger.end_to_end_instrumented;
  if (std::abs(ledger.unattributed) > std::max(kResidual * whole, kResidualSeconds))
    add_flag(row.flags, "ledger_incomplete");
  if (std::abs(ledger.perturbation()) > kPerturbation) add_flag(row.flags, "ledger_perturbed");
  row.ledger = std::move(ledger);
  return row;
}

}  // namespace fulcrum::measure
