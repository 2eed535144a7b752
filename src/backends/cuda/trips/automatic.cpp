// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The path `auto`: the paths that may suit a call are opened, run against each other, and all but the fastest closed.
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/trip.h"

#include <vector>

namespace fulcrum::backends::cuda::trips {
namespace {

/// Up to here a kernel may touch its operands several times over the link and still beat the copies.
constexpr std::int64_t kSmallCall = 64 << 10;
/// Beyond this one launch instead of a handful no longer shows.
constexpr std::int64_t kRecordedUpTo = 64 << 20;
/// Beyond this the wait that a flag saves no longer shows.
constexpr std::int64_t kLatencyUpTo = 4 << 20;

class AutoTrip : public Trip {
 public:
  fulcrum_status open(const Cargo& cargo) override {
    const fulcrum_status copied = add(cargo, make_copy);
    if (cargo.bytes() <= kRecordedUpTo) add(cargo, make_graph);
    // A call whose pieces share nothing touches each byte about once; others read the shared part again and again.
    const bool one_touch = cargo.sliceable() && cargo.whole_bytes() == 0 && cargo.calls == 1;
    const bool mapped = one_touch || cargo.bytes() <= kSmallCall;
    if (mapped) add(cargo, make_mapped);
    if (mapped && cargo.bytes() <= kLatencyUpTo) add(cargo, make_latency);
    const bool short_of_memory = copied.code == FULCRUM_OUT_OF_MEMORY && cargo.sliceable();
    if (short_of_memory || !piece_counts(cargo).empty()) add(cargo, make_duplex);
    if (!trips_.empty() && trips_.front()->staged()) add(cargo, make_pageable);
    if (trips_.empty()) return failed(code_, message_.c_str());
    const int winner =
        trips_.size() == 1 ? 0 : race(static_cast<int>(trips_.size()), RaceRules{}, [&](int i) {
          return seconds_of([&] { return noted(trips_[static_cast<std::size_t>(i)]->once()); });
        });
    if (winner < 0) return failed(code_, message_.c_str());
    chosen_ = std::move(trips_[static_cast<std::size_t>(winner)]);
    trips_.clear();
    return done();
  }

  fulcrum_status once() override { return chosen_->once(); }
  std::string detail() const override { return chosen_->detail(); }

 private:
  /// Keeps a path that opens; one that does not is no candidate.
  fulcrum_status add(const Cargo& cargo, std::unique_ptr<Trip> (*make)()) {
    std::unique_ptr<Trip> trip = make();
    const fulcrum_status opened = noted(trip->open(cargo));
    if (opened.code == FULCRUM_OK) trips_.push_back(std::move(trip));
    return opened;
  }

  /// The first failure is what the caller is told when nothing works.
  fulcrum_status noted(const fulcrum_status& status) {
    if (status.code != FULCRUM_OK && code_ == FULCRUM_OK) {
      code_ = status.code;
      message_ = status.message ? status.message : "a trip failed";
    }
    return status;
  }

  std::vector<std::unique_ptr<Trip>> trips_;
  std::unique_ptr<Trip> chosen_;
  std::int32_t code_ = FULCRUM_OK;
  std::string message_;
};

}  // namespace

std::unique_ptr<Trip> make_auto() { return std::make_unique<AutoTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
