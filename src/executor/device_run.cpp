// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See device_run.h.
#include "executor/device_run.h"

#include <algorithm>
#include <cstring>

namespace fulcrum::executor {
namespace {

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(a);
  const auto* second = static_cast<const std::byte*>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

}  // namespace

bool name_prepared(const ops::Op& op, PlanKey& key) {
  const void* prepared = key.args.prepared;
  if (!prepared || (op.standing && prepared == op.standing())) return true;
  if (!op.prepared_id) return false;
  key.prepared_id = op.prepared_id(prepared);
  return key.prepared_id != 0;
}

bool stamp(const Request& request, PlanKey& key) {
  bool known = true;
  for (std::size_t slot = 0; slot < FULCRUM_SLOTS; ++slot) {
    if ((key.kernel->plan_reads >> slot & 1u) == 0 || !request.args.ptr[slot]) continue;
    const Residence* home = request.homes[slot];
    // Foreign memory may be written behind the buffer's back, as any memory of the caller.
    if (!home || home->memory() == Residence::Memory::foreign) known = false;
    if (!home) continue;
    key.versions[slot] = home->version();
    key.ended = home->ended();
  }
  return known && name_prepared(*request.facts->op, key);
}

PlanLease::PlanLease(PlanCache& cache, const PlanKey& key, const Args& args, bool keep)
    : cache_(cache), key_(key), keep_(keep) {
  if (!key.kernel->plan) return;
  if (keep) {
    plan_ = cache.take(key, args);
    return;
  }
  void* made = nullptr;
  Status status = to_status(key.kernel->plan(key.kernel, &args, &made));
  plan_ = status.ok() ? Result<void*>(made) : Result<void*>(std::move(status).take_error());
}

PlanLease::~PlanLease() {
  if (!plan_.ok() || !plan_.value() || abandoned_) return;
  if (keep_) {
    cache_.give(key_, plan_.value());
  } else if (key_.kernel->drop) {
    key_.kernel->drop(plan_.value());
  }
}

DeviceRun::~DeviceRun() {
  for (std::size_t i = 0; i < held_count_; ++i) device_.release(held_[i].block, held_[i].bytes);
}

Result<void*> DeviceRun::take(std::int64_t bytes) {
  FULCRUM_TRY(void* block, device_.allocate(bytes));
  hold(block, bytes);
  return block;
}

void DeviceRun::hand_over(void* block) {
  for (std::size_t i = 0; i < held_count_; ++i) {
    if (held_[i].block == block) held_[i].block = nullptr, held_[i].bytes = 0;
  }
}

bool DeviceRun::plain_result(int slot) const {
  const auto at = static_cast<std::size_t>(slot);
  return present(slot) && facts_.slots[at].writes && !request_.homes[at];
}

/// A result in plain memory lies over an input in plain memory.
bool DeviceRun::in_place() const {
  for (int out = 0; out < facts_.pointers; ++out) {
    if (!plain_result(out)) continue;
    for (int in = 0; in < facts_.pointers; ++in) {
      const auto at = static_cast<std::size_t>(in);
      if (!present(in) || !facts_.slots[at].reads || request_.homes[at]) continue;
      if (overlap(request_.args.ptr[out], bytes_[static_cast<std::size_t>(out)], request_.args.ptr[in],
                  bytes_[at]))
        return true;
    }
  }
  return false;
}

Status DeviceRun::bring_in(int slot) {
  const auto at = static_cast<std::size_t>(slot);
  for (int twin = 0; twin < slot; ++twin) {
    const auto before = static_cast<std::size_t>(twin);
    const bool same = facts_.slots[before].reads && request_.args.ptr[twin] == request_.args.ptr[slot] &&
                      bytes_[before] == bytes_[at];
    if (!same) continue;
    args_.ptr[slot] = args_.ptr[twin];
    return {};
  }
  if (Residence* home = request_.homes[at]) {
    FULCRUM_TRY(const Residence::Loan loan, home->device(stream_));
    args_.ptr[slot] = loan.block;
    if (!loan.fresh) return {};
    uploaded_[at] = loan.block;
    hold(loan.block, home->bytes());
    return {};
  }
  FULCRUM_TRY(args_.ptr[slot], take(bytes_[at]));
  return device_.upload(args_.ptr[slot], request_.args.ptr[slot], bytes_[at], stream_);
}

Status DeviceRun::make_room(int slot) {
  const auto at = static_cast<std::size_t>(slot);
  Residence* home = request_.homes[at];
  const std::int64_t size = home ? home->bytes() : bytes_[at];
  FULCRUM_TRY(void* block, take(size));
  // Parts that the call does not write are those of before.
  if (facts_.slots[at].reads) {
    FULCRUM_CHECK(device_.copy_inside(block, args_.ptr[slot], size, stream_));
  } else if (size > bytes_[at]) {
    FULCRUM_TRY(const Residence::Loan before, home->device(stream_));
    if (before.fresh) hold(before.block, size);
    FULCRUM_CHECK(device_.copy_inside(block, before.block, size, stream_));
  }
  args_.ptr[slot] = block;
  return {};
}

Status DeviceRun::launch() {
  PlanKey key{.kernel = &kernel_, .args = args_};
  key.args.plan = nullptr;
  const bool keep = stamp(request_, key);
  PlanLease plan(plans_, key, args_, keep);
  if (!plan.get().ok()) {
    const auto code = static_cast<std::int32_t>(plan.get().error().code);
    static_cast<void>(device_.note(fulcrum_status{code, nullptr}));
    return plan.get().error();
  }
  args_.plan = plan.get().value();
  device_.launches.fetch_add(1, std::memory_order_relaxed);
  Status status = device_.note(kernel_.run(&args_, stream_, 1));
  if (status.ok()) status = take_home();  // the plan's scratch is in use until the wait
  if (!status.ok() && device_.alive()) static_cast<void>(device_.wait(stream_));
  if (!device_.alive()) plan.abandon();
  return status;
}

Status DeviceRun::take_home() {
  const bool apart = !aside_.empty();
  std::size_t offset = 0;
  for (int slot = 0; slot < facts_.pointers; ++slot) {
    if (!plain_result(slot)) continue;
    const std::int64_t bytes = bytes_[static_cast<std::size_t>(slot)];
    void* to = apart ? aside_.data() + offset : request_.args.ptr[slot];
    FULCRUM_CHECK(device_.download(to, args_.ptr[slot], bytes, stream_));
    offset += static_cast<std::size_t>(bytes);
  }
  FULCRUM_CHECK(device_.wait(stream_));
  offset = 0;
  for (int slot = 0; apart && slot < facts_.pointers; ++slot) {
    if (!plain_result(slot)) continue;
    const auto bytes = static_cast<std::size_t>(bytes_[static_cast<std::size_t>(slot)]);
    std::memcpy(request_.args.ptr[slot], aside_.data() + offset, bytes);
    offset += bytes;
  }
  return {};
}

void DeviceRun::publish() {
  for (int slot = 0; slot < facts_.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    Residence* home = request_.homes[at];
    if (!home || !present(slot)) continue;
    if (uploaded_[at]) {
      hand_over(uploaded_[at]);
      home->keep_upload(uploaded_[at]);
    }
    if (facts_.slots[at].writes) {
      hand_over(args_.ptr[slot]);
      home->keep_result(args_.ptr[slot]);
    }
  }
}

/// Sizes, and all host memory that the call takes: what throws must do so before anything is enqueued.
void DeviceRun::measure() {
  std::size_t plain_bytes = 0;
  for (int slot = 0; slot < facts_.pointers; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    if (!present(slot)) continue;
    bytes_[at] = facts_.bytes(request_.args, slot, request_.dtype);
    if (plain_result(slot)) plain_bytes += static_cast<std::size_t>(bytes_[at]);
  }
  if (in_place()) aside_.resize(plain_bytes);
}

Status DeviceRun::steps() {
  for (int slot = 0; slot < facts_.pointers; ++slot) {
    if (present(slot) && facts_.slots[static_cast<std::size_t>(slot)].reads) FULCRUM_CHECK(bring_in(slot));
  }
  for (int slot = 0; slot < facts_.pointers; ++slot) {
    if (present(slot) && facts_.slots[static_cast<std::size_t>(slot)].writes) FULCRUM_CHECK(make_room(slot));
  }
  return launch();
}

Status DeviceRun::run() {
  measure();
  const StreamLease lease(device_);
  if (!lease.get().ok()) return lease.get().error();
  stream_ = lease.get().value();
  args_ = request_.args;
  Status status = steps();
  if (status.ok()) {
    publish();
  } else if (device_.alive()) {
    static_cast<void>(device_.wait(stream_));  // what was enqueued must have ended before its memory goes
  }
  return status;
}

}  // namespace fulcrum::executor
