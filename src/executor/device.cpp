// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// See device.h.
#include "executor/device.h"

#include <fmt/format.h>
#include <fulcrum/backends/device.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace fulcrum::executor {
namespace {

/// What is lost in this process: a sticky error outlives the executor that met it.
struct Losses {
  std::mutex mutex;
  std::map<const fulcrum_backend*, std::atomic<bool>> of;
};

Losses& losses() {
  static Losses& all = *new Losses;  // never destroyed: executors that are static ask it at their end
  return all;
}

std::atomic<bool>& loss_of(const backends::Backend& backend) {
  const std::lock_guard lock(losses().mutex);
  return losses().of[&backend.table()];
}

}  // namespace

void forget_losses() {
  const std::lock_guard lock(losses().mutex);
  for (auto& [backend, lost] : losses().of) lost = false;
}

Device::Device(const backends::Backend* backend, const measure::Clock* clock, std::int64_t cap_bytes)
    : backend_(backend), cap_bytes_(cap_bytes), lost_(&loss_of(*backend)), breaker_(clock, lost_) {}

Device::~Device() {
  if (!alive()) return;
  for (void* stream : streams_) backend_->table().stream_close(stream);
}

Status Device::refuse() const {
  return Error{Code::device_lost, fmt::format("{} was lost earlier in this process", backend_->name()),
               "start the program again to use it"};
}

Status Device::note(const fulcrum_status& status) {
  if (status.code == FULCRUM_DEVICE_LOST) lost_->store(true, std::memory_order_release);
  return to_status(status);
}

Result<void*> Device::allocate(std::int64_t bytes) {
  if (!alive()) return refuse().take_error();
  if (in_use_bytes.fetch_add(bytes) + bytes > cap_bytes_) {
    in_use_bytes.fetch_sub(bytes);
    return Error{
        Code::out_of_memory,
        fmt::format("{} more would exceed the cap of {} of device memory",
                    human_bytes(static_cast<double>(bytes)), human_bytes(static_cast<double>(cap_bytes_))),
        "raise Policy::device_bytes, or free buffers"};
  }
  void* block = nullptr;
  Status status =
      note(backend_->table().allocate(FULCRUM_MEMORY_DEVICE, static_cast<std::size_t>(bytes), &block));
  if (status.ok()) return block;
  in_use_bytes.fetch_sub(bytes);
  return std::move(status).take_error();
}

void Device::release(void* block, std::int64_t bytes) {
  if (!block) return;
  in_use_bytes.fetch_sub(bytes);
  if (alive()) backend_->table().release(FULCRUM_MEMORY_DEVICE, block);
}

Result<void*> Device::allocate_pinned(std::int64_t bytes) {
  if (!alive()) return refuse().take_error();
  void* block = nullptr;
  FULCRUM_CHECK(
      note(backend_->table().allocate(FULCRUM_MEMORY_PINNED, static_cast<std::size_t>(bytes), &block)));
  return block;
}

void Device::release_pinned(void* block) {
  if (block && alive()) backend_->table().release(FULCRUM_MEMORY_PINNED, block);
}

Status Device::upload(void* to, const void* from, std::int64_t bytes, void* stream) {
  if (!alive()) return refuse();
  uploads.fetch_add(1, std::memory_order_relaxed);
  uploaded_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return note(backend_->table().copy(to, from, static_cast<std::size_t>(bytes), stream));
}

Status Device::download(void* to, const void* from, std::int64_t bytes, void* stream) {
  if (!alive()) return refuse();
  downloads.fetch_add(1, std::memory_order_relaxed);
  downloaded_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return note(backend_->table().copy(to, from, static_cast<std::size_t>(bytes), stream));
}

Status Device::copy_inside(void* to, const void* from, std::int64_t bytes, void* stream) {
  if (!alive()) return refuse();
  return note(backend_->table().copy(to, from, static_cast<std::size_t>(bytes), stream));
}

Status Device::wait(void* stream) {
  if (!alive()) return refuse();
  return note(backend_->table().stream_wait(stream));
}

Result<void*> Device::take_stream() {
  if (!alive()) return refuse().take_error();
  {
    const std::lock_guard lock(mutex_);
    if (!streams_.empty()) {
      void* stream = streams_.back();
      streams_.pop_back();
      return stream;
    }
  }
  void* stream = nullptr;
  FULCRUM_CHECK(note(backend_->table().stream_open(&stream)));
  return stream;
}

void Device::give_stream(void* stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
}

void Device::remember(Residence& residence) {
  const std::lock_guard lock(residences_mutex_);
  residences_.push_back(&residence);
}

void Device::forget(Residence& residence) {
  const std::lock_guard lock(residences_mutex_);
  std::erase(residences_, &residence);
}

bool Device::make_room(std::int64_t bytes) {
  // Held throughout: none of them ends while it is asked.
  const std::lock_guard lock(residences_mutex_);
  // As they are now: other calls may use them while the list is sorted.
  std::vector<std::tuple<bool, std::uint64_t, Residence*>> order;
  for (Residence* residence : residences_)
    order.emplace_back(residence->stays_on_device(), residence->last_use(), residence);
  std::sort(order.begin(), order.end());
  std::int64_t freed = 0;
  for (const auto& [stays, last_use, residence] : order) {
    if (freed >= bytes || !alive()) break;
    const std::int64_t own = residence->give_up();
    freed += own;
    evictions.fetch_add(own > 0, std::memory_order_relaxed);
  }
  return freed > 0;
}

std::int64_t Device::free_bytes() const {
  return std::max<std::int64_t>(0, cap_bytes_ - in_use_bytes.load());
}

}  // namespace fulcrum::executor
