// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls that were started through one handle, so that whoever ends the handle can wait for them: the executor may live on
// with other handles, while the memory that these calls write may not.
#pragma once

#include <fulcrum/executor.h>

#include <algorithm>
#include <list>
#include <mutex>

namespace fulcrum::executor {

class StartedCalls {
 public:
  /// Of a call that will be started. Made before, since nothing may fail between the start of a call and its place in the list.
  using Entry = std::list<Future>;
  static Entry entry() { return Entry(1); }

  void add(Entry entry, const Future& future) noexcept {
    entry.front() = future;
    const std::lock_guard lock(mutex_);
    calls_.splice(calls_.end(), entry);
    if (calls_.size() < look_at_) return;
    calls_.remove_if([](const Future& one) { return one.ready(); });
    look_at_ = std::max(kLeast, 2 * calls_.size());  // so that looking costs each call the same
  }

  /// Runs what waits for company in `engine`, and returns when all calls have ended.
  void finish(Engine& engine) noexcept {
    const std::lock_guard lock(mutex_);
    calls_.remove_if([](const Future& one) { return one.ready(); });
    if (calls_.empty()) return;
    try {
      flush_batches(engine);
    } catch (const std::exception&) {  // no memory: they run when they have waited long enough
    }
    for (const Future& call : calls_) {
      try {
        static_cast<void>(call.get());
      } catch (const std::exception&) {  // no memory for the outcome, which nobody asked for
      }
    }
    calls_.clear();
  }

 private:
  static constexpr std::size_t kLeast = 64;
  std::mutex mutex_;
  std::list<Future> calls_;
  std::size_t look_at_ = kLeast;
};

}  // namespace fulcrum::executor
