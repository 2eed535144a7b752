// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// The path `duplex`: a pipeline of pieces, the number of pieces and the way results travel chosen by timing. It is also
// the answer to a call that the device's memory cannot hold: a ring of a few pieces then passes all of it through.
#include "backends/cuda/trips/pipeline.h"
#include "backends/cuda/trips/race.h"
#include "backends/cuda/trips/trip.h"

namespace fulcrum::backends::cuda::trips {
namespace {

/// Launching a graph of copies saves some microseconds a call at most: not worth trying beyond this.
constexpr std::int64_t kRecordedUpTo = 64 << 20;

/// Pipelines worth timing for a call whose operands are all on the device at once.
std::vector<PipelineKind> kinds_for(const Cargo& cargo) {
  std::vector<std::int64_t> counts = piece_counts(cargo);
  if (counts.empty()) return {PipelineKind{.pieces = 2}};
  if (cargo.kernel->plan && counts.size() > 2) counts = {counts.front(), counts.back()};  // plans may be dear
  // A result that is also read, or written once per call, would cross the link more than once.
  bool through = cargo.calls == 1 && !cargo.kernel->plan;
  for (const Buffer& buffer : cargo.buffers) through = through && !(buffer.in && buffer.out);
  std::vector<PipelineKind> kinds;
  for (const std::int64_t pieces : counts) {
    for (const bool recorded : {false, true}) {
      if (recorded && cargo.bytes() > kRecordedUpTo) continue;
      kinds.push_back(PipelineKind{pieces, false, recorded});
      if (through) kinds.push_back(PipelineKind{pieces, true, recorded});
    }
  }
  return kinds;
}

class DuplexTrip : public Trip {
 public:
  fulcrum_status open(const Cargo& cargo) override {
    if (!cargo.sliceable()) {
      return failed(FULCRUM_UNSUPPORTED,
                    "this call cannot be cut into pieces, so there is no duplex path for it");
    }
    parts_.cargo = cargo;
    std::size_t free_bytes = 0, total_bytes = 0;
    FULCRUM_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    const auto room = static_cast<std::int64_t>(free_bytes);
    const fulcrum_status whole = cargo.bytes() <= room / 2 ? parts_.memory.open(cargo)
                                                           : fulcrum_status{FULCRUM_OUT_OF_MEMORY, nullptr};
    if (whole.code == FULCRUM_OUT_OF_MEMORY) {
      FULCRUM_STATUS(open_ring(room / 4));
    } else {
      FULCRUM_STATUS(whole);
    }
    FULCRUM_STATUS(parts_.host.open(cargo));
    FULCRUM_STATUS(parts_.open_streams());
    return choose(parts_.ring_length > 0 ? std::vector<PipelineKind>{PipelineKind{.pieces = ring_pieces_}}
                                         : kinds_for(cargo));
  }

  fulcrum_status once() override { return pipeline_->once(); }

  std::string detail() const override {
    const PipelineKind& kind = pipeline_->kind();
    const std::string count = std::to_string(kind.pieces);
    return (parts_.ring_length > 0 ? "duplex, cut into " + count + " pieces"
                                   : "duplex, " + count + " chunks") +
           (kind.through ? ", results written through" : "") + (kind.recorded ? ", recorded" : "") +
           (parts_.host.staged() ? ", operands staged" : "");
  }

 private:
  /// Memory for a few pieces within `cap_bytes`, or within less of it when even that is refused.
  fulcrum_status open_ring(std::int64_t cap_bytes) {
    constexpr std::int64_t ring = PipelineParts::kRing;
    fulcrum_status status{FULCRUM_OUT_OF_MEMORY, nullptr};
    for (; status.code == FULCRUM_OUT_OF_MEMORY; cap_bytes /= 2) {
      parts_.memory.clear();
      const std::int64_t pieces = pieces_within(parts_.cargo, cap_bytes, ring);
      if (pieces == 0)
        return failed(FULCRUM_OUT_OF_MEMORY, "not even one piece of the call fits on the device");
      const std::vector<Slice> slices = cut(parts_.cargo.length(), grain(parts_.cargo), pieces);
      ring_pieces_ = static_cast<std::int64_t>(slices.size());
      parts_.ring_length = slices.front().length;  // the longest
      status = take_ring();
    }
    return status;
  }

  fulcrum_status take_ring() {
    for (const Buffer& buffer : parts_.cargo.buffers) {
      const std::int64_t place_bytes = (buffer.slice_bytes * parts_.ring_length + 255) / 256 * 256;
      FULCRUM_STATUS(
          parts_.memory.add(buffer.slice_bytes == 0 ? buffer.bytes : place_bytes * PipelineParts::kRing));
    }
    return done();
  }

  fulcrum_status choose(const std::vector<PipelineKind>& kinds) {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    fulcrum_status last = done();
    for (const PipelineKind& kind : kinds) {
      pipelines.push_back(std::make_unique<Pipeline>());
      const fulcrum_status opened = pipelines.back()->open(parts_, kind);
      if (opened.code == FULCRUM_OK) continue;
      pipelines.pop_back();
      last = opened;
    }
    if (pipelines.empty()) return last;
    const RaceRules rules{.warm_ups = 2, .rounds = 9, .seconds_each = 0.02, .hopeless = 1.25};
    const int winner =
        pipelines.size() == 1 ? 0 : race(static_cast<int>(pipelines.size()), rules, [&](int i) {
          return seconds_of([&] { return last = pipelines[static_cast<std::size_t>(i)]->once(); });
        });
    if (winner < 0) return last;
    pipeline_ = std::move(pipelines[static_cast<std::size_t>(winner)]);
    return done();
  }

  PipelineParts parts_;
  std::int64_t ring_pieces_ = 0;
  std::unique_ptr<Pipeline> pipeline_;  // goes before the parts that it uses
};

}  // namespace

std::unique_ptr<Trip> make_duplex() { return std::make_unique<DuplexTrip>(); }

}  // namespace fulcrum::backends::cuda::trips
