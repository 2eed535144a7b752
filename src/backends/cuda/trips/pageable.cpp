// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// As `copy`, but from memory that stays pageable: the driver's own way for such memory, or two page-locked buffers that
// the host fills and empties while the other one is on the link. open() times both.
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

#include <cstring>

namespace fulcrum::backends::cuda::trips {
namespace {

/// Large enough for the link's full rate, small enough that two of them stay in a core's cache.
constexpr std::int64_t kStageBytes = 1 << 20;

class PageableTrip : public Trip {
 public:
  ~PageableTrip() override {
    if (stream_) cudaStreamSynchronize(stream_);
    for (void* stage : stages_) {
      if (stage) give_pinned(stage);
    }
  }

  fulcrum_status open(const Cargo& cargo) override {
    cargo_ = cargo;
    FULCRUM_STATUS(memory_.open(cargo_));
    fulcrum_args args = cargo_.args;
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) place(args, cargo_.buffers[i], memory_.at(i));
    FULCRUM_STATUS(station_.open(cargo_.kernel, args));
    for (int i = 0; i < 2; ++i) {
      FULCRUM_STATUS(take_pinned(kStageBytes, &stages_[i]));
      FULCRUM_STATUS(free_[i].open());
    }
    FULCRUM_STATUS(stream_.open());
    fulcrum_status last = done();
    const int winner = race(2, RaceRules{.rounds = 9},
                            [&](int i) { return seconds_of([&] { return last = once(i == 1); }); });
    staged_ = winner == 1;
    return winner < 0 ? last : done();
  }

  fulcrum_status once() override { return once(staged_); }
  std::string detail() const override { return staged_ ? "pageable, staged" : "pageable, by the driver"; }

 private:
  fulcrum_status once(bool staged) {
    used_ = 0;
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      const Buffer& buffer = cargo_.buffers[i];
      if (!buffer.in) continue;
      FULCRUM_STATUS(staged ? send_staged(memory_.at(i), buffer)
                            : send(memory_.at(i), buffer.host, buffer.bytes, stream_));
    }
    FULCRUM_STATUS(station_.enqueue(stream_, cargo_.calls));
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      const Buffer& buffer = cargo_.buffers[i];
      if (!buffer.out) continue;
      FULCRUM_STATUS(staged ? fetch_staged(buffer, memory_.at(i))
                            : fetch(buffer.host, memory_.at(i), buffer.bytes, stream_));
    }
    return stream_.wait();
  }

  static std::int64_t length_at(const Buffer& buffer, std::int64_t offset) {
    return std::min(kStageBytes, buffer.bytes - offset);
  }

  /// Fills one stage while the other is on its way. `used_` counts stages over all operands of a trip.
  fulcrum_status send_staged(char* device, const Buffer& buffer) {
    for (std::int64_t offset = 0; offset < buffer.bytes; offset += kStageBytes, ++used_) {
      const int stage = static_cast<int>(used_ % 2);
      const std::int64_t bytes = length_at(buffer, offset);
      if (used_ >= 2) FULCRUM_CUDA(cudaEventSynchronize(free_[stage]));
      std::memcpy(stages_[stage], buffer.host + offset, static_cast<std::size_t>(bytes));
      FULCRUM_STATUS(send(device + offset, static_cast<char*>(stages_[stage]), bytes, stream_));
      FULCRUM_CUDA(cudaEventRecord(free_[stage], stream_));
    }
    return done();
  }

  /// Empties one stage while the other fills. The stream's order keeps the way in, which used the same stages, ahead.
  fulcrum_status fetch_staged(const Buffer& buffer, const char* device) {
    const std::int64_t count = (buffer.bytes + kStageBytes - 1) / kStageBytes;
    for (std::int64_t i = 0; i < count + 1; ++i) {
      if (i < count) {
        const std::int64_t offset = i * kStageBytes;
        FULCRUM_STATUS(
            fetch(static_cast<char*>(stages_[i % 2]), device + offset, length_at(buffer, offset), stream_));
        FULCRUM_CUDA(cudaEventRecord(free_[i % 2], stream_));
      }
      if (i == 0) continue;
      const std::int64_t offset = (i - 1) * kStageBytes;
      FULCRUM_CUDA(cudaEventSynchronize(free_[(i - 1) % 2]));
      std::memcpy(buffer.host + offset, stages_[(i - 1) % 2],
                  static_cast<std::size_t>(length_at(buffer, offset)));
    }
    return done();
  }

  bool staged_ = false;
  std::int64_t used_ = 0;
  Cargo cargo_;
  DeviceMemory memory_;
  Station station_;
  void* stages_[2] = {};
  Event free_[2];
  Stream stream_;
};

}  // namespace

std::unique_ptr<Trip> make_pageable() { return std::make_unique<PageableTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
