// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The host's side of a trip: the caller's buffers made page-locked and mapped for as long as the trip lives, or, where
// that fails, page-locked copies of them.
#pragma once

#include "backends/cuda/runtime.h"
#include "backends/cuda/trips/plan.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fulcrum::backends::cuda::trips {

class HostSide {
 public:
  HostSide() = default;
  HostSide(const HostSide&) = delete;
  HostSide& operator=(const HostSide&) = delete;
  ~HostSide();

  fulcrum_status open(const Cargo& cargo);
  /// Staged buffers only: the caller's inputs into the copies, the results back. To be called around every trip.
  void load() const;
  void store() const;
  /// Page-locked memory of a buffer: as the host sees it and as kernels do.
  char* host(std::size_t buffer) const { return sides_[buffer].host; }
  char* device(std::size_t buffer) const { return sides_[buffer].device; }
  bool staged() const;

 private:
  struct Side {
    Buffer buffer;
    char* host = nullptr;
    char* device = nullptr;
    void* stage = nullptr;  // from the pool; null: the caller's own memory
  };
  static fulcrum_status stage(Side& side);

  std::vector<Side> sides_;
  std::vector<std::uintptr_t> pins_;  // what to let go of
};

}  // namespace fulcrum::backends::cuda::trips
