// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls whose callers do not wait. Each goes to a thread of the executor's; where the policy lets calls wait, those of
// one op and shape that pay only together are collected, up to the batch that the table recommends or until the oldest
// has waited long enough, and run as one call on memory of ours.
#pragma once

#include <limits>
#include <thread>
#include <unordered_map>

#include "executor/async.h"
#include "executor/engine.h"

namespace fulcrum::executor {

/// A call with what must stay alive until it has run.
struct LaterCall {
  Request request;
  std::shared_ptr<const Terms> terms;
  std::array<std::shared_ptr<Residence>, FULCRUM_SLOTS> keep;
};

/// What the queue needs from the engine; tests bring their own.
struct BatchHooks {
  std::function<Status(const Request&, const Terms&)> run;
  struct Time {
    double seconds = 0, high = 0;  // predicted for one call, and the end of its interval; 0: not known
  };
  std::function<Time(const Request&, const Terms&)> predict;
  /// Memory that both sides can use well; null: there is none.
  std::function<std::shared_ptr<Residence>(std::int64_t bytes)> staging;
  bool pinned_staging = false;  // as a rule
};
BatchHooks hooks_of(Engine& engine);

/// Calls like this one to put together: the rule of `fulcrum batch`, powers of two, the highest throughput whose time
/// keeps the limit, moving into and out of the batch included. 1: alone.
std::int64_t recommended_calls(const BatchHooks& hooks, const Request& request, const Terms& terms,
                               double limit_seconds);

class BatchQueue {
 public:
  /// Without a timer only poll(), flush() and full batches run what waits.
  BatchQueue(AsyncPool& pool, const measure::Clock& clock, BatchHooks hooks, bool timer = true);
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;
  ~BatchQueue();  // runs all that waits, and returns when the pool is idle

  Future submit(LaterCall call);
  void poll();   // runs batches whose oldest call has waited long enough
  void flush();  // runs all of them
  /// Calls that ran together with others, and how many calls that made.
  std::int64_t batched() const { return batched_.load(std::memory_order_relaxed); }
  std::int64_t batches() const { return batches_.load(std::memory_order_relaxed); }

 private:
  struct Item {
    LaterCall call;
    std::shared_ptr<Future::State> state;
  };
  struct Key {
    int op = 0;
    DType dtype = DType::f32;
    const Terms* terms = nullptr;
    Args args{};  // what all calls of a batch have in common
    bool operator==(const Key& other) const;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// Calls that can be put together.
  struct Group {
    std::vector<Item> waiting;
    std::shared_ptr<const Terms> terms;  // keeps the key's pointer its own
    double deadline = 0;
    std::int64_t units = 0, target_units = 0;  // as many as are waiting, and at most together
    bool gains = false;                        // by company; else those of the target and more go alone
    int batches_left = 0;                      // until the recommendation is asked for again
  };

  static bool can_batch(const Request& request);
  static Key key_of(const LaterCall& call);
  std::shared_ptr<const Terms> shared_terms(const std::shared_ptr<const Terms>& terms);
  void ask_advice(Group& group, const LaterCall& call, std::int64_t units);
  std::vector<Item> take(Group& group);
  void start(std::vector<Item> items);
  void run_items(std::vector<Item>& items);
  Status run_together(std::vector<Item>& items);
  std::shared_ptr<Residence> take_staging(std::int64_t bytes);
  void give_staging(std::shared_ptr<Residence> block);
  std::vector<std::vector<Item>> take_due(double now);
  bool timer_runs();
  void serve_timer();

  AsyncPool& pool_;
  const measure::Clock& clock_;
  BatchHooks hooks_;
  bool timer_wanted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<Key, Group, Hash> groups_;
  std::vector<std::shared_ptr<const Terms>> terms_;
  std::size_t waiting_ = 0;
  double timer_wakes_at_ = std::numeric_limits<double>::infinity();  // earlier deadlines must wake it
  bool stopping_ = false;
  std::thread timer_;
  std::mutex staging_mutex_;
  std::vector<std::shared_ptr<Residence>> staging_;
  std::atomic<std::int64_t> batched_{0}, batches_{0};
};

}  // namespace fulcrum::executor
