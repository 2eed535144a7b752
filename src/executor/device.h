// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The one device of an executor: its memory with a cap, streams, copies, all counted, and never called again once it is
// lost, by whichever executor.
#pragma once

#include <fulcrum/executor/buffer.h>

#include <atomic>

#include "executor/breaker.h"

namespace fulcrum::executor {

class Device {
 public:
  Device(const backends::Backend* backend, const measure::Clock* clock, std::int64_t cap_bytes);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();
  const backends::Backend& backend() const { return *backend_; }
  Breaker& breaker() { return breaker_; }
  /// Every call to the backend's table goes through these: after a sticky failure they fail without calling it.
  Result<void*> allocate(std::int64_t bytes);
  void release(void* block, std::int64_t bytes);
  Result<void*> allocate_pinned(std::int64_t bytes);
  void release_pinned(void* block);
  Status upload(void* to, const void* from, std::int64_t bytes, void* stream);
  Status download(void* to, const void* from, std::int64_t bytes, void* stream);
  Status copy_inside(void* to, const void* from, std::int64_t bytes, void* stream);
  Status wait(void* stream);
  Result<void*> take_stream();
  void give_stream(void* stream);
  /// False: the device accepts no more calls in this process.
  bool alive() const { return !lost_->load(std::memory_order_acquire); }
  /// Notes what a call to the device returned.
  Status note(const fulcrum_status& status);
  std::int64_t free_bytes() const;  // under the cap
  /// Buffers that have or had a copy here, and the order of their use.
  void remember(Residence& residence);
  void forget(Residence& residence);
  std::uint64_t next_use() { return uses_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Copies of buffers that no call uses leave, those used longest ago first and those that were asked to stay last,
  /// until so many bytes are free. True: some left.
  bool make_room(std::int64_t bytes);
  std::atomic<std::int64_t> evictions{0};
  std::atomic<std::int64_t> uploads{0}, downloads{0}, launches{0};
  std::atomic<std::int64_t> uploaded_bytes{0}, downloaded_bytes{0}, in_use_bytes{0};

 private:
  Status refuse() const;
  const backends::Backend* backend_;
  std::int64_t cap_bytes_;
  std::atomic<bool>* lost_;  // of the backend, for all executors
  Breaker breaker_;
  std::mutex mutex_;
  std::vector<void*> streams_;
  std::mutex residences_mutex_;
  std::vector<Residence*> residences_;
  std::atomic<std::uint64_t> uses_{0};
};

/// For tests, whose devices come back.
void forget_losses();

/// A stream while it lives.
class StreamLease {
 public:
  explicit StreamLease(Device& device) : device_(device), stream_(device.take_stream()) {}
  StreamLease(const StreamLease&) = delete;
  StreamLease& operator=(const StreamLease&) = delete;
  ~StreamLease() {
    if (stream_.ok()) device_.give_stream(stream_.value());
  }
  const Result<void*>& get() const { return stream_; }

 private:
  Device& device_;
  Result<void*> stream_;
};

}  // namespace fulcrum::executor
