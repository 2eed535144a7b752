// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies of one block of data on the host and on the device, and which of them are valid.
#include <fmt/format.h>
#include <fulcrum/executor/buffer.h>

#include <cstring>
#include <new>

#include "executor/device.h"

namespace fulcrum::executor {
namespace {

constexpr std::align_val_t kAlignment{4096};  // pages of their own, as page-locked memory has them

Error lost(std::int64_t bytes) {
  return Error{Code::data_lost,
               fmt::format("{} of data had their only valid copy on the device, which is gone",
                           human_bytes(static_cast<double>(bytes))),
               "read results back where they must survive, or compute them again"};
}

}  // namespace

std::string_view to_string(Place place) { return place == Place::host ? "host" : "device"; }

Residence::Residence(std::int64_t bytes, std::shared_ptr<Device> device, Memory memory, void* foreign)
    : bytes_(bytes), memory_(memory), device_(std::move(device)) {
  if (memory == Memory::foreign) {
    host_ = foreign;
    return;
  }
  const std::int64_t size = std::max<std::int64_t>(bytes, 1);
  if (memory == Memory::pinned) {
    auto block = device_ ? device_->allocate_pinned(size) : Result<void*>(nullptr);
    if (block.ok()) host_ = block.value();
  }
  if (!host_) {
    memory_ = Memory::plain;
    host_ = ::operator new(static_cast<std::size_t>(size), kAlignment, std::nothrow);
  }
  if (host_) std::memset(host_, 0, static_cast<std::size_t>(size));
}

Residence::~Residence() {
  if (memory_ == Memory::foreign) bring_home();
  ended_->store(true, std::memory_order_release);
  if (remembered_) device_->forget(*this);
  if (device_) device_->release(device_block_, bytes_);
  if (memory_ == Memory::pinned) device_->release_pinned(host_);
  if (memory_ == Memory::plain) ::operator delete(host_, kAlignment);
}

/// What the caller's memory waits for at the end of its buffer; nobody is left to take an error. Until the device has
/// forgotten it, a call that needs room may be bringing it home too.
void Residence::bring_home() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (valid_on(Place::host)) return;
    if (const Status status = fetch(); !status.ok()) log(LogLevel::error, status.error().message);
  } catch (const std::exception&) {
    // No memory for a message either.
  }
}

void Residence::drop_device() {
  if (device_) device_->release(device_block_, bytes_);
  device_block_ = nullptr;
  state_.fetch_and(static_cast<std::uint8_t>(~bit(Place::device)), std::memory_order_release);
}

Status Residence::fetch() {
  if (!device_ || !device_->alive()) return lost(bytes_);
  const StreamLease lease(*device_);
  Status status = lease.get().ok() ? Status{} : Status{lease.get().error()};
  if (status.ok()) status = device_->download(host_, device_block_, bytes_, lease.get().value());
  if (status.ok()) status = device_->wait(lease.get().value());
  if (!status.ok()) return device_->alive() ? status : lost(bytes_);
  state_.fetch_or(bit(Place::host), std::memory_order_release);
  return {};
}

void Residence::remember() {
  if (remembered_) return;
  remembered_ = true;
  device_->remember(*this);
}

void Residence::begin_use() {
  uses_.fetch_add(1, std::memory_order_acq_rel);
  if (device_) last_use_.store(device_->next_use(), std::memory_order_relaxed);
}

std::int64_t Residence::give_up() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // A call that begins to use it after this look waits for the mutex, and then finds no copy on the device.
  if (!lock || uses_.load(std::memory_order_acquire) > 0 || !valid_on(Place::device)) return 0;
  if (!valid_on(Place::host) && !fetch().ok()) return 0;
  drop_device();
  return bytes_;
}

Result<void*> Residence::host(bool read, bool write) {
  const std::lock_guard lock(mutex_);
  if (read && !valid_on(Place::host)) FULCRUM_CHECK(fetch());
  if (write) {
    version_.store(unique_number(), std::memory_order_release);
    state_.store(bit(Place::host), std::memory_order_release);
    drop_device();
    // What calls lost says how often data is used as it is: this is other data.
    lost_seconds_ = 0;
    moving_.store(false, std::memory_order_relaxed);
  }
  return host_;
}

Result<Residence::Loan> Residence::device(void* stream) {
  const std::lock_guard lock(mutex_);
  if (!device_ || !device_->alive()) {
    if (!valid_on(Place::host)) return lost(bytes_);
    return Error{Code::device_lost, "there is no device to move the data to", ""};
  }
  if (valid_on(Place::device)) return Loan{device_block_, false};
  FULCRUM_TRY(void* block, device_->allocate(bytes_));
  if (auto status = device_->upload(block, host_, bytes_, stream); !status.ok()) {
    device_->release(block, bytes_);
    return std::move(status).take_error();
  }
  return Loan{block, true};
}

void Residence::keep_upload(void* block) {
  const std::lock_guard lock(mutex_);
  if (valid_on(Place::device)) return device_->release(block, bytes_);  // somebody else was faster
  device_block_ = block;
  remember();
  lost_seconds_ = 0;
  moving_.store(false, std::memory_order_relaxed);
  state_.fetch_or(bit(Place::device), std::memory_order_release);
}

void Residence::keep_result(void* block) {
  const std::lock_guard lock(mutex_);
  device_->release(device_block_, bytes_);
  device_block_ = block;
  remember();
  version_.store(unique_number(), std::memory_order_release);
  state_.store(bit(Place::device), std::memory_order_release);
}

Status Residence::leave_device() {
  if (auto home = host(true, false); !home.ok()) return std::move(home).take_error();
  const std::lock_guard lock(mutex_);
  drop_device();
  return {};
}

void Residence::rent(double lost_seconds, double move_seconds) {
  const std::lock_guard lock(mutex_);
  lost_seconds_ += lost_seconds;
  if (lost_seconds_ >= move_seconds) moving_.store(true, std::memory_order_relaxed);
}

}  // namespace fulcrum::executor
