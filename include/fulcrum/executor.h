// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Every call where it is fastest: an Executor takes ops on host memory or Buffers, decides by measured costs and by where
// the data lives, runs, checks on itself, and counts, logs and explains every fall-back. See docs/executing.md.
#pragma once

#include <fulcrum/core/plan.h>
#include <fulcrum/executor/buffer.h>
#include <fulcrum/executor/calls.h>
#include <fulcrum/measure.h>

#include <cmath>
#include <optional>
#include <ranges>

namespace fulcrum::executor {

/// What the caller allows and wants. A Policy belongs to a handle: exec.with(policy) is another handle on the same
/// executor. Handles share device_bytes and explore_credit, which are those of make(): with() warns when it is given
/// others, but a handle with a credit of 0 tries nothing.
struct Policy {
  std::vector<std::string> precisions = {
      "fp32"};              // that kernels may use; a type of the operands is always allowed
  bool throughput = false;  // many callers at once: a CPU call counts by the share of the threads it holds
  bool strict = false;      // no fall-back: an error of the chosen kernel is the call's error
  bool frozen = false;      // decide by the table alone: no learning, no exploration
  std::string backend;      // pinned; empty: any
  std::int64_t device_bytes = 0;  // of device memory at most; 0: four fifths of it
  double shadow_share = 0;        // of calls that are run another way too, compared and timed: see regret()
  double explore_credit = 0.01;  // of the time spent may go into trying what the table thinks slower; 0: none
  double batch_latency_seconds = 0;  // small asynchronous calls may wait so long to be run together; 0: never
};

/// One way to run a call, as priced.
struct Way {
  std::string name;  // "gelu/threads/t4"
  Place place = Place::host;
  double seconds = 0;        // predicted, moves included
  double moves_seconds = 0;  // part of it: operands that are not where they are wanted
  double correction = 1;     // learned: measured / predicted so far, contained in `seconds`
  double sigma = 0;          // of ln(seconds)
  Grade grade = Grade::c;
  std::int64_t calls = 0;  // run so far in this size class
  std::string why_not;     // not empty: not eligible, and why
};

/// Why a call runs where it runs.
struct Explanation {
  std::string op;
  Shape shape;
  std::vector<Way> ways;             // the chosen one first, then by predicted time, then those not eligible
  std::string tier;                  // "seen", "grid", "model", "pinned"
  double margin = 1;                 // time of the runner-up / time of the chosen one
  std::string residency;             // "host", "resident", "A on the device, B on the host"
  std::string flips;                 // what would change it: "resident inputs", "n >= 240000"
  std::vector<std::string> notes;    // breaker, fall-backs of this op, table and its age
  std::vector<double> last_seconds;  // measured, newest first, at most 3
  std::string text() const;
};

/// Readable at any time, from any thread.
struct Counters {
  /// Without typed calls below the guard, which counting would make twice as long.
  std::int64_t calls = 0, on_cpu = 0, on_device = 0;
  std::int64_t by_seen = 0, by_grid = 0, by_model = 0;
  /// Calls that a kernel failed and another answered; calls whose policy names a device that was not in use.
  std::int64_t fallbacks = 0, kept_off = 0;
  std::int64_t splits = 0, explored = 0, shadowed = 0, mismatches = 0, batched = 0, data_lost = 0,
               evictions = 0;
  std::int64_t uploads = 0, downloads = 0, launches = 0;
  double uploaded_bytes = 0, downloaded_bytes = 0;
  double cpu_seconds = 0, device_seconds = 0, explore_seconds = 0;  // of calls that were timed
  std::string breaker;                                              // "closed", "half open", "open: reason"
};

/// What the executor's own choices cost against the best one, from the newest 4096 calls that were run both ways
/// (Policy::shadow_share), here or there: time of the way that was taken over that of the faster one, moves included.
struct Regret {
  std::int64_t points = 0;  // 0: nothing is known, and the rest is NaN
  double mean = NAN, low = NAN, high = NAN, p95 = NAN, max = NAN;
};

struct CalibrateConfig {
  double budget_seconds = 8;     // for all ops together
  std::vector<std::string> ops;  // empty: all that make sense without being asked for
  std::function<bool()> interrupted;
  std::function<void(std::string_view op, int done, int total)> progress;
};

struct Options {
  Policy policy;
  bool load_table = true;  // from the data folder; else, or when there is none, the shipped profile
  std::optional<std::filesystem::path> table_file;  // in place of the data folder's
  std::string device;  // backend to use as the device; empty: the first available of kind gpu
  bool use_device = true;
  const measure::Clock* clock = nullptr;  // null: the steady clock
};

/// An asynchronous call's outcome.
class Future {
 public:
  Future() = default;
  bool valid() const { return state_ != nullptr; }
  bool ready() const;
  /// Waits; the same answer every time.
  Status get() const;
  struct State;
  explicit Future(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

class Engine;
struct Terms;
struct Guards;

/// A handle: copies share the table, the tracker, the device and the pools. Thread-safe.
class Executor : public Calls<Executor> {
 public:
  static Result<Executor> make(const Options& options);
  static Result<Executor> make() { return make(Options{}); }
  Executor with(const Policy& policy) const;
  const Policy& policy() const;

  /// n values of T, zeroed; page-locked where there is a device.
  template <class T>
  Result<Buffer<T>> buffer(std::int64_t n) const {
    FULCRUM_TRY(auto home, allocate(n, sizeof(T)));
    return Buffer<T>(std::move(home), n);
  }
  template <class T>
  Result<Buffer<T>> buffer(std::span<const T> values) const {
    FULCRUM_TRY(auto made, buffer<T>(static_cast<std::int64_t>(values.size())));
    FULCRUM_TRY(auto to, made.overwrite());
    std::copy(values.begin(), values.end(), to.begin());
    return made;
  }
  /// The caller's memory, which must outlive the buffer. While the buffer lives it is looked at and changed through it
  /// (read, overwrite, modify): the valid copy may be on the device. With its last copy the data comes home.
  template <class T>
  Buffer<T> wrap(std::span<T> values) const {
    return Buffer<T>(adopt(values.data(), static_cast<std::int64_t>(values.size_bytes())),
                     static_cast<std::int64_t>(values.size()));
  }
  /// The same of a vector or an array; a temporary one would end before its buffer, and is refused.
  template <std::ranges::borrowed_range Range, class T = std::ranges::range_value_t<Range>>
  requires Values<T>::template kHolds<std::remove_reference_t<Range>> Buffer<T> wrap(Range&& values) const {
    return wrap(std::span<T>(values));
  }

  /// Any op by name on host memory: pointers, dims and scalars in their slots (ops::resolve fills the latter). `dtype` is
  /// that of the operands where an op takes several; none: the op's first, f16 for attention and f32 for most.
  Status run(std::string_view op, const Args& args, std::optional<DType> dtype = {}) const;
  /// The same with Buffers: operands in the order of the op's pointer slots; pointers in args are ignored.
  Status run(const ops::Op& op, const Args& args, std::span<const Operand> operands,
             std::optional<DType> dtype = {}) const;
  /// Returns at once. Buffers are kept alive; plain memory must outlive the call.
  Future run_async(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                   std::optional<DType> dtype = {}) const;

  /// What would happen and why; nothing runs.
  Result<Explanation> explain(const ops::Op& op, const Args& args, std::span<const Operand> operands,
                              std::optional<DType> dtype = {}) const;
  Result<Explanation> explain(std::string_view op, const Shape& shape, Place data = Place::host) const;
  /// For tests of a user's own: an error that says where the call would run instead, with the reason.
  Status expect_place(std::string_view op, const Shape& shape, Place data, Place expected) const;

  Status calibrate(const CalibrateConfig& config) const;
  /// Ops that the table's file has no times of, or those of kernels that have changed since. Of ops that need a graph or an
  /// index the latter alone. What `fulcrum calibrate --stale` measures.
  std::vector<std::string> ops_to_renew() const;
  Counters counters() const;
  Regret regret() const;
  bool has_device() const;
  Engine& engine() const { return *engine_; }
  const Guards& guards() const { return *guards_; }

 private:
  Executor(std::shared_ptr<Engine> engine, std::shared_ptr<const Terms> terms);
  Result<std::shared_ptr<Residence>> allocate(std::int64_t count, std::size_t element_bytes) const;
  std::shared_ptr<Residence> adopt(void* data, std::int64_t bytes) const;
  std::shared_ptr<Engine> engine_;
  std::shared_ptr<const Terms> terms_;  // the policy, resolved against the table's candidates
  const Guards* guards_;
};

}  // namespace fulcrum::executor

namespace fulcrum {
using executor::Buffer;
using executor::Counters;
using executor::Epilogue;
using executor::Executor;
using executor::Explanation;
using executor::Future;
using executor::Place;
using executor::Policy;
}  // namespace fulcrum
