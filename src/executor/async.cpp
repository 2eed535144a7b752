// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One mutex, one queue, a few threads: a call that is worth queueing takes microseconds, so the lock is not what it
// waits for.
#include "executor/async.h"

#include <algorithm>
#include <deque>
#include <new>
#include <system_error>
#include <thread>

namespace fulcrum::executor {

void Future::State::set(Status outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (ready_.load(std::memory_order_relaxed)) return;
    outcome_ = std::move(outcome);
    ready_.store(true, std::memory_order_release);
  }
  changed_.notify_all();
}

Status Future::State::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_.load(std::memory_order_relaxed); });
  return outcome_;
}

bool Future::ready() const { return state_ && state_->ready(); }

Status Future::get() const {
  if (!state_) {
    return Error{Code::invalid_argument, "a Future without a call has no outcome",
                 "assign it from run_async() or exec.async() first"};
  }
  return state_->wait();
}

Future ready_future(Status outcome) {
  auto state = std::make_shared<Future::State>();
  state->set(std::move(outcome));
  return Future(std::move(state));
}

Error error_of(const std::exception& thrown) {
  // A text so short needs no memory itself.
  if (dynamic_cast<const std::bad_alloc*>(&thrown)) return Error{Code::out_of_memory, "out of memory", ""};
  return Error{Code::internal, std::string("an asynchronous call threw: ") + thrown.what(), ""};
}

/// Shared with the threads, so that the last of them may outlive the pool by an instant.
struct AsyncPool::State {
  std::mutex mutex;
  std::condition_variable work_came, work_done;
  std::deque<std::function<void()>> queue;
  std::vector<std::thread> threads;
  std::size_t running = 0;
  bool stopping = false;

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      work_came.wait(lock, [&] { return stopping || !queue.empty(); });
      if (queue.empty()) return;
      {
        const std::function<void()> work = std::move(queue.front());
        queue.pop_front();
        ++running;
        lock.unlock();
        work();
      }  // what the work held is gone before anybody hears that it is done
      lock.lock();
      --running;
      if (queue.empty() && running == 0) work_done.notify_all();
    }
  }
};

AsyncPool::AsyncPool(int threads, std::size_t most_queued)
    : most_threads_(threads > 0 ? threads : std::clamp(backends::usable_threads() / 2, 1, 4)),
      most_queued_(most_queued),
      state_(std::make_shared<State>()) {}

AsyncPool::~AsyncPool() {
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    threads.swap(state_->threads);
  }
  state_->work_came.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void AsyncPool::start_locked() {
  if (!state_->threads.empty()) return;
  for (int i = 0; i < most_threads_; ++i) {
    try {
      state_->threads.emplace_back([state = state_] { state->serve(); });
    } catch (const std::system_error&) {
      return;  // as many as there may be; with none post() works on the caller's
    }
  }
}

void AsyncPool::post(std::function<void()> work) {
  {
    const std::lock_guard lock(state_->mutex);
    start_locked();
    if (!state_->threads.empty() && state_->queue.size() < most_queued_) {
      state_->queue.push_back(std::move(work));
      work = nullptr;
    }
  }
  if (work) {
    work();
  } else {
    state_->work_came.notify_one();
  }
}

Future AsyncPool::submit(std::function<Status()> work) {
  auto state = std::make_shared<Future::State>();
  post([state, work = std::move(work)] {
    try {
      state->set(work());
    } catch (const std::exception& thrown) {
      state->set(error_of(thrown));
    }
  });
  return Future(std::move(state));
}

void AsyncPool::drain() {
  std::unique_lock lock(state_->mutex);
  state_->work_done.wait(lock, [&] { return state_->queue.empty() && state_->running == 0; });
}

}  // namespace fulcrum::executor
