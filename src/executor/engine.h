// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What handles of one executor share: the table, the tracker, the device, plans and counters; and the life of a call:
// check, price what must move, choose, run, learn, and fall back when a device fails.
#pragma once

#include <fulcrum/executor.h>

#include <unordered_map>

#include "executor/async.h"
#include "executor/device.h"
#include "executor/dispatch.h"
#include "executor/explore.h"
#include "executor/facts.h"
#include "executor/own_regret.h"
#include "executor/plans.h"

namespace fulcrum::executor {

inline constexpr std::size_t kDTypes = 6;

/// A policy with the candidates it allows, by op and type of the operands.
struct Terms {
  Policy policy;
  struct Masks {
    Mask first = 0;     // what may be chosen
    Mask fallback = 0;  // what may answer instead when that fails
  };
  std::vector<std::array<Masks, kDTypes>> allowed;
};

/// One call, as the engine sees it.
struct Request {
  int op = 0;
  const OpFacts* facts = nullptr;
  DType dtype = DType::f32;
  Args args{};                                    // host pointers; those of buffers are their identities
  std::array<Residence*, FULCRUM_SLOTS> homes{};  // null: plain memory of the caller
  std::uint8_t pinned = 0;                        // slots of plain memory that is page-locked, a bit each
};

/// Where an operand lies on the host, for one that is read or written there. What a buffer has beyond the result that is
/// written into it stays.
Result<void*> host_memory(const Request& request, int slot, bool read, bool write);

/// Numbers that many threads count up at once.
struct alignas(64) Tally {
  std::atomic<std::int64_t> calls{0}, on_device{0}, by_tier[5]{};
  std::atomic<std::int64_t> cpu_nanoseconds{0}, device_nanoseconds{0};
};

class BatchQueue;
struct Twin;

/// What a call on the device may do for memory.
enum class Eviction : std::uint8_t { of_unused_buffers, none };

/// The result in `slot` lies over an input, or is one.
bool overwrites_input(const Request& request, int slot);

/// Names that exist, shares that are some.
Status check_policy(const Policy& policy);

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  static Result<std::shared_ptr<Engine>> make(const Options& options);
  ~Engine();

  int index_of(const ops::Op& op) const;  // -1: added after the executor was made
  std::shared_ptr<const Terms> terms_of(const Policy& policy) const;
  Result<Request> request(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                          DType dtype) const;

  Status check_operand(const Request& request, int slot, const Operand& operand) const;

  /// A call that has a shape but no data, for explanations.
  Result<Request> shape_request(const ops::Op& op, const Args& args, DType dtype) const;

  /// What is said to a call that the policy leaves without one.
  Error no_kernel(const Request& request, const Terms& terms) const;

  /// Checks, decides, runs, learns.
  Status run(const Request& request, const Terms& terms);
  Explanation explain(const Request& request, Traffic traffic, const Terms& terms) const;
  /// What a decision sees: a buffer that has paid its move in what calls lost is as good as there.
  Traffic traffic_of(const Request& request) const { return traffic_of(request, true); }
  /// As if all operands were there alone.
  Traffic traffic_at(const Request& request, Place place) const;
  Choice choose(const Request& request, const Traffic& traffic, Mask allowed) const;
  Mask allowed_now(const Request& request, Mask mask) const;

  Status calibrate(const CalibrateConfig& config);
  Counters counters() const;
  Regret regret() const;
  const Table& table() const { return *table_.load(std::memory_order_acquire); }
  const OpTable* table_of(int op) const { return table().of(op); }
  const std::shared_ptr<Device>& device() const { return device_; }
  const Options& options() const { return options_; }
  const Guards& guards() const { return *guards_; }
  /// For handles whose policy pins a backend: no guard decides for them.
  const Guards& no_guards() const { return *no_guards_; }
  Tracker& tracker() { return tracker_; }
  AsyncPool& pool() { return pool_; }
  /// Small calls that wait for each other; made when first asked for.
  BatchQueue& batches();
  std::int64_t batched_calls() const;
  double now() const { return clock_->now(); }

