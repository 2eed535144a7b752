// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See pool.h. Each worker has two counters in cache lines of their own: `asked` is raised by the caller to hand out
// a job, `answered` follows it when the worker is done. What a worker needs to begin lies in the line of `asked`, so that
// one line travels between the cores and not three, one after the other. A waiter that is about to park and the notifier
// that looks for waiters must not miss each other: see hand_out(). Of a worker and a caller who both mean to do a share
// one does it: see begin() and take_over().
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
using Clock = std::chrono::steady_clock;

// After this much spinning a waiter gives way between looks. On a core of its own that costs nothing; where the
// scheduler has put caller and worker on the same core, each would otherwise spin while the other has work to do:
// 228 us a call where one thread alone takes 20, as long as another program keeps the second core busy.
constexpr double kPoliteSeconds = 5e-6;
// The caller waits for workers that are already at work, so it parks this much later than they do: parking while a
// parked worker wakes up (100 us and more on a virtual machine) would let that worker park again in the meantime.
// Workers do not wait like that for the others of their job: one that has been woken on the core of another would not
// come to run until that one parks. Measured with 16 threads on 16 cores, calls of 3 us took 2 ms.
constexpr double kCallerPatience = 20;
constexpr double kForever = 1e9;

// A job of several workers is as late as the last of them. Where waking the parked ones, one after the other, takes longer
// than the first of them go on spinning, those have parked by the time the last one answers, and the next job has to wake
// them in turn, for ever: with 16 virtual cores that took 125 us to wake, jobs of 2 us took 140 on 8 threads and 290 on
// 16, for minutes, and never on two. So none parks until this many times its spinning has passed since a caller last woke
// a worker.
constexpr double kSpinsAfterAWake = 3;

// Linux often wakes a worker on the core of its caller although another one is idle, and lets it stay there for about
// 20 ms: measured on two cores, a job of 5 us on each takes 25. Moving a thread costs some 50 us, so it is not done
// at once again.
constexpr double kStaySeconds = 200e-6;
// A look that took so long had somebody else on its core. On one that no other thread of the job is on that was another
// program: where cores are not idle the scheduler knows best, and no worker moves for a while. Beside the caller it was the
// caller at work, and no reason to stay: taken for another program, it kept both threads on one core for 0.1 to 4 s at a
// time while the other was idle, two fifths of the time with pauses of 3 ms between calls.
constexpr double kLongLookSeconds = 300e-6;
constexpr double kLeastCrowdedSeconds = 0.1, kMostCrowdedSeconds = 1.6;

// A look at the clock costs as much as several pauses.
constexpr int kPausesPerLook = 32;

thread_local bool inside_a_job = false;

struct InsideAJob {
  InsideAJob() { inside_a_job = true; }
  ~InsideAJob() { inside_a_job = false; }
};

Clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

/// Looks until the counter is no longer `old`, which is true, or `is_over` says of the time at the first look and now that
/// it has been long enough: spinning, then giving way between looks. `long_look` is set when giving way took long.
template <typename IsOver>
bool spin_for_change(const Counter& counter, std::uint32_t old, const IsOver& is_over,
                     bool* long_look = nullptr) {
  Clock::time_point begin;
  for (std::int64_t look = 0;; ++look) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (counter.load(std::memory_order_acquire) != old) return true;
      hwy::Pause();
    }
    const auto now = Clock::now();
    if (look == 0) begin = now;
    if (is_over(begin, now)) return false;
    if (seconds_between(begin, now) < kPoliteSeconds) continue;
    std::this_thread::yield();
    if (long_look && seconds_between(now, Clock::now()) > kLongLookSeconds) *long_look = true;
  }
}

/// Waits until the counter is no longer `old`: as above, then parked, which is put off while `last_wake` is recent.
std::uint32_t wait_for_change(const Counter& counter, std::uint32_t old, std::atomic<bool>& parked,
                              double spin_seconds, const std::atomic<Clock::time_point>* last_wake = nullptr,
                              bool* long_look = nullptr) {
  const auto parks = [&](Clock::time_point begin, Clock::time_point now) {
    return seconds_between(begin, now) >= spin_seconds &&
           (!last_wake || seconds_between(last_wake->load(std::memory_order_relaxed), now) >=
                              kSpinsAfterAWake * spin_seconds);
  };
  if (!spin_for_change(counter, old, parks, long_look)) {
    parked.store(true);
    counter.wait(old);
    parked.store(false, std::memory_order_relaxed);
  }
  return counter.load(std::memory_order_acquire);
}

