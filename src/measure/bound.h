// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel bound to a problem in a regime, its result found right once: what timing, comparing and the ledger share.
#pragma once

#include <fulcrum/backends/device.h>

#include "measure/cache.h"
#include "measure/runner.h"

namespace fulcrum::measure {

/// What the cache states of a device need to know of it; zeros: not known.
struct DeviceFacts {
  std::int64_t l2_bytes = 0, memory_bytes = 0;
};
DeviceFacts device_facts(const backends::Backend& backend, const Machine* machine);

/// Sets of operands to rotate through so that each call finds none of its own in L2: (k - 1) sets are at least twice
/// L2, as far as a third of the memory and the most sets allow. `enough`: they are.
struct Rotation {
  int sets = 1;
  bool enough = true;
};
Rotation rotation_for(std::int64_t set_bytes, const DeviceFacts& facts);

/// Calls of an overlapped batch at least. What overlap cannot hide are the first way in and the last way out, together
/// at most two calls' worth: a sixteenth of such a batch.
inline constexpr std::int64_t kOverlappedCalls = 32;

class Bound {
 public:
  /// Refuses what cannot be measured, makes everything that calls need, runs once and checks the result. A CPU kernel
  /// runs in the regime host whatever the configuration says.
  static Result<std::unique_ptr<Bound>> make(const backends::Kernel& kernel, ops::Problem& problem,
                                             const Config& config);
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  /// Lives no longer than this object.
  Subject subject();
  /// Operands of the host; flushed before every sample of a cold row that reads them.
  const Operands& operands() const { return operands_; }

  const Oracle& oracle() const { return oracle_; }
  std::uint64_t hash() const { return hash_; }
  bool repeatable() const { return repeatable_; }
  const std::string& path() const { return path_; }
  std::string detail() const { return trip_ ? trip_->detail() : ""; }
  backends::DeviceCall* device() { return device_ ? &*device_ : nullptr; }
  /// Regime resident and cold: enough sets to leave L2.
  bool rotation_enough() const { return rotation_.enough; }

  /// After many calls: the result is still right. `bits_vary`: right, but not the same bits as the first time.
  Status check_again(bool& bits_vary);

 private:
  Bound(const backends::Kernel& kernel, ops::Problem& problem, const Config& config)
      : kernel_(kernel),
        problem_(problem),
        cache_(config.cache),
        overlapped_(config.regime == Regime::overlapped) {}
  Status prepare(const Config& config);
  Status can_overlap() const;
  Status first_run();
  Oracle check() { return problem_.check(kernel_.precision()); }

  backends::Kernel kernel_;
  ops::Problem& problem_;
  Cache cache_;
  bool overlapped_;
  std::optional<backends::Call> call_;
  std::optional<backends::DeviceCall> device_;
  std::optional<backends::Trip> trip_;
  Rotation rotation_;
  int next_set_ = 0;
  std::string path_;
  Operands operands_;
  Oracle oracle_;
  std::uint64_t hash_ = 0;
  bool repeatable_ = true;
};

/// The path that a trip takes when the configuration names none.
std::string default_path(const backends::Backend& backend, Regime regime);

/// What is wrong with asking for this kernel in this regime, on this shape.
Status measurable(const backends::Kernel& kernel, const ops::Problem& problem, Regime regime);

/// Peers may miss our tolerance and are timed all the same; nobody else.
bool tolerated(const backends::Kernel& kernel, const Oracle& oracle);
Error wrong_result(const std::string& name, const ops::Problem& problem, const Oracle& oracle,
                   std::string_view when);

/// Everything that a row says before it is timed.
Measurement described(const backends::Kernel& kernel, const ops::Problem& problem, const Config& config);

/// Into the row, from its timing; per call where a trip holds several.
void take(Measurement& m, Timing&& timing, std::int64_t calls_per_trip);

/// Pass B of the ledger: see Config::instrumented.
Result<Measurement> run_instrumented(const backends::Kernel& kernel, ops::Problem& problem,
                                     const Config& config);

/// Time on the device alone, from replays of a recorded batch; `share` is of what is left of the case's budget.
Status add_device_time(Measurement& m, Session& session, backends::DeviceCall& call, const Config& config,
                       double share);

/// State of the device around a row: clocks, temperature, throttling, other processes, and the flags they deserve.
class DeviceWatch {
 public:
  explicit DeviceWatch(const backends::Backend& backend);
  void finish(Measurement& m) const;

 private:
  const backends::Backend& backend_;
  std::optional<Environment::Gpu> before_;
};

}  // namespace fulcrum::measure