 private:
  explicit Engine(const Options& options);
  void publish(std::shared_ptr<const Table> table);
  std::string flips_of(const Request& request, const Choice& choice, Mask allowed) const;
  void clear_guards();
  void fill_guard(const Table& of, int op, const OpTable& entry);

  Traffic traffic_of(const Request& request, bool waive_moving) const;
  Status run_call(const Request& request, const Terms& terms);
  void compare(const Asked& asked, const Request& request, const Terms& terms, const Candidate& candidate,
               double seconds, Status& outcome);
  Error not_in_use(const Request& request) const;
  std::string guard_note(const Request& request, const Traffic& traffic, const Terms& terms) const;
  std::string fallback_note(const Request& request) const;
  Status run_candidate(const Request& request, const Candidate& candidate);
  Status run_on_host(const Request& request, const Candidate& candidate);
  Status run_on_device(const Request& request, const Candidate& candidate,
                       Eviction eviction = Eviction::of_unused_buffers);
  Status run_in_pieces(const Request& request, const Candidate& candidate);
  /// A share of the calls is run another way too (shadow.cpp). Of the device's: false where the result was wrong and has
  /// been replaced.
  Result<bool> shadow(const Asked& asked, const Request& request, const Terms& terms,
                      const Candidate& candidate, double seconds);
  /// Of the CPU's: whatever comes of it, the call keeps its result. `seconds` 0: it was not timed.
  void shadow_here(const Asked& asked, const Request& request, const Terms& terms, const Candidate& candidate,
                   double seconds);
  const Candidate* other_way(const Asked& asked, const Request& request, const Candidate& taken) const;
  Result<Args> seen_from_host(const Request& request, const Traffic& traffic, double& paid_seconds);
  Result<double> run_twin(const Twin& twin, const Candidate& candidate);
  Result<double> run_twin_there(const Request& request, const Traffic& traffic, const Candidate& candidate,
                                Twin& twin);
  /// A call that goes another way than the best one known, where its policy and the credit allow it.
  std::optional<Trial> tried(const Asked& asked, const Terms& terms, const Choice& choice);
  /// Seconds that calls took, by place.
  void book(const Candidate& candidate, double seconds);
  void rent(const Request& request, const Traffic& traffic, const Choice& choice, Mask allowed);
  Status stand_by(const Request& request, const Traffic& traffic, Mask wished, Mask allowed) const;
  void say_fallback(const Request& request, Failure failure, const Error& error);
  void say_kept_off(const Request& request);
  Tally& tally() const;

  Options options_;
  const measure::Clock* clock_;
  std::shared_ptr<Device> device_;
  std::vector<OpFacts> facts_;
  std::unordered_map<const ops::Op*, int> index_;
  std::atomic<const Table*> table_{nullptr};
  std::mutex tables_mutex_;
  std::vector<std::shared_ptr<const Table>> tables_;  // all there ever were: readers hold no reference
  Tracker tracker_;
  PlanCache host_plans_, device_plans_;
  std::unique_ptr<Guards> guards_, no_guards_;
  ops::PreparedWatch watch_;  // plans over a graph or an index go with it
  mutable std::array<Tally, 16> tallies_;
  std::atomic<std::int64_t> fallbacks_{0}, splits_{0}, explored_{0}, shadowed_{0}, mismatches_{0}, lost_{0},
      kept_off_{0};
  struct Fallbacks {
    std::atomic<std::uint8_t> said{0};  // kinds that were logged, a bit each
    std::atomic<bool> said_kept_off{false};
    std::atomic<Failure> last{Failure::none};
    std::atomic<std::int64_t> count{0};
  };
  std::array<Fallbacks, 256> fallbacks_of_{};  // by op
  OwnRegret regret_;                           // of shadowed calls
  AsyncPool pool_;                             // what it still runs uses all of the above
  std::once_flag batches_once_;
  std::atomic<const BatchQueue*> batches_made_{nullptr};
  std::shared_ptr<BatchQueue> batches_;  // last: it hands its calls to the pool
};

}  // namespace fulcrum::executor
