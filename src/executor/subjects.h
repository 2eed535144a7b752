// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Candidates bound to one call, ready to be timed as the engine would run them: plans made, and for the device operands
// in its memory and a wait at the end.
#pragma once

#include <fulcrum/measure.h>

#include <memory>
#include <span>

#include "executor/dispatch.h"

namespace fulcrum::executor {

/// Operands of one call in the device's memory, shared by all its kernels.
class DeviceOperands {
 public:
  static Result<std::shared_ptr<DeviceOperands>> make(const backends::Backend& device, const ops::Op& op,
                                                      const Args& host, DType dtype);
  DeviceOperands(const DeviceOperands&) = delete;
  DeviceOperands& operator=(const DeviceOperands&) = delete;
  ~DeviceOperands();
  const Args& args() const { return args_; }
  void* stream() const { return stream_; }
  const fulcrum_backend& table() const { return *table_; }
  /// Inputs in, or results out, each with one copy; not waited for.
  Status copy_in();
  Status copy_out();
  /// Inputs back to the host, waited for.
  Status copy_home();

 private:
  explicit DeviceOperands(const fulcrum_backend* table) : table_(table) {}
  struct Room {
    void* host = nullptr;
    void* device = nullptr;
    std::size_t bytes = 0;
    bool in = false, out = false;
  };
  const fulcrum_backend* table_;
  void* stream_ = nullptr;
  Args args_{};
  std::vector<Room> rooms_;
};

class Subject {
 public:
  virtual ~Subject() = default;
  /// `count` calls; finished when it returns.
  virtual Status run(std::int64_t count) = 0;
  /// What a call on plain memory takes longer than this one, whose plan has read its operands; 0: it does not read them.
  double plan_seconds = 0;
};

/// `operands`: for candidates on the device.
Result<std::unique_ptr<Subject>> make_subject(const Candidate& candidate, const Args& host,
                                              const std::shared_ptr<DeviceOperands>& operands,
                                              const measure::Clock& clock);
/// A CPU kernel whose plan reads operands, on plain memory: with a plan for any data, or one that is made in every call.
Result<std::unique_ptr<Subject>> make_plain_subject(const Candidate& candidate, const Args& host);
/// One function makes the plans of several candidates, such as a kernel's on one thread and on all: what it takes is one
/// number, the least of theirs. Timed for each alone its noise would decide between them.
void share_plans(std::span<const Candidate> candidates, std::span<Subject* const> subjects);
/// A CPU kernel whose inputs come home from the device before every call.
Result<std::unique_ptr<Subject>> make_home_subject(const Candidate& candidate, const Args& host,
                                                   const std::shared_ptr<DeviceOperands>& operands,
                                                   const measure::Clock& clock);
/// Host data there and back around every call on the device.
Result<std::unique_ptr<Subject>> make_trip_subject(const Candidate& candidate,
                                                   const std::shared_ptr<DeviceOperands>& operands);

}  // namespace fulcrum::executor
