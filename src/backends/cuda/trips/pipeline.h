// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One way to run a call as a pipeline of pieces: how large they are, how each travels, whether all of it is recorded.
#pragma once

#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/itinerary.h"
#include "backends/cuda/trips/station.h"

#include <memory>

namespace fulcrum::backends::cuda::trips {

/// What the pipelines of one trip share: streams, and memory on the device either for all of the call or for a ring of
/// a few pieces. Inputs come one after the other on `in`; a piece is worked on and leaves on the lane of its place in
/// the ring, so that one event a piece is enough. Pieces on mapped memory have the stream `aside`.
struct PipelineParts {
  static constexpr std::int64_t kRing = 3;  // one piece on its way in, one at work, one on its way out

  Cargo cargo;
  DeviceMemory memory;
  HostSide host;
  std::int64_t ring_length = 0;  // of a place in the ring, along the sliced dim; 0: memory for the whole call
  Event forked, arrived[kRing], left[kRing], finished[kRing + 1];
  Stream in, lane[kRing], aside;

  fulcrum_status open_streams();
};

/// The pieces and how they travel.
struct PipelineKind {
  std::int64_t pieces = 1;
  Shares shares;          // empty: pieces of one size, all copied
  bool recorded = false;  // the whole pipeline as one graph
  bool batched = false;   // the inputs of a piece in one call
};

class Pipeline {
 public:
  fulcrum_status open(PipelineParts& parts, const PipelineKind& kind);
  fulcrum_status once();
  const PipelineKind& kind() const { return kind_; }

 private:
  struct Piece {
    Leg leg;
    std::size_t station = 0;
  };

  fulcrum_status open_piece(const Leg& leg);
  char* device(std::size_t buffer, const Slice& slice, std::int64_t index) const;
  fulcrum_status enqueue();
  fulcrum_status enqueue_aside();
  fulcrum_status enqueue_in(std::int64_t index);
  fulcrum_status enqueue_work(std::int64_t index);
  fulcrum_status join();
  fulcrum_status wait() const;
  std::int64_t count() const { return static_cast<std::int64_t>(pieces_.size()); }

  PipelineParts* parts_ = nullptr;
  PipelineKind kind_;
  std::vector<Piece> pieces_;                       // that the copy engines bring
  std::vector<Piece> aside_;                        // on mapped memory
  std::vector<std::unique_ptr<Station>> stations_;  // pieces with the same length and place share one
  Recording recording_;
};

}  // namespace fulcrum::backends::cuda::trips
