// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What went wrong and what that means for the calls that follow: classes of failure, the circuit breaker of the device,
// kernels in quarantine.
#pragma once

#include "executor/dispatch.h"

namespace fulcrum::executor {

enum class Failure : std::uint8_t {
  none,
  capacity,       // out of memory: split, or the CPU; the device stays in use
  configuration,  // this kernel cannot do this call: next kernel
  busy,           // the device may answer later: back off
  absent,         // no device: off from the start
  sticky,         // no further call to it in this process
  wrong_result,   // quarantine of the kernel
  late,
};
std::string_view to_string(Failure);
Failure classify(Code code);

class Breaker {
 public:
  /// `lost`: open for good while it is true, whoever found out; null: nobody else does.
  explicit Breaker(const measure::Clock* clock, const std::atomic<bool>* lost = nullptr);
  /// Whether this thread's next call may go to the device. Claims nothing. Two loads while all is well.
  bool allows() const;
  /// The same for a call that is about to go there: while half open, one caller at a time gets true, and its call finds
  /// out.
  bool claim();
  bool open_for_good() const;
  /// Notes a failure of `kernel` and logs the first of each kind; returns its class.
  Failure failed(const backends::Kernel& kernel, const Error& error);
  void succeeded();
  /// Kernels that must not be used again in this process.
  bool quarantined(const fulcrum_kernel* kernel) const;
  std::string quarantine_reason(const fulcrum_kernel* kernel) const;  // empty: it may be used
  bool has_quarantine() const { return any_quarantined_.load(std::memory_order_relaxed); }
  std::string describe() const;  // "closed", "half open", "open: ..."
  std::int64_t failures(Failure kind) const;
  /// Changes with every change of state or quarantine.
  std::uint32_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  struct State;
  std::uint8_t position() const;
  std::shared_ptr<State> state_;
  const std::atomic<bool>* lost_;
  std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint8_t> position_{0};  // 0 closed, 1 backing off, 2 open for good
  std::atomic<bool> any_quarantined_{false};
};

}  // namespace fulcrum::executor
