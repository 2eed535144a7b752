// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernel reads and writes the host's memory itself, over the link, both directions at once: right for calls that
// touch each byte about once.
#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/station.h"
#include "backends/cuda/trips/trip.h"

namespace fulcrum::backends::cuda::trips {
namespace {

class MappedTrip : public Trip {
 public:
  fulcrum_status open(const Cargo& cargo) override {
    calls_ = cargo.calls;
    FULCRUM_STATUS(host_.open(cargo));
    fulcrum_args args = cargo.args;
    for (std::size_t i = 0; i < cargo.buffers.size(); ++i) place(args, cargo.buffers[i], host_.device(i));
    FULCRUM_STATUS(station_.open(cargo.kernel, args));
    FULCRUM_STATUS(stream_.open());
    host_.load();
    FULCRUM_STATUS(
        station_.enqueue(stream_, 1));  // loads the kernel, which the recorded launch should not have to
    FULCRUM_STATUS(stream_.wait());
    const auto enqueue = [&] { return station_.enqueue(stream_, calls_); };
    recorded_ =
        recording_.record(stream_, enqueue).code == FULCRUM_OK;  // else call by call, which is as right
    return done();
  }

  fulcrum_status once() override {
    host_.load();
    FULCRUM_STATUS(recorded_ ? recording_.launch(stream_) : station_.enqueue(stream_, calls_));
    FULCRUM_STATUS(stream_.wait());
    host_.store();
    return done();
  }

  std::string detail() const override {
    return std::string("mapped") + (recorded_ ? ", recorded" : "") +
           (host_.staged() ? ", operands staged" : "");
  }

 private:
  std::int64_t calls_ = 1;
  bool recorded_ = false;
  HostSide host_;
  Station station_;
  Recording recording_;
  Stream stream_;
};

}  // namespace

std::unique_ptr<Trip> make_mapped() { return std::make_unique<MappedTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
