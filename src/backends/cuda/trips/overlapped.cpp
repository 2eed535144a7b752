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
/// after the other on a stream of their own. `mapped`: kernels on the host's memory.
enum class Manner { lanes, ring, mapped };
struct Pace {
  Manner manner = Manner::lanes;
  bool together = false;  // the inputs of a call handed over in one call of the driver
  bool recorded = false;  // many calls launched as one graph
};

/// Launching calls one by one takes microseconds each, which is not worth saving beyond this.
constexpr std::int64_t kBatchRecordedUpTo = 4 << 20;
/// Calls of one graph: enough to make its launch small beside them, few enough that its ends, where nothing overlaps with
/// the next one, are.
constexpr std::int64_t kChunk = 32;
/// Calls of a batch beyond which nobody waits for all of them to be recorded.
constexpr std::int64_t kMostRecorded = 8192;
/// Calls of a race: enough for the pipeline to fill several times, few where each takes milliseconds.
constexpr std::int64_t kRaceCalls = 32, kRaceCallsOfLarge = 8, kLargeBytes = 32 << 20;

/// "ring, batched": what the detail says and force() takes.
std::string text_of(const Pace& pace) {
  constexpr const char* kNames[] = {"lanes", "ring", "mapped"};
  return std::string(kNames[static_cast<int>(pace.manner)]) + (pace.together ? ", batched" : "") +
         (pace.recorded ? ", recorded" : "");
}

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
    FULCRUM_STATUS(ahead_.open());
    for (std::int64_t place = 0; place < sets_; ++place) FULCRUM_STATUS(open_place());
    return choose();
  }

  bool force(std::string_view way) override {
    forced_ = way;
    return true;
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
    char text[128];
    const double megabytes = 1e-6 * static_cast<double>(batch_.bytes_each());
    std::snprintf(text, sizeof text, "overlapped, %lld sets of %.3g MB, ", static_cast<long long>(sets_),
                  megabytes);
    const auto shared = std::count(batch_.shared.begin(), batch_.shared.end(), true);
    return text + text_of(pace_) + (repeated_ ? "" : ", " + std::to_string(batch_.calls()) + " calls") +
           (shared > 0 ? ", " + std::to_string(shared) + " shared" : "") +
           (host_.staged() ? ", operands staged" : "");
  }
  bool staged() const override { return host_.staged(); }

 private:
  /// A set of device buffers, the kernel on them, and the stream on which it is used.
  struct Place {
    DeviceMemory memory;
    Station station;
    Event arrived, left;  // of the ring
    Event joined;         // of recordings, which no wait outside of them may see
    Stream lane;
  };

  std::deque<Recording>& chunks() { return chunks_[pace_.manner == Manner::mapped ? 1 : 0]; }

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
    FULCRUM_STATUS(place.joined.open());
    return place.lane.open();
  }

  std::vector<Pace> paces() const {
    const auto inputs = std::count_if(batch_.like.buffers.begin(), batch_.like.buffers.end(),
                                      [](const Buffer& buffer) { return buffer.in; });
    std::vector<Pace> list = {{Manner::ring}, {Manner::lanes}};
    if (inputs > 1) list.insert(list.end(), {{Manner::ring, true}, {Manner::lanes, true}});
    const bool on_host = touches_once(batch_.like) && !batch_.shares();
    if (on_host) list.push_back({Manner::mapped});
    if (batch_.bytes_each() > kBatchRecordedUpTo || batch_.calls() > kMostRecorded) return list;
    list.push_back({.manner = Manner::lanes, .recorded = true});
    if (on_host) list.push_back({.manner = Manner::mapped, .recorded = true});
    return list;
  }

  fulcrum_status choose() {
    const std::int64_t most = batch_.bytes_each() > kLargeBytes ? kRaceCallsOfLarge : kRaceCalls;
    const std::int64_t items = repeated_ ? most : std::min(most, batch_.calls());
    std::vector<Pace> list;
    fulcrum_status last = done();
    host_.load();
    for (const Pace& pace : paces()) {
      if (!forced_.empty() && forced_ != text_of(pace)) continue;
      pace_ = pace;
      last = open_pace();
      if (last.code == FULCRUM_OK) last = go(items);  // kernels are loaded by their first launch
      if (last.code == FULCRUM_OK) list.push_back(pace);
      if (last.code == FULCRUM_DEVICE_LOST) return last;
    }
    if (list.empty() && last.code == FULCRUM_OK)
      return failed(FULCRUM_UNSUPPORTED, "these calls do not overlap in the manner asked for");
    if (list.empty()) return last;
    const RaceRules rules{.warm_ups = 2, .rounds = 7, .seconds_each = 0.04, .hopeless = 1.3};
    const int winner = list.size() == 1 ? 0 : race(static_cast<int>(list.size()), rules, [&](int i) {
      pace_ = list[static_cast<std::size_t>(i)];
      return seconds_of([&] { return last = go(items); });
    });
    if (winner < 0) return last;
    pace_ = list[static_cast<std::size_t>(winner)];
    chunks_[pace_.manner == Manner::mapped ? 0 : 1].clear();
    if (!pace_.recorded) chunks().clear();
    if (pace_.manner != Manner::mapped) mapped_.clear();
    return done();
  }

  /// What a pace needs beyond the places.
  fulcrum_status open_pace() {
    if (pace_.manner == Manner::mapped && mapped_.empty()) FULCRUM_STATUS(open_mapped());
    if (!pace_.recorded) return done();
    const std::int64_t calls = repeated_ ? kChunk : batch_.calls();
    for (std::int64_t first = 0; first < calls; first += kChunk) {
      const std::int64_t end = std::min(first + kChunk, calls);
      FULCRUM_STATUS(chunks().emplace_back().record(in_, [&] { return enqueue_chunk(first, end); }));
    }
    return done();
  }

  fulcrum_status open_mapped() {
    fulcrum_status status = done();
    for (const auto& where : batch_.where) {
      fulcrum_args args = batch_.like.args;
      for (std::size_t i = 0; i < where.size(); ++i)
        trips::place(args, batch_.like.buffers[i], host_.device(where[i]));
      status = mapped_.emplace_back().open(batch_.like.kernel, args);
      if (status.code != FULCRUM_OK) break;
    }
    if (status.code != FULCRUM_OK) mapped_.clear();
    return status;
  }

  /// Calls [first, end) on their lanes, between a fork and a join.
  fulcrum_status enqueue_chunk(std::int64_t first, std::int64_t end) {
    FULCRUM_STATUS(lanes_follow_in());
    for (std::int64_t item = first; item < end; ++item) FULCRUM_STATUS(enqueue_one(item));
    for (const Place& place : places_) {
      FULCRUM_CUDA(cudaEventRecord(place.joined, place.lane));
      FULCRUM_CUDA(cudaStreamWaitEvent(in_, place.joined, 0));
    }
    return done();
  }

  /// `items` calls, finished when it returns, also after an error: plans and memory may go next.
  fulcrum_status go(std::int64_t items) {
    std::int64_t singles = items;
    const fulcrum_status status = enqueue(items, singles);
    if (status.code == FULCRUM_OK) return wait(items, singles);
    cudaStreamSynchronize(in_);
    for (const Place& place : places_) cudaStreamSynchronize(place.lane);
    return status;
  }

  /// For what the last `singles` of the items used: every lane that was used is among those of the last `sets_` items.
  fulcrum_status wait(std::int64_t items, std::int64_t singles) {
    for (std::int64_t i = 0; i < std::min(singles, sets_); ++i) {
      FULCRUM_STATUS(place_of(items - 1 - i).lane.wait());
    }
    return singles > 0 ? done() : in_.wait();
  }

  /// The set that takes an item.
  const Place& place_of(std::int64_t item) const {
    const std::int64_t turn = repeated_ ? item : item % batch_.calls();
    return places_[static_cast<std::size_t>(turn % sets_)];
  }

  fulcrum_status enqueue(std::int64_t items, std::int64_t& singles) {
    if (batch_.shares()) FULCRUM_STATUS(enqueue_shared());
    std::int64_t item = 0;
    while (pace_.recorded && item < items) {
      const std::int64_t first = repeated_ ? 0 : item % batch_.calls();
      const std::int64_t length = repeated_ ? kChunk : std::min(kChunk, batch_.calls() - first);
      if (item + length > items) break;
      FULCRUM_STATUS(chunks()[static_cast<std::size_t>(first / kChunk)].launch(in_));
      item += length;
    }
    singles = items - item;
    if (item > 0 && singles > 0) FULCRUM_STATUS(lanes_follow_in());  // they use the same buffers
    for (; item < items; ++item) FULCRUM_STATUS(enqueue_one(item));
    return done();
  }

  /// The call of one item, in turn on the lanes.
  fulcrum_status enqueue_one(std::int64_t item) {
    const std::int64_t call = item % batch_.calls();
    const Place& place = place_of(item);
    switch (pace_.manner) {
      case Manner::lanes:
        return on_its_lane(call, place);
      case Manner::ring:
        FULCRUM_CUDA(cudaStreamWaitEvent(in_, place.left, 0));
        FULCRUM_STATUS(enqueue_in(call, place, in_));
        FULCRUM_CUDA(cudaEventRecord(place.arrived, in_));
        FULCRUM_CUDA(cudaStreamWaitEvent(place.lane, place.arrived, 0));
        FULCRUM_STATUS(enqueue_work(call, place));
        FULCRUM_CUDA(cudaEventRecord(place.left, place.lane));
        return done();
      case Manner::mapped:
        return mapped_[static_cast<std::size_t>(call)].enqueue(place.lane, batch_.like.calls);
    }
    return done();
  }

  /// What is enqueued on the lanes from now on begins when everything on `in_` is over.
  fulcrum_status lanes_follow_in() {
    FULCRUM_CUDA(cudaEventRecord(ahead_, in_));
    for (const Place& place : places_) FULCRUM_CUDA(cudaStreamWaitEvent(place.lane, ahead_, 0));
    return done();
  }

  /// What all calls read, ahead of everything else.
  fulcrum_status enqueue_shared() {
    for (std::size_t i = 0; i < batch_.like.buffers.size(); ++i) {
      if (!batch_.shared[i]) continue;
      FULCRUM_STATUS(
          send(shared_memory_.at(i), host_.host(batch_.where.front()[i]), batch_.like.buffers[i].bytes, in_));
    }
    return lanes_follow_in();
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
  std::string forced_;  // the only pace allowed; empty: any
  DeviceMemory shared_memory_;
  HostSide host_;
  std::deque<Station> mapped_;  // by call
  Event ahead_;
  std::deque<Place> places_;
  std::deque<Recording> chunks_[2];  // of copying calls, of mapped ones
  Stream in_;
};

}  // namespace

std::unique_ptr<Trip> make_overlapped() { return std::make_unique<OverlappedTrip>(std::vector<Cargo>{}); }
std::unique_ptr<Trip> make_overlapped_batch(std::vector<Cargo> calls) {
  return std::make_unique<OverlappedTrip>(std::move(calls));
}

}  // namespace fulcrum::backends::cuda::trips
