// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of the CUDA API as our callbacks see them: one line of memory each, in a ring that belongs to the thread that
// called. The thread only ever writes and never waits; a ring that is full loses calls and counts them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <sys/types.h>

#include "trace/inject/api.h"

namespace fulcrum::trace::inject {

struct SeenCall {
  std::int64_t begin_ns, end_ns;
  std::uint32_t correlation, context, stream;  // stream: CUPTI's number plus one; 0: none
  std::uint8_t kind;                           // Call
  std::uint8_t flags;                          // 1: per-thread default stream, 2: a copy, 4: a range
  std::uint16_t stay;                          // how often CUPTI had been attached again
  std::uint64_t event;  // record of an event; of a copy: where from; of a range: its name
  std::int64_t bytes;
  std::uint64_t address;  // of a copy: where to
  std::uint64_t hash;
};
static_assert(sizeof(SeenCall) == 64);

/// Launches that were seen, whether traced or not. A graph is one. others: calls that launch nothing of the two.
struct Launches {
  std::int64_t kernels = 0, graphs = 0, traced = 0, others = 0;
  std::int64_t all() const { return kernels + graphs; }
  Launches since(const Launches& then) const {
    return {kernels - then.kernels, graphs - then.graphs, traced - then.traced, others - then.others};
  }
};

class ThreadCalls {
 public:
  static constexpr std::uint32_t kPlaces = 8192;

  explicit ThreadCalls(pid_t thread) : ring_(new SeenCall[kPlaces]), tid(thread) {}

  /// Called by the thread itself. True: half a ring has gathered, and somebody should come for it.
  bool push(const SeenCall& call) {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) >= kPlaces) {
      lost_.store(lost_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return false;
    }
    ring_[head % kPlaces] = call;
    head_.store(head + 1, std::memory_order_release);
    return (head + 1) % (kPlaces / 2) == 0;
  }
  void count_launch(bool is_graph, bool is_traced) {
    add_one(is_graph ? graphs_ : kernels_);
    if (is_traced) add_one(traced_);
  }
  void count_other() { add_one(others_); }

  /// Called by the writer's thread: everything that is there, oldest first.
  template <typename Take>
  std::size_t drain(Take take) {
    const std::uint32_t head = head_.load(std::memory_order_acquire);
    std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    const std::size_t count = head - tail;
    for (; tail != head; ++tail) take(ring_[tail % kPlaces]);
    tail_.store(tail, std::memory_order_release);
    return count;
  }
  Launches launches() const {
    return {kernels_.load(std::memory_order_relaxed), graphs_.load(std::memory_order_relaxed),
            traced_.load(std::memory_order_relaxed), others_.load(std::memory_order_relaxed)};
  }
  /// Whether the thread is inside of a call that was announced. A call may be inside of another.
  bool is_inside() const { return depth_.load(std::memory_order_relaxed) > 0; }
  void enter() { depth_.store(depth_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  void leave() {  // what it is inside of may have begun before anybody looked
    depth_.store(std::max(depth_.load(std::memory_order_relaxed) - 1, 0), std::memory_order_relaxed);
  }
  void leave_all() { depth_.store(0, std::memory_order_relaxed); }
  std::int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  // Calls that have begun and not ended. A window may open or close inside one, so begin and end are matched.
  void begin_call(std::uint32_t correlation, std::int64_t now_ns) {
    if (open_count_ == kMostOpen) open_count_ = 0;
    open_[open_count_++] = {now_ns, correlation};
  }
  bool has_open_call() const { return open_count_ > 0; }
  /// When it began; 0: that was not seen.
  std::int64_t end_call(std::uint32_t correlation) {
    while (open_count_ > 0)
      if (open_[--open_count_].correlation == correlation) return open_[open_count_].begin_ns;
    return 0;
  }

  bool is_empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }
  /// For another thread, when the one that had it has ended and nothing of it is left.
  void hand_to(pid_t thread) {
    tid = thread;
    ended = in_runtime = false;
    leave_all();
    open_count_ = 0;
    known_generation = 0;
  }

  // Of the thread alone, and with the first open call one line of memory: a program that does much between two launches
  // has thrown all of this out of its caches. First the stream that was asked for last, so that CUPTI is not asked again.
  alignas(64) const void* known_context = nullptr;
  const void* known_stream = nullptr;
  std::uint32_t known_generation = 0, known_id = 0;
  bool known_per_thread = false;
  bool in_runtime = false;  // inside a call of the runtime that is looked at

 private:
  // By this thread alone, so that no locked instruction is needed.
  static void add_one(std::atomic<std::int64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  struct OpenCall {
    std::int64_t begin_ns;
    std::uint32_t correlation;
  };
  static constexpr int kMostOpen = 8;
  int open_count_ = 0;
  std::unique_ptr<SeenCall[]> ring_;
  OpenCall open_[kMostOpen] = {};
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::atomic<std::int64_t> kernels_{0}, graphs_{0}, traced_{0}, others_{0}, lost_{0};
  std::atomic<int> depth_{0};
  alignas(64) std::atomic<std::uint32_t> tail_{0};

 public:
  // Read and changed under the lock of all rings.
  pid_t tid;
  bool ended = false;
};

/// The rings of all threads that call. That of a thread that has ended is fetched like the others, then used again.
class CallRings {
 public:
  CallRings();
  /// The ring of this thread; null where there is no memory for one.
  ThreadCalls* mine() noexcept;
  template <typename Visit>
  void each(Visit visit) {
    const std::lock_guard lock(mutex_);
    for (auto& thread : threads_) visit(*thread);
  }
  Launches launches() noexcept;
  /// Whether any thread but this one is inside of a call.
  bool others_are_inside(const ThreadCalls& mine) noexcept;

 private:
  static void thread_ends(void* thread);

  std::mutex mutex_;
  std::vector<std::unique_ptr<ThreadCalls>> threads_;
};

}  // namespace fulcrum::trace::inject
