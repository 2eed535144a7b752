// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and recorded graphs that are given back with their owner. All are made when a trip is opened, none
// while it runs.
#pragma once

#include "backends/cuda/recording.h"

namespace fulcrum::backends::cuda::trips {

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  /// Waits first: a stream is the last member of its owner, so that nothing it uses goes before its work is over.
  ~Stream() {
    if (!stream_) return;
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  enum Urgency { kPlain, kUrgent };  // CTAs of urgent streams take the next free places on the device
  fulcrum_status open(Urgency urgency = kPlain) {
    int least = 0, greatest = 0;
    FULCRUM_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    FULCRUM_CUDA(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, urgency == kUrgent ? greatest : least));
    return done();
  }
  fulcrum_status wait() const {
    FULCRUM_CUDA(cudaStreamSynchronize(stream_));
    return done();
  }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// An event for order, not for time.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_) cudaEventDestroy(event_);
  }
  fulcrum_status open() {
    FULCRUM_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    return done();
  }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// What `enqueue` put on a stream, recorded once and launched many times.
class Recording {
 public:
  Recording() = default;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (graph_) cudaGraphExecDestroy(graph_);
  }

  template <class Enqueue>
  fulcrum_status record(cudaStream_t stream, Enqueue&& enqueue) {
    return cuda::record(stream, "recording a trip", enqueue, &graph_);
  }
  fulcrum_status launch(cudaStream_t stream) const {
    FULCRUM_CUDA(cudaGraphLaunch(graph_, stream));
    return done();
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace fulcrum::backends::cuda::trips