void note_place(std::atomic<int>& place, int cpu) {
  if (place.load(std::memory_order_relaxed) != cpu) place.store(cpu, std::memory_order_relaxed);
}

/// std::atomic alone would ask the system as long as anybody waits on an address that it puts into the same class, which
/// are all counters of a pool: with 16 threads, eight of them parked, each of the other eight pays for a system call. The
/// flags do not lie beside the counters: whoever has just written one would have to wait for its line to read the other.
bool wake(Counter& counter, const std::atomic<bool>& parked) {
  if (!parked.load()) return false;
  counter.notify_one();
  return true;
}

}  // namespace

struct Pool::Worker {
  int place = 0;  // of places_
  std::atomic<bool> stop = false;
  Moves moves;
  std::atomic<bool> parked = false, caller_parked = false;  // on `asked`, on `answered`
  alignas(128) Counter asked = 0;
  Share share;        // written while the worker is not at work
  Counter taken = 0;  // the last job whose share the caller meant to take over
  alignas(128) Counter answered = 0;
  // The last job that the worker has come to, and the last whose share both meant to do. Nobody else reads them while
  // all goes well.
  alignas(128) Counter begun = 0;
  Counter decided = 0;
  // For callers alone: has a share of the job at hand; its share was taken over, and it has not answered since.
  alignas(128) bool has_share = false;
  bool is_behind = false;
  std::thread thread;

  /// Without waiting for the line, which the worker is reading: the caller has work of its own to begin with. A worker
  /// that parks at this moment may go unseen, so call_again() has to follow. Both say whether they woke the worker.
  bool hand_out(const Share& job) {
    share = job;
    asked.store(asked.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return wake(asked, parked);
  }
  bool call_again() {
    asked.fetch_add(0);  // where a fence would do as well, but ThreadSanitizer knows none
    return wake(asked, parked);
  }
  /// Who writes first and then looks for the other's mark cannot miss it: either the caller sees that the worker has
  /// begun, and leaves the share to it, or the worker sees that the caller may have taken it, and both ask who is first.
  /// Each says whether the share is its own to do.
  bool begin(std::uint32_t ticket) {
    begun.store(ticket);
    return taken.load() != ticket || decided.exchange(ticket) != ticket;
  }
  bool take_over(std::uint32_t ticket) {
    taken.store(ticket);
    return begun.load() != ticket && decided.exchange(ticket) != ticket;
  }
  void answer() {
    answered.store(answered.load(std::memory_order_relaxed) + 1);
    wake(answered, caller_parked);
  }
  bool is_done() const {
    return answered.load(std::memory_order_acquire) == asked.load(std::memory_order_relaxed);
  }
};

void Moves::stay(Time now, double seconds) { stays_until_ = now + as_duration(seconds); }

bool Moves::at_job(bool beside, bool long_look, Time now) {
  if (long_look && !beside) {
    // Longer each time, as long as that is not long ago.
    if (seconds_between(stays_until_, now) > kMostCrowdedSeconds) crowded_seconds_ = kLeastCrowdedSeconds;
    stay(now, crowded_seconds_);
    crowded_seconds_ = std::min(2 * crowded_seconds_, kMostCrowdedSeconds);
  }
  if (!beside || now < stays_until_) return false;
  stay(now, kStaySeconds);
  return true;
}

Pool::Pool(int threads, double spin_seconds, CpuMask mask, double patience_seconds, bool heeds_others)
    : threads_(std::max(threads, 1)),
      spin_seconds_(spin_seconds),
      patience_seconds_(patience_seconds),
      heeds_others_(heeds_others),
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
    worker->hand_out(Share{});
    worker->call_again();
  }
  for (auto& worker : workers_) worker->thread.join();
  return true;
}

void Pool::start_up_to(int workers) {
  while (static_cast<int>(workers_.size()) < workers) {
    auto worker = std::make_unique<Worker>();
    worker->place = static_cast<int>(workers_.size()) + 1;
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
    bool long_look = false;
    seen = wait_for_change(worker.asked, seen, worker.parked, spin_seconds_, &last_wake_, &long_look);
    if (worker.stop.load(std::memory_order_relaxed)) return;
    const bool is_own = worker.begin(seen);
    settle(worker, is_own, long_look && heeds_others_);
    if (is_own) worker.share.run();
    worker.answer();
  }
}

