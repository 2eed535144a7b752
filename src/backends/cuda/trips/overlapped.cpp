// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The path `overlapped`: independent calls as a pipeline, one coming in while one is at work and one goes out. Each call
// has one of a few sets of device buffers and the stream (lane) of that set, so that a set is used again only when its
// last results have left. Which of several manners is the fastest is found by timing them.
#include "backends/cuda/trips/batch.h"
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/itinerary.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

#include <cstdio>
#include <deque>

namespace fulcrum::backends::cuda::trips {
namespace {

/// `lanes`: in, kernel, out of a call on its lane, nothing else to keep the order. `ring`: the inputs of all calls one
/// after the other on a stream of their own. `recorded`: as lanes, each call launched as one graph. `mapped`: kernels on
/// the host's memory.
enum class Manner { lanes, ring, recorded, mapped };
struct Pace {
  Manner manner = Manner::lanes;
  bool together = false;  // the inputs of a call handed over in one call of the driver
};

/// A graph saves some microseconds a call: not worth trying beyond this, nor for batches that would need many.
constexpr std::int64_t kRecordedUpTo = 4 << 20, kMostRecordings = 256;
/// Calls of a race: enough for the pipeline to fill several times, few where each takes milliseconds.
constexpr std::int64_t kRaceCalls = 32, kRaceCallsOfLarge = 8, kLargeBytes = 32 << 20;

class OverlappedTrip : public Trip {
 public:
  explicit OverlappedTrip(std::vector<Cargo> calls) : calls_(std::move(calls)) {}

  fulcrum_status open(const Cargo& cargo) override {
    repeated_ = calls_.empty();
    if (repeated_) calls_.push_back(cargo);
    if (const char* wrong = unlike(calls_)) return failed(FULCRUM_INVALID_ARGUMENT, wrong);
    batch_ = batch_of(calls_);
    calls_.clear();
    FULCRUM_STATUS(check());
    FULCRUM_STATUS(open_memory());
    Cargo all;
    all.buffers = batch_.buffers;
    FULCRUM_STATUS(host_.open(all));
    FULCRUM_STATUS(in_.open());
    FULCRUM_STATUS(shared_there_.open());
    for (std::int64_t place = 0; place < sets_; ++place) FULCRUM_STATUS(open_place());
    return choose();
  }

  fulcrum_status once() override { return many(1); }

  fulcrum_status many(std::int64_t count) override {
    if (!host_.staged()) return go(count * batch_.calls());
    // The host's copies into and out of page-locked memory are part of every call, and only calls with memory of their
    // own can share the rest.
    for (std::int64_t i = 0; i < count; ++i) {
      host_.load();
      FULCRUM_STATUS(go(batch_.calls()));
      host_.store();
    }
    return done();
  }

  std::string detail() const override {
    constexpr const char* kNames[] = {"lanes", "ring", "recorded", "mapped"};
    char text[128];
    const double megabytes = 1e-6 * static_cast<double>(batch_.bytes_each());
    std::snprintf(text, sizeof text, "overlapped, %lld sets of %.3g MB, %s%s", static_cast<long long>(sets_),
                  megabytes, kNames[static_cast<int>(pace_.manner)], pace_.together ? ", batched" : "");
    const auto shared = std::count(batch_.shared.begin(), batch_.shared.end(), true);
    return std::string(text) + (repeated_ ? "" : ", " + std::to_string(batch_.calls()) + " calls") +
           (shared > 0 ? ", " + std::to_string(shared) + " shared" : "") +
           (host_.staged() ? ", operands staged" : "");
  }
  bool staged() const override { return host_.staged(); }

 private:
  /// A set of device buffers, the kernel on them, and the stream on which it is used.
  struct Place {
    DeviceMemory memory;
    Station station;
    Event arrived, left;
    Stream lane;
  };

  fulcrum_status check() const {
    const auto both = [](const Buffer& buffer) { return buffer.in && buffer.out; };
    if (repeated_ && std::any_of(batch_.buffers.begin(), batch_.buffers.end(), both)) {
      return failed(FULCRUM_UNSUPPORTED,
                    "calls that overwrite their own inputs follow each other and cannot overlap");
    }
    if (independent(batch_)) return done();
    return failed(FULCRUM_INVALID_ARGUMENT, "a call of the batch writes what another one reads or writes");
  }

