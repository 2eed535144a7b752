// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The one pool of the process, behind backends::parallel(). Made at first use, ended at exit, made anew in a forked
// child, where its threads do not exist.
#include <fulcrum/backends.h>
#include <fulcrum/backends/workers.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <new>
#include <vector>

#include "backends/threads/pool.h"

namespace fulcrum::backends {
namespace {

// Long enough to bridge the gap between the calls of a batch, short enough not to be seen in a load average.
constexpr double kSpinSeconds = 100e-6;

struct Allowed {
  threads::CpuMask mask;
  int threads;
};

/// As it was at first use: a thread that is bound to one core later does not bind the workers it starts.
const Allowed& allowed() {
  static const Allowed allowed = [] {
    threads::CpuMask mask = threads::current_cpu_mask();
    const int count = threads::threads_to_use(mask.count, environment("FULCRUM_THREADS"));
    return Allowed{std::move(mask), count};
  }();
  return allowed;
}

std::mutex pool_mutex;
std::atomic<threads::Pool*> shared_pool = nullptr;
threads::Pool* parents_pool = nullptr;
bool ended = false;

/// In a forked child: the parent's workers are not here, and its locks may be held by threads that are not either.
void forget_pool() {
  parents_pool = shared_pool.exchange(nullptr);
  new (&pool_mutex) std::mutex;
}

/// Ends the workers. The pool itself stays, for threads that outlive main and still hold it.
struct AtExit {
  ~AtExit() {
    const std::lock_guard lock(pool_mutex);
    ended = true;
    if (threads::Pool* pool = shared_pool.load()) pool->stop();
  }
};

threads::Pool* pool() {
  if (threads::Pool* ready = shared_pool.load(std::memory_order_acquire)) return ready;
  const std::lock_guard lock(pool_mutex);
  static const AtExit at_exit;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool);
  static_cast<void>(registered);
  if (!ended && !shared_pool.load()) {
    shared_pool.store(new threads::Pool(allowed().threads, kSpinSeconds, allowed().mask));
  }
  return shared_pool.load();
}

/// A thread may still hold one, and the next one must not get its memory.
std::vector<threads::Pool*>& retired_pools() {
  static auto* const pools = new std::vector<threads::Pool*>;
  return *pools;
}

}  // namespace

int usable_threads() { return allowed().threads; }

void renew_workers() {
  const std::lock_guard lock(pool_mutex);
  threads::Pool* old = shared_pool.load();
  if (ended || !old || !old->stop()) return;
  retired_pools().push_back(old);
  shared_pool.store(nullptr);
}

void parallel(std::int64_t pieces, int threads,
              void (*work)(void* context, std::int64_t begin, std::int64_t end), void* context) {
  if (pieces <= 0) return;
  threads::Pool* shared = threads > 1 ? pool() : nullptr;
  if (!shared) return work(context, 0, pieces);
  shared->parallel(pieces, threads, work, context);
}

void on_each_thread(int threads, void (*work)(void* context, std::int64_t begin, std::int64_t end),
                    void* context) {
  threads::Pool* shared = threads > 1 ? pool() : nullptr;
  if (!shared) return work(context, 0, threads);
  shared->on_each_thread(threads, work, context);
}

}  // namespace fulcrum::backends
