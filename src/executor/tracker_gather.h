// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that a thread keeps to itself. One that a cell expects moves nothing at once; it waits in lines that no other
// thread writes until there are a few of the same cell, and these are handed on together: threads that call the same op
// would otherwise take the cell's lines from each other with every sample. While another thread hands on to the same
// cell, samples wait on: threads that go through the same calls in step would meet there. Nothing is lost, nobody waits.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <limits>

#include "executor/tracker.h"
#include "executor/tracker_cell.h"

namespace fulcrum::executor {

class alignas(64) Gatherer {
 public:
  static constexpr int kLeast = 4, kMost = 8;  // samples of one cell that are handed on together
  static_assert(kMost <= TrackedCell::kMostAtOnce);
  using Sample = TrackedCell::Sample;
  /// A cell's samples, and the range in which others join them.
  struct alignas(64) Slot {
    std::uint64_t key = kNoCell;
    float low = kNothing, high = -kNothing;
    int count = 0;
    std::array<Sample, kMost> samples;

    Tracker::Cell cell() const { return std::bit_cast<Tracker::Cell>(key); }
    bool expects(float ln) const { return ln >= low && ln <= high; }
    bool full() const { return count == kMost; }
    std::span<const Sample> all() const { return {samples.data(), static_cast<std::size_t>(count)}; }
    void add(Sample sample) { samples[static_cast<std::size_t>(count++)] = sample; }
  };

  /// False: another thread is at it, and the caller goes without. For the holder alone: all below.
  bool take() { return !taken_.exchange(true, std::memory_order_acquire); }
  void leave() { taken_.store(false, std::memory_order_release); }

  /// Where samples of a cell wait; they may be another cell's at the moment.
  Slot& slot_of(std::uint64_t key) { return slots_[(key * 0x9e3779b97f4a7c15) >> (64 - kSlotBits)]; }
  std::array<Slot, 64>& slots() { return slots_; }

  static std::uint64_t key_of(const Tracker::Cell& cell) { return std::bit_cast<std::uint64_t>(cell); }

 private:
  static constexpr std::uint64_t kNoCell = ~std::uint64_t{0};
  static constexpr float kNothing = std::numeric_limits<float>::infinity();
  static constexpr int kSlotBits = 6;
  std::array<Slot, std::size_t{1} << kSlotBits> slots_;
  alignas(64) std::atomic<bool> taken_{false};
};

}  // namespace fulcrum::executor
