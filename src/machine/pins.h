// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One CPU for each thread of the pool while all of them are measured. On a busy machine the scheduler may leave two
// threads that wait for each other on one CPU: each sleeps when the other runs, so neither looks crowded.
#pragma once

#include <vector>

namespace fulcrum::machine {

class Pins {
 public:
  /// Binds thread i of the pool to the i-th CPU of the affinity mask; does nothing when there are fewer CPUs.
  explicit Pins(int threads);
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;
  /// Gives every thread the whole mask back.
  ~Pins();

 private:
  std::vector<int> cpus_;
  int threads_;
};

}  // namespace fulcrum::machine
