// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One pool for every memory that is slow to get: blocks in size classes are kept when given back and handed out again.
// It knows no CUDA: where memory comes from is a Source, so that a test drives the same code with memory of its own.
#pragma once

#include <fulcrum/abi.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <list>
#include <mutex>
#include <unordered_map>

namespace fulcrum::backends::cuda {

/// Where a pool gets memory.
class Source {
 public:
  virtual ~Source() = default;
  /// FULCRUM_OUT_OF_MEMORY makes the pool give up what it keeps and ask once more; other errors are handed on.
  virtual fulcrum_status allocate(std::size_t bytes, void** pointer) = 0;
  virtual void release(void* pointer) = 0;
  /// Bytes that may be kept for later at most.
  virtual std::size_t limit() const = 0;
};

struct PoolCounters {
  std::int64_t hits = 0, misses = 0;
  std::int64_t source_calls = 0;  // allocate and release: none of them in a call that is warm
  std::int64_t strays = 0;        // pointers given back that were never handed out
  std::size_t asked_bytes = 0;    // by those who hold memory now
  std::size_t in_use_bytes = 0;   // handed out for it
  std::size_t cached_bytes = 0;   // kept for later
  std::size_t peak_bytes = 0;     // most ever held of the source, in use and kept

  double hit_rate() const {
    return hits + misses > 0 ? static_cast<double>(hits) / static_cast<double>(hits + misses) : 0;
  }
  /// Share of the memory handed out that nobody asked for.
  double fragmentation() const {
    return in_use_bytes > 0 ? 1 - static_cast<double>(asked_bytes) / static_cast<double>(in_use_bytes) : 0;
  }
};

/// Bytes that a request is rounded up to: powers of two and three steps between each two, 512 at least, so that less
/// than a fifth of a block is unused.
std::size_t size_class(std::size_t bytes);

/// Thread-safe. The lock is held while the source is asked: drivers serialise those calls anyway.
class Pool {
 public:
  explicit Pool(Source& source) : source_(source) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() { trim(); }

  fulcrum_status take(std::size_t bytes, void** pointer);
  /// What was enqueued on the memory must have finished: the next owner may write to it at once.
  void give(void* pointer);
  /// Everything that is kept goes back to the source.
  void trim();
  PoolCounters counters() const;

 private:
  struct Kept {
    void* pointer;
    std::size_t bytes;
  };
  struct Lent {
    std::size_t bytes, asked;
  };

  void* reuse(std::size_t bytes);
  void keep(void* pointer, std::size_t bytes);
  void release_oldest();
  void release(void* pointer);
  fulcrum_status ask(std::size_t bytes, void** pointer);
  void lend(void* pointer, std::size_t bytes, std::size_t asked);

  Source& source_;
  mutable std::mutex mutex_;
  std::list<Kept> kept_;                                                             // oldest first
  std::unordered_map<std::size_t, std::deque<std::list<Kept>::iterator>> by_class_;  // oldest first in each
  std::unordered_map<void*, Lent> lent_;
  PoolCounters counters_;
};

/// The pools of the module (pools.cpp); runtime.h has the functions that take from them and give back.
Pool& device_pool();
Pool& pinned_pool();

inline std::size_t size_class(std::size_t bytes) {
  constexpr std::size_t kLeast = 512;
  constexpr std::size_t kSteps = 4;
  if (bytes <= kLeast) return kLeast;
  std::size_t power = kLeast;  // the largest power of two below `bytes`
  while (power < bytes - power) power *= 2;
  const std::size_t step = power / kSteps;
  return (bytes + step - 1) / step * step;
}

inline fulcrum_status Pool::take(std::size_t bytes, void** pointer) {
  constexpr std::size_t kMost = std::size_t{1} << 60;  // beyond it rounding up would wrap
  *pointer = nullptr;
  if (bytes > kMost)
    return fulcrum_status{FULCRUM_OUT_OF_MEMORY, "more memory was asked for than any device has"};
  const std::lock_guard lock(mutex_);
  const std::size_t rounded = size_class(bytes);
  if (void* found = reuse(rounded)) {
    ++counters_.hits;
    lend(found, rounded, bytes);
    *pointer = found;
    return fulcrum_status{FULCRUM_OK, nullptr};
  }
  ++counters_.misses;
  std::size_t got = rounded;
  fulcrum_status status = ask(rounded, pointer);
  if (status.code == FULCRUM_OUT_OF_MEMORY) {
    // Memory is short: what is kept goes, and the block is no larger than it must be.
    while (!kept_.empty()) release_oldest();
    got = bytes > 0 ? bytes : 1;
    status = ask(got, pointer);
  }
  if (status.code == FULCRUM_OK) lend(*pointer, got, bytes);
  return status;
}

inline void Pool::give(void* pointer) {
  if (!pointer) return;
  const std::lock_guard lock(mutex_);
  const auto found = lent_.find(pointer);
  if (found == lent_.end()) {
    ++counters_.strays;
    return;
  }
  const Lent lent = found->second;
  lent_.erase(found);
  counters_.in_use_bytes -= lent.bytes;
  counters_.asked_bytes -= lent.asked;
  keep(pointer, lent.bytes);
}

inline void Pool::trim() {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty()) release_oldest();
}

inline PoolCounters Pool::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

/// The block that was given back last: the likeliest to be in a cache.
inline void* Pool::reuse(std::size_t bytes) {
  const auto found = by_class_.find(bytes);
  if (found == by_class_.end() || found->second.empty()) return nullptr;
  const auto newest = found->second.back();
  found->second.pop_back();
  void* pointer = newest->pointer;
  kept_.erase(newest);
  counters_.cached_bytes -= bytes;
  return pointer;
}

inline void Pool::keep(void* pointer, std::size_t bytes) {
  const std::size_t limit = source_.limit();
  const bool of_a_class = size_class(bytes) == bytes;  // not so after a request in short memory
  if (!of_a_class || bytes > limit) return release(pointer);
  while (counters_.cached_bytes + bytes > limit) release_oldest();
  kept_.push_back(Kept{pointer, bytes});
  by_class_[bytes].push_back(std::prev(kept_.end()));
  counters_.cached_bytes += bytes;
}

inline void Pool::release_oldest() {
  const Kept oldest = kept_.front();
  by_class_[oldest.bytes]
      .pop_front();  // blocks leave a class at its new end or here, so its first is the oldest
  kept_.pop_front();
  counters_.cached_bytes -= oldest.bytes;
  release(oldest.pointer);
}

inline void Pool::release(void* pointer) {
  ++counters_.source_calls;
  source_.release(pointer);
}

inline fulcrum_status Pool::ask(std::size_t bytes, void** pointer) {
  ++counters_.source_calls;
  const fulcrum_status status = source_.allocate(bytes, pointer);
  if (status.code != FULCRUM_OK) *pointer = nullptr;
  return status;
}

inline void Pool::lend(void* pointer, std::size_t bytes, std::size_t asked) {
  lent_[pointer] = Lent{bytes, asked};
  counters_.in_use_bytes += bytes;
  counters_.asked_bytes += asked;
  const std::size_t held = counters_.in_use_bytes + counters_.cached_bytes;
  if (held > counters_.peak_bytes) counters_.peak_bytes = held;
}

}  // namespace fulcrum::backends::cuda
