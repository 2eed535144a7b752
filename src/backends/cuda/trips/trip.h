// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A way for a call on host data to reach the device and come back. Everything that can be made once is made by open();
// once() moves, runs and waits, and makes nothing.
#pragma once

#include "backends/cuda/runtime.h"
#include "backends/cuda/trips/plan.h"

#include <chrono>
#include <memory>
#include <string>

namespace fulcrum::backends::cuda::trips {

class Trip {
 public:
  virtual ~Trip() = default;
  /// Before open(), "ring" of a path "overlapped:ring": the only way to do it. False: the path has no such choice.
  virtual bool force(std::string_view way) { return way.empty(); }
  /// Called once, before anything else. May run the call to find out how; the caller's outputs then hold its results.
  virtual fulcrum_status open(const Cargo& cargo) = 0;
  /// One whole trip, finished when it returns.
  virtual fulcrum_status once() = 0;
  /// `count` of them, finished when it returns; paths that overlap calls have more to say here.
  virtual fulcrum_status many(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) FULCRUM_STATUS(once());
    return done();
  }
  /// What open() chose, in a few words that begin with the path's name.
  virtual std::string detail() const = 0;
  /// The caller's memory could not be page-locked, so that the host copies it once more in every trip.
  virtual bool staged() const { return false; }
};

struct Path {
  const char* name;
  std::unique_ptr<Trip> (*make)();
};

std::unique_ptr<Trip> make_auto();
std::unique_ptr<Trip> make_copy();
std::unique_ptr<Trip> make_graph();
std::unique_ptr<Trip> make_mapped();
std::unique_ptr<Trip> make_latency();
std::unique_ptr<Trip> make_duplex();
std::unique_ptr<Trip> make_pageable();
std::unique_ptr<Trip> make_managed();
std::unique_ptr<Trip> make_managed_prefetch();
std::unique_ptr<Trip> make_overlapped();
/// Its open() takes the first of the calls.
std::unique_ptr<Trip> make_overlapped_batch(std::vector<Cargo> calls);

/// Seconds of one call of `work`, which returns a fulcrum_status; negative when it fails. For races.
template <class Work>
double seconds_of(Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  const fulcrum_status status = work();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return status.code == FULCRUM_OK ? spent.count() : -1.0;
}

}  // namespace fulcrum::backends::cuda::trips
