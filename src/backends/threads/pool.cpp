// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See pool.h. Each worker has two counters in cache lines of their own: `asked` is raised by the caller to hand out
// a job, `answered` follows it when the worker is done. Both are raised with sequentially consistent stores: a
// waiter that is about to park and the notifier that looks for waiters must not miss each other.
#include "backends/threads/pool.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <chrono>
#include <system_error>

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

thread_local bool inside_a_job = false;

struct InsideAJob {
  InsideAJob() { inside_a_job = true; }
  ~InsideAJob() { inside_a_job = false; }
};

/// Waits until the counter is no longer `old`: spinning, then giving way between looks, then parked.
std::uint32_t wait_for_change(const Counter& counter, std::uint32_t old, double spin_seconds,
                              [[maybe_unused]] double patience = 1) {
  // A look at the clock costs as much as several pauses.
  constexpr int kPausesPerLook = 32;
  std::chrono::steady_clock::time_point begin;
  for (std::int64_t look = 0;; ++look) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      const std::uint32_t now = counter.load(std::memory_order_acquire);
      if (now != old) return now;
      hwy::Pause();
    }
    const auto now = std::chrono::steady_clock::now();
    if (look == 0) begin = now;
    const double waited_seconds = std::chrono::duration<double>(now - begin).count();
    if (waited_seconds >= spin_seconds) break;
    if (waited_seconds >= kPoliteSeconds) std::this_thread::yield();
  }
  counter.wait(old);
  return counter.load(std::memory_order_acquire);
}

void raise(Counter& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1);
  counter.notify_one();
}

}  // namespace

struct Pool::Worker {
  int part = 0;  // of each job
  std::atomic<bool> stop = false;
  alignas(128) Counter asked = 0;
  alignas(128) Counter answered = 0;
  std::thread thread;
};

void Pool::Job::run(int part) const {
  const auto cut = [this](std::int64_t at) { return pieces / parts * at + std::min(at, pieces % parts); };
  work(context, cut(part), cut(part + 1));  // never empty: there are at least as many pieces as parts
}

Pool::Pool(int threads, double spin_seconds, CpuMask mask)
    : threads_(std::max(threads, 1)), spin_seconds_(spin_seconds), mask_(std::move(mask)) {}

Pool::~Pool() { stop(); }

void Pool::stop() {
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) return;
  stopped_ = true;
  for (auto& worker : workers_) {
    worker->stop.store(true, std::memory_order_relaxed);
    raise(worker->asked);
  }
  for (auto& worker : workers_) worker->thread.join();
  workers_.clear();
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
    seen = wait_for_change(worker.asked, seen, spin_seconds_);
    if (worker.stop.load(std::memory_order_relaxed)) return;
    job_.run(worker.part);
    raise(worker.answered);
  }
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
  for (int i = 0; i < parts - 1; ++i) raise(workers_[static_cast<std::size_t>(i)]->asked);
  {
    const InsideAJob guard;
    job_.run(0);
  }
  for (int i = 0; i < parts - 1; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i)];
    const std::uint32_t ticket = worker.asked.load(std::memory_order_relaxed);
    wait_for_change(worker.answered, ticket - 1, kCallerPatience * spin_seconds_);
  }
}

}  // namespace fulcrum::backends::threads
