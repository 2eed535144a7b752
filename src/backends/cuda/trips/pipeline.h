// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// One way to run a call as a pipeline of pieces: how many, where results go, whether it is recorded.
#pragma once

#include "backends/cuda/trips/handles.h"
#include "backends/cuda/trips/host_side.h"
#include "backends/cuda/trips/station.h"

#include <memory>

namespace fulcrum::backends::cuda::trips {

/// What the pipelines of one trip share: three streams, and memory on the device either for all of the call or for a
/// ring of a few pieces.
struct PipelineParts {
  static constexpr std::int64_t kRing = 3;  // one piece on its way in, one at work, one on its way out

  Cargo cargo;
  DeviceMemory memory;
  HostSide host;
  std::int64_t ring_length = 0;  // of a place in the ring, along the sliced dim; 0: memory for the whole call
  Event arrived[kRing], worked[kRing], left[kRing], finished;
  Stream in, work, out;

  fulcrum_status open_streams();
};

/// A number of pieces and how they travel.
struct PipelineKind {
  std::int64_t pieces = 1;
  bool through = false;   // kernels write results to the host's memory themselves
  bool recorded = false;  // the whole pipeline as one graph
};

class Pipeline {
 public:
  fulcrum_status open(PipelineParts& parts, const PipelineKind& kind);
  fulcrum_status once();
  const PipelineKind& kind() const { return kind_; }

 private:
  struct Piece {
    Slice slice;
    std::size_t station = 0;
  };

  fulcrum_status open_piece(const Slice& slice, std::int64_t index);
  char* device(std::size_t buffer, const Slice& slice, std::int64_t index) const;
  fulcrum_status enqueue();
  fulcrum_status enqueue_in(const Piece& piece, std::int64_t index);
  fulcrum_status enqueue_out(const Piece& piece, std::int64_t index);

  PipelineParts* parts_ = nullptr;
  PipelineKind kind_;
  std::vector<Piece> pieces_;
  std::vector<std::unique_ptr<Station>> stations_;  // pieces with the same length and place share one
  Recording recording_;
};

}  // namespace fulcrum::backends::cuda::trips