  fulcrum_status open_memory() {
    std::size_t free_bytes = 0, total_bytes = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    sets_ = sets_within(batch_, static_cast<std::int64_t>(free_bytes / 2));
    if (sets_ == 0) return failed(FULCRUM_OUT_OF_MEMORY, "the device cannot hold two of these calls at once");
    for (std::size_t i = 0; i < batch_.like.buffers.size(); ++i) {
      FULCRUM_STATUS(shared_memory_.add(batch_.shared[i] ? batch_.like.buffers[i].bytes : 0));
    }
    return done();
  }

  /// Buffers, kernel, stream and events of one set.
  fulcrum_status open_place() {
    Place& place = places_.emplace_back();
    fulcrum_args args = batch_.like.args;
    for (std::size_t i = 0; i < batch_.like.buffers.size(); ++i) {
      const Buffer& buffer = batch_.like.buffers[i];
      FULCRUM_STATUS(place.memory.add(batch_.shared[i] ? 0 : buffer.bytes));
      trips::place(args, buffer, batch_.shared[i] ? shared_memory_.at(i) : place.memory.at(i));
    }
    FULCRUM_STATUS(place.station.open(batch_.like.kernel, args));
    FULCRUM_STATUS(place.arrived.open());
    FULCRUM_STATUS(place.left.open());
    return place.lane.open();
  }

  std::vector<Pace> paces() const {
    const auto inputs = std::count_if(batch_.like.buffers.begin(), batch_.like.buffers.end(),
                                      [](const Buffer& buffer) { return buffer.in; });
    std::vector<Pace> list = {{Manner::ring}, {Manner::lanes}};
    if (inputs > 1) list.insert(list.end(), {{Manner::ring, true}, {Manner::lanes, true}});
    const std::int64_t recordings = repeated_ ? sets_ : batch_.calls();
    if (batch_.bytes_each() <= kRecordedUpTo && recordings <= kMostRecordings)
      list.push_back({Manner::recorded});
    if (touches_once(batch_.like) && !batch_.shares()) list.push_back({Manner::mapped});
    return list;
  }

  fulcrum_status choose() {
    const std::int64_t most = batch_.bytes_each() > kLargeBytes ? kRaceCallsOfLarge : kRaceCalls;
    const std::int64_t items = repeated_ ? most : std::min(most, batch_.calls());
    std::vector<Pace> list;
    fulcrum_status last = done();
    host_.load();
    for (const Pace& pace : paces()) {
      pace_ = pace;
      last = open_pace();
      if (last.code == FULCRUM_OK) last = go(items);  // kernels are loaded by their first launch
      if (last.code == FULCRUM_OK) list.push_back(pace);
      if (last.code == FULCRUM_DEVICE_LOST) return last;
    }
    if (list.empty()) return last;
    const RaceRules rules{.warm_ups = 2, .rounds = 7, .seconds_each = 0.04, .hopeless = 1.3};
    const int winner = list.size() == 1 ? 0 : race(static_cast<int>(list.size()), rules, [&](int i) {
      pace_ = list[static_cast<std::size_t>(i)];
      return seconds_of([&] { return last = go(items); });
    });
    if (winner < 0) return last;
    pace_ = list[static_cast<std::size_t>(winner)];
    if (pace_.manner != Manner::recorded) recordings_.clear();
    if (pace_.manner != Manner::mapped) mapped_.clear();
    return done();
  }

  /// What a manner needs beyond the places.
  fulcrum_status open_pace() {
    if (pace_.manner == Manner::mapped) {
      for (const auto& where : batch_.where) {
        fulcrum_args args = batch_.like.args;
        for (std::size_t i = 0; i < where.size(); ++i)
          trips::place(args, batch_.like.buffers[i], host_.device(where[i]));
        FULCRUM_STATUS(mapped_.emplace_back().open(batch_.like.kernel, args));
      }
    }
    if (pace_.manner != Manner::recorded) return done();
    const std::int64_t count = repeated_ ? sets_ : batch_.calls();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t call = repeated_ ? 0 : i;
      Place& place = places_[static_cast<std::size_t>(i % sets_)];
      const auto all_of_it = [&] { return on_its_lane(call, place); };
      if (i < sets_) {
        FULCRUM_STATUS(all_of_it());
        FULCRUM_STATUS(place.lane.wait());
      }
      FULCRUM_STATUS(recordings_.emplace_back().record(place.lane, all_of_it));
    }
    return done();
  }

  /// `items` calls, finished when it returns, also after an error: plans and memory may go next.
  fulcrum_status go(std::int64_t items) {
    fulcrum_status status = enqueue(items);
    if (status.code != FULCRUM_OK) cudaStreamSynchronize(in_);
    for (const Place& place : places_) {
      const fulcrum_status waited = place.lane.wait();
      if (status.code == FULCRUM_OK) status = waited;
    }
    return status;
  }

