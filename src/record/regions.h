// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The recorder's side of FULCRUM_REGION: the memory that programs count in, and the marks that open regions leave in
// sampled stacks.
#pragma once

#include <fulcrum/core/profile.h>

#include "record/events.h"

struct fulcrum_region_memory;

namespace fulcrum::record {

class Regions {
 public:
  Regions();
  ~Regions();
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;
  /// For the environment of the program: where it finds the memory; empty when there is none.
  std::string path() const;
  /// Innermost region open in the sample, number plus one; 0: none in the piece of stack that was sampled.
  std::uint32_t find(const SampleView&) const;
  std::vector<CpuProfile::Region> read() const;

 private:
  int descriptor_ = -1;
  fulcrum_region_memory* memory_ = nullptr;
};

}  // namespace fulcrum::record