/// On a core of its own, where there is one: for a worker that has a share to do away from those of the job that come
/// before it, for one that came too late away from all.
void Pool::settle(Worker& worker, bool has_share, bool long_look) {
  const auto all = std::span(places_);
  const auto places = has_share ? all.first(worker.share.places) : all;
  const auto others = has_share ? all.first(static_cast<std::size_t>(worker.place)) : all;
  auto& own = places[static_cast<std::size_t>(worker.place)];
  int cpu = sched_getcpu();
  const auto is_here = [cpu](const std::atomic<int>& place) {
    return place.load(std::memory_order_relaxed) == cpu;
  };
  const bool beside = cpu >= 0 && std::any_of(others.begin(), others.end(), is_here);
  if (HWY_UNLIKELY(beside || long_look) && worker.moves.at_job(beside, long_look, Clock::now())) {
    note_place(own, cpu);  // the core it was last seen on is not taken by itself
    if (move_off(mask_, places)) cpu = sched_getcpu();
  }
  note_place(own, cpu);
}

void Pool::note_wake() { last_wake_.store(Clock::now(), std::memory_order_relaxed); }

/// Gives a share of the next job to the first workers that are there, `most` at most, and says how many those are.
int Pool::choose_workers(int most) {
  int chosen = 0;
  in_job_ = 0;
  for (const auto& worker : workers_) {
    if (chosen == most) break;
    if (worker->is_behind) worker->is_behind = !worker->is_done();
    worker->has_share = !worker->is_behind;
    chosen += worker->has_share;
    ++in_job_;
  }
  return chosen;
}

void Pool::parallel(std::int64_t pieces, int threads, Work work, void* context) {
  if (pieces <= 0) return;
  const int parts = static_cast<int>(std::min<std::int64_t>({threads, threads_, pieces}));
  std::unique_lock lock(busy_, std::defer_lock);
  if (parts <= 1 || inside_a_job || !lock.try_lock() || stopped_) return work(context, 0, pieces);
  start_up_to(parts - 1);
  run(pieces, choose_workers(parts - 1) + 1, work, context, patience_seconds_);
}

void Pool::on_each_thread(int threads, Work work, void* context) {
  std::unique_lock lock(busy_, std::defer_lock);
  if (threads <= 1 || inside_a_job || !lock.try_lock() || stopped_) return work(context, 0, threads);
  start_up_to(std::min(threads, threads_) - 1);
  for (const auto& worker : workers_) wait_for_answer(*worker);
  run(threads, choose_workers(threads - 1) + 1, work, context, kForever);
}

/// On the caller and the workers that were chosen.
void Pool::run(std::int64_t pieces, int parts, Work work, void* context, double patience_seconds) {
  if (parts == 1) return work(context, 0, pieces);
  // Never empty: there are at least as many pieces as parts.
  const auto cut = [pieces, parts](std::int64_t at) {
    return pieces / parts * at + std::min(at, pieces % parts);
  };
  int part = 1;
  for (const auto& worker : std::span(workers_).first(in_job_)) {
    if (!worker->has_share) continue;
    if (worker->hand_out({work, context, cut(part), cut(part + 1), in_job_ + 1})) note_wake();
    ++part;
  }
  note_place(places_[0], sched_getcpu());  // after them: they begin the sooner
  const InsideAJob guard;
  work(context, 0, cut(1));
  finish(patience_seconds);
}

/// Waits for the workers of a job whose own share the caller has done, and does the shares of those that do not come. How
/// long its own share took is not known: a look at the clock before it costs every call 0.02 us.
void Pool::finish(double patience_seconds) {
  std::optional<Clock::time_point> end;
  for (const auto& worker : std::span(workers_).first(in_job_)) {
    if (!worker->has_share || worker->is_done()) continue;
    if (worker->call_again()) note_wake();
    const std::uint32_t ticket = worker->asked.load(std::memory_order_relaxed);
    if (!end) end = Clock::now() + as_duration(patience_seconds);
    const auto is_over = [&end](Clock::time_point, Clock::time_point now) { return now >= *end; };
    if (spin_for_change(worker->answered, ticket - 1, is_over)) continue;
    if (worker->take_over(ticket)) {
      worker->is_behind = true;
      note_place(places_[static_cast<std::size_t>(worker->place)], -1);  // wherever it may be: not at work
      worker->share.run();
      continue;
    }
    wait_for_answer(*worker);
  }
}

void Pool::wait_for_answer(Worker& worker) {
  if (worker.is_done()) return;
  const std::uint32_t ticket = worker.asked.load(std::memory_order_relaxed);
  wait_for_change(worker.answered, ticket - 1, worker.caller_parked, kCallerPatience * spin_seconds_);
}

}  // namespace fulcrum::backends::threads