  fulcrum_status enqueue(std::int64_t items) {
    if (batch_.shares()) FULCRUM_STATUS(enqueue_shared());
    for (std::int64_t item = 0; item < items; ++item) {
      const std::int64_t call = item % batch_.calls();
      const auto index = static_cast<std::size_t>((repeated_ ? item : call) % sets_);
      Place& place = places_[index];
      switch (pace_.manner) {
        case Manner::lanes:
          FULCRUM_STATUS(on_its_lane(call, place));
          break;
        case Manner::ring:
          FULCRUM_CUDA(cudaStreamWaitEvent(in_, place.left, 0));
          FULCRUM_STATUS(enqueue_in(call, place, in_));
          FULCRUM_CUDA(cudaEventRecord(place.arrived, in_));
          FULCRUM_CUDA(cudaStreamWaitEvent(place.lane, place.arrived, 0));
          FULCRUM_STATUS(enqueue_work(call, place));
          FULCRUM_CUDA(cudaEventRecord(place.left, place.lane));
          break;
        case Manner::recorded:
          FULCRUM_STATUS(recordings_[repeated_ ? index : static_cast<std::size_t>(call)].launch(place.lane));
          break;
        case Manner::mapped:
          FULCRUM_STATUS(mapped_[static_cast<std::size_t>(call)].enqueue(place.lane, batch_.like.calls));
          break;
      }
    }
    return done();
  }

  /// What all calls read, ahead of everything else.
  fulcrum_status enqueue_shared() {
    for (std::size_t i = 0; i < batch_.like.buffers.size(); ++i) {
      if (!batch_.shared[i]) continue;
      FULCRUM_STATUS(
          send(shared_memory_.at(i), host_.host(batch_.where.front()[i]), batch_.like.buffers[i].bytes, in_));
    }
    FULCRUM_CUDA(cudaEventRecord(shared_there_, in_));
    for (const Place& place : places_) FULCRUM_CUDA(cudaStreamWaitEvent(place.lane, shared_there_, 0));
    return done();
  }

  fulcrum_status on_its_lane(std::int64_t call, const Place& place) {
    FULCRUM_STATUS(enqueue_in(call, place, place.lane));
    return enqueue_work(call, place);
  }

  fulcrum_status enqueue_in(std::int64_t call, const Place& place, cudaStream_t stream) {
    const auto& where = batch_.where[static_cast<std::size_t>(call)];
    Sending together;
    for (std::size_t i = 0; i < where.size(); ++i) {
      const Buffer& buffer = batch_.like.buffers[i];
      if (!buffer.in || batch_.shared[i]) continue;
      if (pace_.together) {
        together.add(place.memory.at(i), host_.host(where[i]), buffer.bytes);
      } else {
        FULCRUM_STATUS(send(place.memory.at(i), host_.host(where[i]), buffer.bytes, stream));
      }
    }
    return pace_.together ? together.enqueue(stream) : done();
  }

  fulcrum_status enqueue_work(std::int64_t call, const Place& place) {
    const auto& where = batch_.where[static_cast<std::size_t>(call)];
    FULCRUM_STATUS(place.station.enqueue(place.lane, batch_.like.calls));
    for (std::size_t i = 0; i < where.size(); ++i) {
      const Buffer& buffer = batch_.like.buffers[i];
      if (buffer.out)
        FULCRUM_STATUS(fetch(host_.host(where[i]), place.memory.at(i), buffer.bytes, place.lane));
    }
    return done();
  }

  std::vector<Cargo> calls_;  // until open()
  bool repeated_ = false;     // one call over and over, all on the same host memory
  Batch batch_;
  std::int64_t sets_ = 0;
  Pace pace_;
  DeviceMemory shared_memory_;
  HostSide host_;
  std::deque<Station> mapped_;  // by call
  Event shared_there_;
  std::deque<Place> places_;
  std::deque<Recording> recordings_;  // by place, or by call where each has memory of its own
  Stream in_;
};

}  // namespace

std::unique_ptr<Trip> make_overlapped() { return std::make_unique<OverlappedTrip>(std::vector<Cargo>{}); }
std::unique_ptr<Trip> make_overlapped_batch(std::vector<Cargo> calls) {
  return std::make_unique<OverlappedTrip>(std::move(calls));
}

}  // namespace fulcrum::backends::cuda::trips
