// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The fitted closed form of one candidate: a fixed part, forks, arithmetic with the half-performance length of each dim,
// bytes by the level of memory that holds them, and products of some dims, which is what loops around the arithmetic
// cost. Linear in its parameters, none of them negative.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "executor/dispatch.h"
#include "executor/features.h"

namespace fulcrum::executor {

/// What holds a working set, as one thread sees it, and the most that the memory behind it gives; 0: not known.
struct Caches {
  double near_bytes = 1 << 20, far_bytes = 32 << 20, device_bytes = 40 << 20;
  double host_bytes_per_second = 0, device_bytes_per_second = 0;
};

/// What of a candidate its closed form depends on.
struct Runner {
  Runner(const Candidate& candidate, const Caches& caches);
  bool device = false, split = false;  // split: over the op's own pieces
  double threads = 1;
  std::size_t effort = 0;  // FeatureMap::effort_of; above 0: the kernel's own
  /// Threads that a call keeps busy: no more than it has pieces. One: nothing is forked.
  double parts(const Features& f) const {
    return split ? std::min(threads, std::max(1.0, f.pieces)) : threads;
  }
  Caches caches;
};

class ClosedForm {
 public:
  /// `seconds[i]` at `features[i]`; relative errors count alike.
  ClosedForm(const Runner& runner, std::span<const Features> features, std::span<const double> seconds);
  double seconds(const Features& f) const;

 private:
  /// What does not depend on the term, of one call.
  struct Common;
  bool has_term(int number) const;
  double term(int number, const Features& f, const Common& common) const;
  struct Part {
    int term;
    double weight;
  };
  Runner runner_;
  bool knows_one_;           // what one thread takes is known at every point
  std::vector<Part> parts_;  // few: most weights are zero
};

}  // namespace fulcrum::executor
