// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls on a backend that has memory of its own: operands kept there (DeviceCall), host operands that travel with
// every call (Trip), and recorded batches timed by the device's clock (Replay). For those who measure and check.
#pragma once

#include <fulcrum/backends.h>

#include <span>

namespace fulcrum::backends {

/// True for a backend whose kernels want pointers into its own memory.
bool has_memory(const Backend& backend);

/// The pointer slots of a call that are not null, with their bytes and how they are cut.
std::vector<fulcrum_operand> operands_of(const ops::Op& op, const Args& args, DType dtype);

/// Ways in which operands travel, the default first; empty: the backend makes no trips.
std::vector<std::string> trip_paths(const Backend& backend);

/// Paths that begin with "managed" or "overlapped" belong to that regime alone, all others to roundtrip, reuse and
/// first_call.
bool path_serves(std::string_view path, Regime regime);

/// A kernel on host data: in, run, out, as one call that has finished when it returns.
class Trip {
 public:
  /// `calls`: kernel calls between the way in and the way out (the regime reuse). An unknown path is an error that
  /// lists the known ones.
  static Result<Trip> make(const Kernel& kernel, const Args& host, std::string_view path, int calls = 1);
  /// Many independent calls that differ in their operands alone; run() does all of them, several under way at once.
  /// Inputs that lie at one address in every call (weights, a database) travel once. No call may read what another
  /// one writes. Paths are those of the regime overlapped; empty: the first of them.
  static Result<Trip> make_batch(const Kernel& kernel, std::span<const Args> calls,
                                 std::string_view path = {});
  Trip(Trip&& other) noexcept;
  Trip& operator=(Trip&& other) noexcept;
  ~Trip();
  /// `count` whole trips, all finished when it returns.
  Status run(std::int64_t count = 1);
  std::string detail() const;

 private:
  Trip(const fulcrum_backend* table, void* trip) : table_(table), trip_(trip) {}
  const fulcrum_backend* table_;
  void* trip_;
};

class Replay;

/// A kernel on operands that stay in the device's memory: one set of them or several, each between guard bytes.
class DeviceCall {
 public:
  static Result<DeviceCall> make(const Kernel& kernel, const Args& host, int sets = 1);
  DeviceCall(DeviceCall&&) noexcept;
  DeviceCall& operator=(DeviceCall&&) noexcept;
  ~DeviceCall();

  int sets() const;
  std::int64_t set_bytes() const;  ///< of one set, guards not counted
  /// Inputs to the device, outputs all 0xFF bytes, in every set.
  Status upload();
  /// `count` calls on one set, enqueued back to back, then one wait.
  Status run(std::int64_t count = 1, int set = 0);
  /// Outputs of a set into the host's buffers; wrong_result when a guard byte or an input was changed.
  Status download(int set = 0);
  /// `calls` calls that cycle through the sets, recorded for replay. Lives no longer than this object.
  Result<Replay> record(int calls);

 private:
  friend class Replay;
  struct State;
  explicit DeviceCall(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A recorded batch.
class Replay {
 public:
  Replay(Replay&& other) noexcept;
  Replay& operator=(Replay&& other) noexcept;
  ~Replay();
  int calls() const { return calls_; }
  /// One replay, finished when it returns: its seconds by the device's clock, of the whole batch.
  Result<double> run();

 private:
  friend class DeviceCall;
  Replay() = default;
  const fulcrum_backend* table_ = nullptr;
  void* graph_ = nullptr;
  void* stream_ = nullptr;
  void* begin_ = nullptr;
  void* end_ = nullptr;
  int calls_ = 0;
};

/// What the backend saw between start() and take(): see fulcrum_activity.
Status activity_start(const Backend& backend);
Result<std::vector<fulcrum_activity>> activity_take(const Backend& backend);
void activity_stop(const Backend& backend);

/// State of the device now: an empty object when the backend does not say.
Json device_state(const Backend& backend);

}  // namespace fulcrum::backends
