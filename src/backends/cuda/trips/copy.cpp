// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// In, kernel, out on one stream and one wait: call by call (`copy`) or recorded once and launched as one (`graph`).
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

namespace fulcrum::backends::cuda::trips {
namespace {

class CopyTrip : public Trip {
 public:
  explicit CopyTrip(bool recorded) : recorded_(recorded) {}

  fulcrum_status open(const Cargo& cargo) override {
    cargo_ = cargo;
    FULCRUM_STATUS(memory_.open(cargo_));
    FULCRUM_STATUS(host_.open(cargo_));
    fulcrum_args args = cargo_.args;
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) place(args, cargo_.buffers[i], memory_.at(i));
    FULCRUM_STATUS(station_.open(cargo_.kernel, args));
    FULCRUM_STATUS(stream_.open());
    if (!recorded_) return done();
    // Call by call first: kernels are loaded by their first launch, which should not be the recorded one.
    host_.load();
    FULCRUM_STATUS(enqueue());
    FULCRUM_STATUS(stream_.wait());
    return recording_.record(stream_, [&] { return enqueue(); });
  }

  fulcrum_status once() override {
    host_.load();
    FULCRUM_STATUS(recorded_ ? recording_.launch(stream_) : enqueue());
    FULCRUM_STATUS(stream_.wait());
    host_.store();
    return done();
  }

  std::string detail() const override {
    return std::string(recorded_ ? "graph" : "copy") + (host_.staged() ? ", operands staged" : "");
  }
  bool staged() const override { return host_.staged(); }

 private:
  fulcrum_status enqueue() {
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      if (cargo_.buffers[i].in)
        FULCRUM_STATUS(send(memory_.at(i), host_.host(i), cargo_.buffers[i].bytes, stream_));
    }
    FULCRUM_STATUS(station_.enqueue(stream_, cargo_.calls));
    for (std::size_t i = 0; i < cargo_.buffers.size(); ++i) {
      if (cargo_.buffers[i].out)
        FULCRUM_STATUS(fetch(host_.host(i), memory_.at(i), cargo_.buffers[i].bytes, stream_));
    }
    return done();
  }

  bool recorded_;
  Cargo cargo_;
  DeviceMemory memory_;
  HostSide host_;
  Station station_;
  Recording recording_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Trip> make_copy() { return std::make_unique<CopyTrip>(false); }
std::unique_ptr<Trip> make_graph() { return std::make_unique<CopyTrip>(true); }

}  // namespace fulcrum::backends::cuda::trips
