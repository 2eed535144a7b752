// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of an executor for calls whose callers do not wait, and what such a caller holds.
#pragma once

#include <fulcrum/executor.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

namespace fulcrum::executor {

/// Set once, read by anybody.
struct Future::State {
  void set(Status outcome);
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  Status wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> ready_{false};
  Status outcome_;
};

/// A future that is ready: for calls that fail before they are queued.
Future ready_future(Status outcome);

/// What a call that threw failed with. To be called in the handler.
Error error_of(const std::exception& thrown);

/// A few threads behind a bounded queue. They start with the first submit; the destructor runs what is queued and then
/// joins them. Work must not own the pool's owner, which would then end on one of its own threads.
class AsyncPool {
 public:
  /// 0 threads: half of those the process may use, at least 1, at most 4.
  explicit AsyncPool(int threads = 0, std::size_t most_queued = 4096);
  AsyncPool(const AsyncPool&) = delete;
  AsyncPool& operator=(const AsyncPool&) = delete;
  ~AsyncPool();

  /// Runs `work` on one of the threads; on the caller's when the queue is full or no thread can be had, so that memory
  /// stays bounded and work that submits work cannot lock up. An exception becomes an error of the future.
  Future submit(std::function<Status()> work);
  /// The same for work that reports by itself.
  void post(std::function<void()> work);
  /// Returns when all that was queued before has run.
  void drain();
  int threads() const { return most_threads_; }

 private:
  struct State;
  void start_locked();
  int most_threads_;
  std::size_t most_queued_;
  std::shared_ptr<State> state_;
};

}  // namespace fulcrum::executor
