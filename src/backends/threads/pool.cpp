// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See pool.h. Each worker has two counters in cache lines of their own: `asked` is raised by the caller to hand out
// a job, `answered` follows it when the worker is done. Both are raised with sequentially consistent stores: a
// waiter that is about to park and the notifier that looks for waiters must not miss each other.
#include "backends/threads/pool.h"

#include <hwy/cache_control.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace fulcrum::backends::threads {
namespace {

using Counter = std::atomic<std::uint32_t>;

// After this much spinning a waiter gives way between looks. On a core of its own that costs nothing; where the
// scheduler has put caller and worker on the same core, each would otherwise spin while the other has work to do:
// 228 us a call where one thread alone takes 20, as long as another program keeps the second core busy.
constexpr double kPoliteSeconds = 5e-6;
// The caller waits for workers that are already at work, so it parks this much later than they do: parking while a
// parked worker wakes up (100 us and more on a virtual machine) would let that worker park again in the meantime.
constexpr double kCallerPatience = 20;

// Linux often wakes a worker on the core of its caller although another one is idle, and lets it stay there for about
// 20 ms: measured on two cores, a job of 5 us on each takes 25. Moving a thread costs some 50 us, so it is not done
// at once again.
constexpr double kStaySeconds = 200e-6;
// A look that took so long had another program on its core: where cores are not idle the scheduler knows best, and no
// worker moves for a while.
constexpr double kLongLookSeconds = 300e-6;
constexpr double kLeastCrowdedSeconds = 0.1, kMostCrowdedSeconds = 1.6;

thread_local bool inside_a_job = false;

struct InsideAJob {
  InsideAJob() { inside_a_job = true; }
  ~InsideAJob() { inside_a_job = false; }
};

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Waits until the counter is no longer `old`: spinning, then giving way between looks, then parked. `crowded` is set
/// when giving way took long.
std::uint32_t wait_for_change(const Counter& counter, std::uint32_t old, double spin_seconds, bool* crowded) {
  // A look at the clock costs as much as several pauses.
  constexpr int kPausesPerLook = 32;
  Clock::time_point begin;
  for (std::int64_t look = 0;; ++look) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      const std::uint32_t now = counter.load(std::memory_order_acquire);
      if (now != old) return now;
      hwy::Pause();
    }
    const auto now = Clock::now();
    if (look == 0) begin = now;
    const double waited_seconds = seconds_between(begin, now);
    if (waited_seconds >= spin_seconds) break;
    if (waited_seconds < kPoliteSeconds) continue;
    std::this_thread::yield();
    if (crowded && seconds_between(now, Clock::now()) > kLongLookSeconds) *crowded = true;
  }
  counter.wait(old);
  return counter.load(std::memory_order_acquire);
}

void note_place(std::atomic<int>& place, int cpu) {
  if (place.load(std::memory_order_relaxed) != cpu) place.store(cpu, std::memory_order_relaxed);
}

void raise(Counter& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1);
  counter.notify_one();
}

}  // namespace

struct Pool::Worker {
  int part = 0;  // of each job
  std::atomic<bool> stop = false;
  Clock::time_point stays_until{};
  double crowded_seconds = kLeastCrowdedSeconds;  // to stay for when it is crowded again
  alignas(128) Counter asked = 0;
  alignas(128) Counter answered = 0;
  std::thread thread;

  void stay(Clock::time_point now, double seconds) {
    stays_until = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  /// Longer each time, as long as that is not long ago.
  void stay_crowded() {
    const auto now = Clock::now();
    if (seconds_between(stays_until, now) > kMostCrowdedSeconds) crowded_seconds = kLeastCrowdedSeconds;
    stay(now, crowded_seconds);
    crowded_seconds = std::min(2 * crowded_seconds, kMostCrowdedSeconds);
  }
};

void Pool::Job::run(int part) const {
  const auto cut = [this](std::int64_t at) { return pieces / parts * at + std::min(at, pieces % parts); };
  work(context, cut(part), cut(part + 1));  // never empty: there are at least as many pieces as parts
}

Pool::Pool(int threads, double spin_seconds, CpuMask mask)
    : threads_(std::max(threads, 1)),
      spin_seconds_(spin_seconds),
      mask_(std::move(mask)),
      places_(static_cast<std::size_t>(threads_)) {
  for (auto& place : places_) place.store(-1, std::memory_order_relaxed);
}

Pool::~Pool() { stop(); }

bool Pool::stop() {
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) return false;
  if (std::exchange(stopped_, true)) return true;
  for (auto& worker : workers_) {
    worker->stop.store(true, std::memory_order_relaxed);
    raise(worker->asked);
  }
  for (auto& worker : workers_) worker->thread.join();
  return true;
}

void Pool::start_up_to(int workers) {
  while (static_cast<int>(workers_.size()) < workers) {
    auto worker = std::make_unique<Worker>();
    worker->part = static_cast<int>(workers_.size()) + 1;
    try {
      worker->thread = std::thread([this, raw = worker.get()] { serve(*raw); });
    } catch (const std::system_error&) {
      return;  // the system has no thread left: go on with those there are
    }
    workers_.push_back(std::move(worker));
    started_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  }
}

void Pool::serve(Worker& worker) {
  restrict_to(mask_);
  inside_a_job = true;
  for (std::uint32_t seen = 0;;) {
    bool crowded = false;
    seen = wait_for_change(worker.asked, seen, spin_seconds_, &crowded);
    if (worker.stop.load(std::memory_order_relaxed)) return;
    if (crowded) worker.stay_crowded();
    settle(worker);
    job_.run(worker.part);
    raise(worker.answered);
  }
}

/// On a core of its own, where there is one.
void Pool::settle(Worker& worker) {
  const auto parts = std::span(places_).first(static_cast<std::size_t>(job_.parts));
  const auto own = static_cast<std::size_t>(worker.part);
  int cpu = sched_getcpu();
  const auto is_here = [cpu](const std::atomic<int>& place) {
    return place.load(std::memory_order_relaxed) == cpu;
  };
  if (HWY_UNLIKELY(cpu >= 0 && std::any_of(parts.begin(), parts.begin() + worker.part, is_here))) {
    const auto now = Clock::now();
    if (now < worker.stays_until) return;
    worker.stay(now, kStaySeconds);
    if (move_off(mask_, parts)) cpu = sched_getcpu();
  }
  note_place(parts[own], cpu);
}

void Pool::parallel(std::int64_t pieces, int threads, Work work, void* context) {
  if (pieces <= 0) return;
  int parts = static_cast<int>(std::min<std::int64_t>({threads, threads_, pieces}));
  std::unique_lock lock(busy_, std::defer_lock);
  if (parts <= 1 || inside_a_job || !lock.try_lock() || stopped_) return work(context, 0, pieces);
  start_up_to(parts - 1);
  parts = std::min(parts, static_cast<int>(workers_.size()) + 1);
  if (parts == 1) return work(context, 0, pieces);
  job_ = Job{work, context, pieces, parts};
  note_place(places_[0], sched_getcpu());
  for (int i = 0; i < parts - 1; ++i) raise(workers_[static_cast<std::size_t>(i)]->asked);
  {
    const InsideAJob guard;
    job_.run(0);
  }
  for (int i = 0; i < parts - 1; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i)];
    const std::uint32_t ticket = worker.asked.load(std::memory_order_relaxed);
    wait_for_change(worker.answered, ticket - 1, kCallerPatience * spin_seconds_, nullptr);
  }
}

}  // namespace fulcrum::backends::threads
