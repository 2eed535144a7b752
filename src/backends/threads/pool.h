// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A pool whose workers spin for a while after each job, because waking a parked thread costs as much as a job of
// 50 us, and then park. The caller takes part. Jobs are cut into contiguous ranges by number alone, so that the
// same piece falls to the same thread every time and its data stays in that core's cache. A worker that the scheduler
// has woken on the core of another thread of its job moves away. The share of one that does not come at all is done by
// the caller, and jobs go without it until it is back.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace fulcrum::backends::threads {

/// CPUs that a thread may run on; empty where the system does not say.
struct CpuMask {
  std::vector<unsigned long> words;  // as sched_getaffinity fills them
  int count = 0;
};
CpuMask current_cpu_mask();
/// Applies to the calling thread. False when the system refuses.
bool restrict_to(const CpuMask& mask);
/// Moves the calling thread to a CPU of the mask that is not among `taken`, and leaves it free to run on all of the mask
/// from there on. False when there is none.
bool move_off(const CpuMask& mask, std::span<const std::atomic<int>> taken);

/// Threads to use when `in_mask` CPUs are allowed and the user wishes for `wanted` (FULCRUM_THREADS): never more
/// than allowed; a wish that is no positive number counts as none.
int threads_to_use(int in_mask, const std::optional<std::string>& wanted);

/// Whether a worker leaves its core when a job begins.
class Moves {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// `beside`: another thread of the job is on that core. `long_look`: looking for the job once took so long that somebody
  /// else had the core. True: move.
  bool at_job(bool beside, bool long_look, Time now);

 private:
  void stay(Time now, double seconds);
  Time stays_until_{};
  double crowded_seconds_ = 0;  // to stay for when it is crowded again
};

class Pool {
 public:
  using Work = void (*)(void* context, std::int64_t begin, std::int64_t end);

  // A caller that is done with its own share waits this long for a worker to begin.
  // Workers that spin look every few microseconds; one that stood behind another held up calls of 2 us by some 350 us,
  // for minutes, with 16 threads on 16 virtual cores.
  static constexpr double kPatienceSeconds = 10e-6;

  /// Workers start when a job first needs them. They run on `mask`, whatever the thread is bound to that makes them.
  /// `heeds_others`: they stay where they are for a while where another program is on their core.
  Pool(int threads, double spin_seconds, CpuMask mask, double patience_seconds = kPatienceSeconds,
       bool heeds_others = true);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Runs work over [0, pieces) on up to `threads` threads, as far as they come, and returns when all is done. Inside a
  /// piece of work, or while another thread's job has the pool, it runs on the calling thread alone.
  void parallel(std::int64_t pieces, int threads, Work work, void* context);

  /// Runs piece i on thread i, the caller being the first, and waits for each of them however long it takes.
  void on_each_thread(int threads, Work work, void* context);

  /// Ends the workers, whose memory stays; later jobs run on their callers. A pool at work is left as it is: false.
  bool stop();

  int workers() const { return started_.load(std::memory_order_relaxed); }

 private:
  /// One thread's share of a job.
  struct Share {
    Work work = nullptr;
    void* context = nullptr;
    std::int64_t begin = 0, end = 0;
    std::size_t places = 1;  // that threads of the job may be at: the first ones
    void run() const { work(context, begin, end); }
  };
  struct Worker;

  void start_up_to(int workers);
  int choose_workers(int most);
  void run(std::int64_t pieces, int parts, Work work, void* context, double patience_seconds);
  void finish(double patience_seconds);
  void wait_for_answer(Worker& worker);
  void serve(Worker& worker);
  void settle(Worker& worker, bool has_share, bool long_look);
  void note_wake();

  // What workers read at every job lies apart from what callers write at every job: where both share a cache line, which
  // depended on where the pool came to lie, a worker has to wait for it before it begins.
  alignas(128) const int threads_;
  const double spin_seconds_, patience_seconds_;
  const bool heeds_others_;
  const CpuMask mask_;
  // The CPU that the thread of each part was last seen on; written only when it has changed, so that it stays in every
  // core's cache.
  std::vector<std::atomic<int>> places_;
  // When a caller last woke a worker: see kSpinsAfterAWake.
  std::atomic<std::chrono::steady_clock::time_point> last_wake_{};

  alignas(128) std::mutex busy_;  // held by the caller of a job; guards all below
  bool stopped_ = false;
  std::vector<std::unique_ptr<Worker>> workers_;
  // The first so many workers have shares of the job at hand, but for those that are behind.
  std::size_t in_job_ = 0;
  std::atomic<int> started_ = 0;
};

}  // namespace fulcrum::backends::threads
