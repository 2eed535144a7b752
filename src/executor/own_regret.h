// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// What an executor's own choices cost, from calls that were run both ways: the newest of them, in a ring.
#pragma once

#include <fulcrum/executor.h>

#include <mutex>
#include <vector>

namespace fulcrum::executor {

class OwnRegret {
 public:
  static constexpr std::size_t kMost = 4096;  // a program that runs for days is judged by its last hours
  /// Of the way that was taken, and of another. Times that no clock saw say nothing.
  void add(double taken_seconds, double other_seconds);
  Regret summary() const;

 private:
  mutable std::mutex mutex_;
  std::vector<double> points_;
  std::size_t next_ = 0;  // the oldest, once the ring is full
};

}  // namespace fulcrum::executor
