// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One call on the device, step by step: inputs in, room for results, launch, results home, publish. Results go into
// fresh blocks and are published after the wait, so that a call that fails leaves its operands as they were.
#pragma once

#include "executor/engine.h"

namespace fulcrum::executor {

class DeviceRun {
 public:
  DeviceRun(Device& device, PlanCache& plans, const Request& request, const fulcrum_kernel& kernel)
      : device_(device), plans_(plans), request_(request), facts_(*request.facts), kernel_(kernel) {}
  DeviceRun(const DeviceRun&) = delete;
  DeviceRun& operator=(const DeviceRun&) = delete;
  ~DeviceRun();
  Status run();

 private:
  Status steps();
  Status bring_in(int slot);
  Status make_room(int slot);
  Status launch();
  Status take_home();
  void publish();
  bool present(int slot) const { return request_.args.ptr[slot] != nullptr; }
  bool plain_result(int slot) const;
  bool in_place() const;
  void measure();
  Result<void*> take(std::int64_t bytes);
  void hold(void* block, std::int64_t bytes) { held_[held_count_++] = {block, bytes}; }
  void hand_over(void* block);

  Device& device_;
  PlanCache& plans_;
  const Request& request_;
  const OpFacts& facts_;
  const fulcrum_kernel& kernel_;
  void* stream_ = nullptr;
  Args args_{};  // pointers of the device
  std::array<std::int64_t, FULCRUM_SLOTS> bytes_{};
  std::vector<std::byte>
      aside_;  // results of a call in place, whose inputs must outlive a way back that fails
  std::array<void*, FULCRUM_SLOTS> uploaded_{};  // copies of buffers, theirs when the call has succeeded
  struct Held {
    void* block;
    std::int64_t bytes;
  };
  std::array<Held, std::size_t{3} * FULCRUM_SLOTS> held_{};
  std::size_t held_count_ = 0;
};

/// Whether a plan over what was prepared may be kept; fills in the name that its address is not.
bool name_prepared(const ops::Op& op, PlanKey& key);
/// Whether what plan() reads is known to be unchanged since a plan with the same key was made; fills the versions.
bool stamp(const Request& request, PlanKey& key);

/// A plan while a call uses it: kept for the next one, or dropped where the data behind it may change unseen.
class PlanLease {
 public:
  PlanLease(PlanCache& cache, const PlanKey& key, const Args& args, bool keep);
  PlanLease(const PlanLease&) = delete;
  PlanLease& operator=(const PlanLease&) = delete;
  ~PlanLease();
  const Result<void*>& get() const { return plan_; }
  /// The device is gone: no call to it, not even to free.
  void abandon() { abandoned_ = true; }

 private:
  PlanCache& cache_;
  const PlanKey& key_;
  bool keep_, abandoned_ = false;
  Result<void*> plan_ = nullptr;
};

}  // namespace fulcrum::executor
